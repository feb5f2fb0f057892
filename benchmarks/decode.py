"""Time of translating, ours against CTranslate2 and Hugging Face `generate`, on the same weights, turn by turn.

    python benchmarks/decode.py [--bundle runs/mine --file test.en …] [--output decode.md]

Batches: 1 and 32 random sources of 20 tokens, 25 forced output tokens, greedy and beam 4, random
weights of two sizes. Files, if given: all lines of each, sorted by length, with the trained bundle
(beam 4, ended by the model), and with random weights of the larger size (greedy, 25 forced tokens).

The peers live in an environment of their own, `--peers`, which is made if it is not there. Each
system first tries all its settings (precision, threads, for CTranslate2 also MKL or not); the best
then run in turns, whole files twice, Hugging Face on a sample of them. Times are medians in
milliseconds; a ratio is the median of the ratios turn by
turn, and above 1 ours is faster. Outputs are compared in float32.
"""

import argparse
import gzip
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import torch

from allyouneed import Bundle, DecodeConfig, ModelConfig, Tokenizer, Transformer
from allyouneed.data.batch import pad
from allyouneed.decode import search, step_of
from allyouneed.device import keep_freed_memory
from allyouneed.export.ctranslate2 import convert
from allyouneed.nn import FastTransformer, sinusoids

PEERS = ("torch==2.13.0", "ctranslate2==4.8.5", "transformers==5.23.0")
SIZES = {
    "d 256, 3+3": ModelConfig(
        vocab_size=8_000, d_model=256, d_ff=1024, heads=4, encoder_layers=3, decoder_layers=3, max_length=512
    ),
    "d 512, 6+6": ModelConfig(vocab_size=37_000, max_length=512),
}

Ids = list[list[int]]
Setting = dict[str, Any]
Worker = Callable[[dict[str, Any]], dict[str, Any]]


class Case(NamedTuple):
    """One line of the table. `folder` holds the bundle, and the converted model in `ct2/`."""

    name: str
    folder: Path
    sources: Ids
    beam: int
    longest: int
    forced: bool
    batch: int


def ours(order: dict[str, Any]) -> dict[str, Any]:
    torch.set_num_threads(order["threads"])
    bundle, model = _loaded(order["folder"], order["precision"])
    never = {bundle.tokenizer.pad_id, bundle.tokenizer.sos_id} | (
        {bundle.tokenizer.eos_id} if order["forced"] else set()
    )
    step, sources = step_of(model, never=tuple(never)), order["sources"]
    config = DecodeConfig(beam=order["beam"], alpha=0.0)
    places = sorted(range(len(sources)), key=lambda place: len(sources[place]))
    outputs: Ids = [[] for _ in sources]
    begin = time.perf_counter()
    with torch.inference_mode():
        for start in range(0, len(places), order["batch"]):
            some = places[start : start + order["batch"]]
            found = search(
                step,
                model.start(pad([sources[place] for place in some], bundle.tokenizer.pad_id)),
                config,
                sos_id=bundle.tokenizer.sos_id,
                eos_id=bundle.tokenizer.eos_id,
                max_lengths=torch.full((len(some),), order["longest"]),
            )
            for place, hypotheses in zip(some, found, strict=True):
                outputs[place] = hypotheses[0].ids
    return {"seconds": time.perf_counter() - begin, "outputs": outputs}


@lru_cache(2)
def _loaded(folder: str, precision: str) -> tuple[Bundle, FastTransformer]:
    bundle = Bundle.load(Path(folder), device=torch.device("cpu"))
    return bundle, FastTransformer(bundle.model, precision=precision, compiled=True)


def started(python: Path, name: str, **environment: str) -> Worker:
    process = subprocess.Popen(
        [str(python), str(Path(__file__).with_name("peers.py")), name],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment},
    )  # fmt: skip

    def ask(order: dict[str, Any]) -> dict[str, Any]:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(order) + "\n")
        process.stdin.flush()
        if not (line := process.stdout.readline()):
            raise SystemExit(f"{name} stopped; its words are above")
        return json.loads(line)  # type: ignore[no-any-return]

    return ask


