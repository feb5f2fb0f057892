# A server in a container, which computes on the CPU:
#
#     docker build -t allyouneed .
#     docker run -p 5000:5000 -v ./runs/en-it:/models/en-it:ro allyouneed /models/en-it
#
# --build-arg TORCH_BACKEND=auto, or cu130 and the like, takes a build of PyTorch for GPUs, which is much larger.
FROM python:3.12-slim

ARG TORCH_BACKEND=cpu
WORKDIR /opt/allyouneed
COPY pyproject.toml hatch_build.py constraints.txt README.md LICENSE ./
COPY src src
RUN pip install --no-cache-dir uv \
    && uv pip install --system --no-cache --compile-bytecode --torch-backend "$TORCH_BACKEND" -c constraints.txt \
        '.[serve]' \
    && pip uninstall --yes uv \
    && useradd --system --uid 10001 --home-dir /nonexistent allyouneed

USER allyouneed
ENV ALLYOUNEED_SERVE_HOST=0.0.0.0 \
    ALLYOUNEED_SERVE_PORT=5000 \
    PYTHONUNBUFFERED=1
EXPOSE 5000
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s CMD ["python", "-m", "allyouneed.apps.serve.health"]
ENTRYPOINT ["allyouneed", "serve"]
