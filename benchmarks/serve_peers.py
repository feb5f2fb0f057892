"""The other systems of serve.py, each a process of its own.

python benchmarks/serve_peers.py one-at-a-time|ctranslate2|ctranslate2-batches BUNDLE PORT
python benchmarks/serve_peers.py offline BUNDLE LINES SECONDS
python benchmarks/serve_peers.py expected BUNDLE LINES OUTPUT
"""

import asyncio
import json
import os
import resource
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import torch
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from allyouneed import Translator
from allyouneed.machine.device import available_cores, retain_freed_memory

CORES = available_cores()
WARM_UP = 2.0


class Texts(BaseModel):
    """A request as `allyouneed serve` gets it."""

    texts: list[str]
    source: str
    target: str


def serve(translate: Callable[[str], Awaitable[str]], port: int) -> None:
    app = FastAPI()

    @app.post("/v1/translate")
    async def answer(body: Texts) -> dict[str, Any]:
        return {"translations": [{"text": await translate(text)} for text in body.texts]}

    uvicorn.run(app, port=port, log_level="warning", access_log=False)


def one_at_a_time(bundle: str, port: int) -> None:
    translator = Translator.load(bundle, device="cpu")
    serve(lambda text: asyncio.to_thread(translator, text), port)


def ctranslate2_server(bundle: str, port: int, *, batches: bool) -> None:
    import ctranslate2

    ours = Translator.load(bundle, device="cpu", precision="float32")
    decode, source_tokenizer, target_tokenizer = ours.decode, ours.source_tokenizer, ours.target_tokenizer
    engine = ctranslate2.Translator(
        os.environ["ALLYOUNEED_BENCHMARK_CT2"], compute_type="int8", inter_threads=CORES, intra_threads=1
    )
    names, target_names = source_tokenizer.names(), target_tokenizer.names()
    ids = {name: i for i, name in enumerate(target_names)}
    settings: dict[str, Any] = {
        "beam_size": decode.beam,
        "length_penalty": decode.alpha,
        "max_decoding_length": (decode.max_length or 256) - bool(decode.max_length),
    }

    def translate_all(texts: list[str]) -> list[str]:
        sources = [[names[i] for i in encoded[1:-1]] for encoded in source_tokenizer.encode_all(texts)]
        results = engine.translate_batch(sources, **settings)
        return target_tokenizer.decode_all([[ids[token] for token in one.hypotheses[0]] for one in results])

    async def alone(text: str) -> str:
        return (await asyncio.to_thread(translate_all, [text]))[0]

    waiting: list[tuple[str, asyncio.Future[str]]] = []
    free = asyncio.Semaphore(CORES)

    async def together(text: str) -> str:
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        waiting.append((text, answer))
        async with free:
            batch = waiting[: decode.batch_size]
            del waiting[: decode.batch_size]
            if batch:
                outputs = await asyncio.to_thread(translate_all, [one for one, _ in batch])
                for (_, future), output in zip(batch, outputs, strict=True):
                    future.set_result(output)
        return await answer

    serve(together if batches else alone, port)


def offline(bundle: str, lines: list[str], seconds: float) -> dict[str, Any]:
    retain_freed_memory()
    translator = Translator.load(bundle, device="cpu")
    start = time.perf_counter()
    while time.perf_counter() - start < WARM_UP:
        translator.translate(lines[:64])
    count, start, before = 0, time.perf_counter(), time.process_time()
    while (spent := time.perf_counter() - start) < seconds:
        translator.translate(lines)
        count += len(lines)
    cpu = time.process_time() - before
    latencies: list[float] = []
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        begin = time.perf_counter()
        translator(lines[len(latencies) % len(lines)])
        latencies.append(time.perf_counter() - begin)
    latencies.sort()
    return {
        "per_second": count / spent,
        "cpu_ms": 1000 * cpu / count,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        **{f"p{percent}": latencies[len(latencies) * percent // 100] for percent in (50, 95, 99)},
    }


def main() -> None:
    what, bundle, *rest = sys.argv[1:]
    if what == "one-at-a-time":
        one_at_a_time(bundle, int(rest[0]))
    elif what.startswith("ctranslate2"):
        ctranslate2_server(bundle, int(rest[0]), batches=what.endswith("batches"))
    else:
        lines = json.loads(Path(rest[0]).read_text())
        if what == "offline":
            print(json.dumps(offline(bundle, lines, float(rest[1]))))
        else:
            torch.set_num_threads(CORES)
            translator = Translator.load(bundle, device="cpu")
            Path(rest[1]).write_text(json.dumps(translator.translate(lines)))


if __name__ == "__main__":
    main()