class System(NamedTuple):
    """One of those compared, with every way it can be set."""

    name: str
    settings: Sequence[tuple[str, Worker, dict[str, Any]]]  # in words, who does it, with what
    folder: str  # where, below a case's folder, its model is


def systems(python: Path, threads: list[int]) -> list[System]:
    mine = [
        (f"{precision}, {n} threads", ours, {"precision": precision, "threads": n, "parallel": 1})
        for precision in ("float32", "int8") for n in threads
    ]  # fmt: skip
    theirs = []
    for mkl in ("0", "1"):
        worker = started(python, "ctranslate2", CT2_USE_MKL=mkl)
        for precision in worker({"do": "settings"})["precisions"]:
            for n in threads:
                for parallel in {1, n}:
                    words = f"{precision}, {n} threads{' in parallel' if parallel > 1 else ''}, MKL {mkl}"
                    theirs.append((words, worker, {"precision": precision, "threads": n, "parallel": parallel}))
    hugging = started(python, "huggingface")
    face = [
        (f"{precision}, {n} threads", hugging, {"precision": precision, "threads": n, "parallel": 1})
        for precision in hugging({"do": "settings"})["precisions"] for n in threads
    ]  # fmt: skip
    return [System("ours", mine, ""), System("CTranslate2", theirs, "ct2"), System("Hugging Face", face, "")]


