"""The server's application on Ray Serve, for those who outgrow one machine: `python examples/ray_serve.py BUNDLE`.

Ray starts the replicas, spreads the requests over them, and restarts one that fails. Each replica is a whole server:
its own models, queue and batches.
"""

import argparse
import os

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_worker_niceness", "0")  # with Ray's default of 15, a server starves on a busy machine

import ray
from ray import serve

from allyouneed.apps.serve.app import create_app
from allyouneed.apps.serve.options import ServeConfig


def deploy(bundles: list[str], *, replicas: int, cores: float, port: int) -> None:
    """Serve `bundles` on `replicas` processes with `cores` each, at http://127.0.0.1:`port`."""
    config = ServeConfig(port=port, workers=max(1, int(cores)), device="cpu")

    application = serve.deployment(
        serve.ingress(lambda: create_app(bundles, config))(),
        num_replicas=replicas,
        max_ongoing_requests=config.max_queue,
        ray_actor_options={"num_cpus": cores},
        graceful_shutdown_timeout_s=config.drain_timeout,
    )
    serve.start(http_options=serve.HTTPOptions(host="127.0.0.1", port=port))
    serve.run(application.bind(), name="allyouneed", route_prefix="/")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bundles", nargs="+")
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--cores", type=float, default=1.0, help="of each replica")
    parser.add_argument("--port", type=int, default=5000)
    options = parser.parse_args()
    ray.init(include_dashboard=False, log_to_driver=False)
    try:
        deploy(options.bundles, replicas=options.replicas, cores=options.cores, port=options.port)
        print(f"Serving on http://127.0.0.1:{options.port}; Enter stops it.", flush=True)
        input()
    finally:
        serve.shutdown()
        ray.shutdown()


if __name__ == "__main__":
    main()