def compare(case: Case, contestants: list[System], rounds: int) -> str:
    def order(system: System, setting: Setting, sources: Ids) -> dict[str, Any]:
        return {
            "do": "translate", **setting, "folder": str(case.folder / system.folder), "sources": sources,
            "beam": case.beam, "longest": case.longest, "forced": case.forced, "batch": case.batch,
        }  # fmt: skip

    long = len(case.sources) > 512
    taste = case.sources[:: max(1, len(case.sources) // 64)] if long else case.sources
    rounds = min(rounds, 2) if long else rounds
    chosen, exact = [], {}
    for system in contestants:
        tries = []
        for words, worker, setting in system.settings:
            if setting["parallel"] > 1 and len(taste) <= case.batch:
                continue  # one batch cannot be shared out
            asked = order(system, setting, taste)
            answers = [worker(asked) for _ in range(1 if long or system.name == "Hugging Face" else 2)]
            tries.append((min(answer["seconds"] for answer in answers), words, worker, setting))
            if setting["precision"] == "float32":
                exact[system.name] = answers[0]["outputs"]
        best = min(tries, key=lambda attempt: attempt[0])
        chosen.append((system, *best[1:]))
    turns: list[list[float]] = []
    for turn in range(rounds):
        seconds = []
        for system, _, worker, setting in chosen:
            few = system.name == "Hugging Face" and (turn >= 2 or long)
            share = 1.0
            sources = case.sources
            if few and turn:  # slow, and its time varies little
                seconds.append(turns[turn - 1][-1])
                continue
            if few:
                sources, share = taste, sum(map(len, case.sources)) / sum(map(len, taste))
            seconds.append(share * worker(order(system, setting, sources))["seconds"])
        turns.append(seconds)
    cells = [case.name]
    for place, (system, words, *_) in enumerate(chosen):
        cells.append(f"{1000 * statistics.median(turn[place] for turn in turns):,.0f} ({words})")
        if place:
            same = sum(a == b for a, b in zip(exact["ours"], exact[system.name], strict=True))
            ratio = statistics.median(turn[place] / turn[0] for turn in turns)
            cells.append(f"**{ratio:.2f}** ({same} of {len(taste)} the same)")
    return "| " + " | ".join(cells) + " |"


def random_bundle(config: ModelConfig, folder: Path) -> None:
    torch.manual_seed(1)
    tokenizer = Tokenizer.characters(map(chr, range(0x20000, 0x20000 + config.vocab_size - 3)))
    made = Bundle(Transformer(replace(config, pad_id=tokenizer.pad_id)).eval(), tokenizer, DecodeConfig())
    made.save(folder)
    prepare(made, folder)


def prepare(bundle: Bundle, folder: Path) -> None:
    """What the peers need beside the bundle."""
    convert(bundle, folder / "ct2")
    ids, config = bundle.tokenizer, bundle.model.config
    signs = {
        "pad": ids.pad_id, "sos": ids.sos_id, "eos": ids.eos_id,
        "positions": sinusoids(config.max_length, config.d_model).tolist(),
    }  # fmt: skip
    (folder / "signs.json").write_text(json.dumps(signs))


def cells(folder: Path, name: str, words: int, signs: tuple[int, int]) -> list[Case]:
    chance = random.Random(1)
    sources = [[signs[0], *(chance.randrange(words) for _ in range(18)), signs[1]] for _ in range(32)]
    return [
        Case(f"{name}; batch {batch}, {manner}", folder, sources[:batch], beam, 25, True, batch)
        for batch in (1, 32)
        for beam, manner in ((1, "greedy"), (4, "beam 4"))
    ]


def lines_of(file: Path) -> list[str]:
    content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    return content.decode("utf-8").splitlines()


def peers_python(folder: Path) -> Path:
    python = folder / "bin" / "python"
    if not python.exists():
        print(f"making {folder} for {', '.join(PEERS)}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([folder / "bin" / "pip", "install", "--quiet", *PEERS], check=True)
    return python


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--bundle", type=Path, help="a trained bundle, for --file")
    options.add_argument("--file", type=Path, action="append", default=[], help="text to translate, plain or .gz")
    options.add_argument("--peers", type=Path, default=Path(".peers"), help="the peers' environment")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    options.add_argument("--only", default="", help="only cases whose name contains this")
    options.add_argument("--output", type=Path, help="write the table here too, as markdown")
    chosen = options.parse_args()
    if chosen.file and chosen.bundle is None:
        options.error("--file needs --bundle, whose tokenizer reads it")
    keep_freed_memory()
    contestants = systems(peers_python(chosen.peers), chosen.threads)
    with tempfile.TemporaryDirectory() as place:
        cases = []
        for name, config in SIZES.items():
            folder = Path(place) / name.replace(" ", "")
            random_bundle(config, folder)
            cases += cells(folder, name, config.vocab_size - 3, (config.vocab_size - 3, config.vocab_size - 2))
        if chosen.file:
            trained = Bundle.load(chosen.bundle, device=torch.device("cpu"))
            copied = Path(place) / "trained"
            trained.save(copied)
            prepare(trained, copied)
        for file in chosen.file:
            sources = [ids for ids in trained.tokenizer.encode_all(lines_of(file)) if len(ids) > 2]
            sources = [ids[: trained.model.config.max_length - 1] for ids in sources]
            what = f"{file.name.removesuffix('.gz')}, {len(sources):,} lines"
            cases.append(Case(f"{what}; the trained bundle, beam 4", copied, sources, 4, 100, False, 64))
            large = list(SIZES.values())[-1].vocab_size
            relabelled = [[large - 3, *ids[1:-1], large - 2] for ids in sources]  # real lengths are what counts
            cases.append(Case(f"{what}; d 512, 6+6, greedy", folder, relabelled, 1, 25, True, 64))
        rows = [
            f"torch {torch.__version__}, {' and '.join(PEERS[1:])}, {platform.processor() or platform.machine()}, "
            f"{os.cpu_count()} cores, {chosen.rounds} rounds, {time.strftime('%Y-%m-%d')}; milliseconds\n",
            "| | ours | CTranslate2 | CTranslate2 / ours | Hugging Face | Hugging Face / ours |",
            "|---|---|---|---|---|---|",
        ]
        print(*rows, sep="\n", flush=True)
        for case in cases:
            if chosen.only in case.name:
                rows.append(compare(case, contestants, chosen.rounds))
                print(rows[-1], flush=True)
    if chosen.output:
        chosen.output.write_text("\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
