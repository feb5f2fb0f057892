"""Time of translating, ours against CTranslate2 and Hugging Face `generate`, on the same weights, turn by turn.

    python benchmarks/decode.py [--bundle runs/mine] [--file test.en …] [--output decode.md]

Batches: 1 and 32 random sources of 20 tokens, 25 forced output tokens, greedy and beam 4, random
weights of two sizes. Files: all lines of each, sorted by length; beam 4, ended by the model, with the
trained bundle; and with random weights (greedy, 25 forced tokens) of the larger size, and of the
smaller one if there is no bundle.

The peers live in an environment of their own, `--peers`, which is made if it is not there. Each
system first tries all its settings (precision, one thread and two, two batches at once, for
CTranslate2 also MKL or not) and its three quickest twice more; the best then run in turns, whole
files twice, Hugging Face on a sample of them. Times are medians in milliseconds; a ratio is the
median of the ratios turn by turn, and above 1 ours is faster. Outputs are compared in float32. A run
that was stopped goes on with the rows that stand in `--output`.
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
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import torch

from allyouneed import Bundle, DecodeConfig, ModelConfig, Tokenizer, Transformer
from allyouneed.convert.ctranslate2 import CTranslate2Exporter
from allyouneed.data.batch import pad
from allyouneed.decode import SearchLimits, search
from allyouneed.device import parallel_map, retain_freed_memory
from allyouneed.inference import AnyEngine, EngineStep, make_engine
from allyouneed.nn import sinusoids

PEERS = ("torch==2.13.0", "ctranslate2==4.8.5", "transformers==5.23.0")
SIZES = {
    "d 256, 3+3": ModelConfig(
        vocab_size=8_000, d_model=256, d_ff=1024, heads=4, encoder_layers=3, decoder_layers=3, max_length=512
    ),
    "d 512, 6+6": ModelConfig(vocab_size=37_000, max_length=512),
}

THREADS = (1, 2)
ROUNDS = 5

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
    bundle, engine = _loaded(order["folder"], order["precision"])
    ids, sources = bundle.source_tokenizer, order["sources"]
    never = {ids.pad_id, ids.sos_id} | ({ids.eos_id} if order["forced"] else set())
    step = EngineStep(engine, banned_ids=tuple(never))
    config = DecodeConfig(beam=order["beam"], alpha=0.0)
    places = sorted(range(len(sources)), key=lambda place: len(sources[place]))

    @torch.inference_mode()
    def translated(some: list[int]) -> Ids:
        source = pad([sources[place] for place in some], ids.pad_id)
        longest = torch.full((len(some),), order["longest"])
        found = search(
            step,
            engine.start(source),
            config,
            SearchLimits(sos_id=ids.sos_id, eos_id=ids.eos_id, max_lengths=longest),
        )
        return [hypotheses[0].ids for hypotheses in found]

    begin = time.perf_counter()
    batches = [places[start : start + order["batch"]] for start in range(0, len(places), order["batch"])]
    with parallel_map(order["parallel"]) as each:
        written = dict(zip(places, chain.from_iterable(each(translated, batches)), strict=True))
    return {"seconds": time.perf_counter() - begin, "outputs": [written[place] for place in range(len(sources))]}


@lru_cache(2)
def _loaded(folder: str, precision: str) -> tuple[Bundle, AnyEngine]:
    bundle = Bundle.load(Path(folder), device=torch.device("cpu"))
    return bundle, make_engine(bundle.model, precision=precision, compiled=True)


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


def systems(python: Path) -> list[System]:
    def every(worker: Worker, precisions: Sequence[str], parallel: bool, also: str = "") -> list[Any]:
        ways = [(n, p) for n in THREADS for p in ({1, n} if parallel else {1})]
        return [
            (
                f"{precision}, {n} thread{'s' * (n > 1)}{' for two batches' * (p > 1)}{also}",
                worker,
                {"precision": precision, "threads": n, "parallel": p},
            )
            for precision in precisions
            for n, p in ways
        ]

    theirs = []
    for mkl in ("0", "1"):
        worker = started(python, "ctranslate2", CT2_USE_MKL=mkl)
        theirs += every(worker, worker({"do": "settings"})["precisions"], True, f", MKL {mkl}")
    hugging = started(python, "huggingface")
    return [
        System("ours", every(ours, ("float32", "int8"), True), ""),
        System("CTranslate2", theirs, "ct2"),
        System("Hugging Face", every(hugging, hugging({"do": "settings"})["precisions"], False), ""),
    ]


def compare(case: Case, contestants: list[System]) -> str:
    def order(system: System, setting: Setting, sources: Ids) -> dict[str, Any]:
        return {
            "do": "translate", **setting, "folder": str(case.folder / system.folder), "sources": sources,
            "beam": case.beam, "longest": case.longest, "forced": case.forced, "batch": case.batch,
        }  # fmt: skip

    long = len(case.sources) > 512
    taste = case.sources[:: max(1, len(case.sources) // (2 * case.batch))] if long else case.sources
    chosen, exact = [], {}
    for system in contestants:
        times = {}
        for words, worker, setting in system.settings:
            if setting["parallel"] > 1 and len(taste) <= case.batch:
                continue  # one batch cannot be shared out
            answer = worker(order(system, setting, taste))
            times[words] = answer["seconds"]
            if setting["precision"] == "float32":
                exact[system.name] = answer["outputs"]
        quickest = sorted(times, key=times.__getitem__)[:3]
        again = [setting for setting in system.settings if setting[0] in quickest]
        for _ in range(2):
            for words, worker, setting in again:
                times[words] = min(times[words], worker(order(system, setting, taste))["seconds"])
        chosen.append((system, *min(again, key=lambda setting: times[setting[0]])))
    turns: list[list[float]] = []
    for turn in range(2 if long else ROUNDS):
        seconds = []
        for system, _, worker, setting in chosen:
            slow = system.name == "Hugging Face"  # and its time varies little
            if slow and turn >= (1 if long else 2):
                seconds.append(turns[turn - 1][-1])
            elif slow and long:
                share = sum(map(len, case.sources)) / sum(map(len, taste))
                seconds.append(share * worker(order(system, setting, taste))["seconds"])
            else:
                seconds.append(worker(order(system, setting, case.sources))["seconds"])
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
    made = Bundle(Transformer(replace(config, pad_id=tokenizer.pad_id)).eval(), tokenizer, tokenizer, DecodeConfig())
    made.save(folder)
    prepare(made, folder)


def prepare(bundle: Bundle, folder: Path) -> None:
    """What the peers need beside the bundle."""
    (folder / "ct2").mkdir()
    CTranslate2Exporter().write(bundle, folder / "ct2", "float32")
    ids, config = bundle.source_tokenizer, bundle.model.config
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


def whole(file: Path, folders: list[Path], trained: Bundle | None) -> list[Case]:
    """The lines of a file through the bundle in the first folder, if it is trained, and through random weights."""
    content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    lines = [line for line in content.decode("utf-8").splitlines() if line.strip()]
    what = f"{file.name.removesuffix('.gz')}, {len(lines):,} lines"
    # Of random weights only lengths count. Without a tokenizer: four tokens for three words.
    sources = (
        trained.source_tokenizer.encode_all(lines)
        if trained
        else [[0] * (len(line.split()) * 4 // 3 + 2) for line in lines]
    )
    longest = trained.model.config.max_length if trained else 512
    sources = [ids[: longest - 1] for ids in sources]
    cases: list[Case] = []
    for folder, (name, config) in zip(folders, SIZES.items(), strict=True):
        if trained and not cases:
            cases.append(Case(f"{what}; the trained bundle, beam 4", folder, sources, 4, 100, False, 64))
            continue
        words, chance = config.vocab_size - 3, random.Random(1)
        random_ids = [[words, *(chance.randrange(words) for _ in ids[1:-1]), words + 1] for ids in sources]
        cases.append(Case(f"{what}; {name}, greedy", folder, random_ids, 1, 25, True, 64))
    return cases


def peers_python(folder: Path) -> Path:
    python, installed = folder / "bin" / "python", folder / "installed"
    if not installed.exists():
        print(f"making {folder} for {', '.join(PEERS)}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", *PEERS], check=True, stdout=sys.stderr)
        installed.touch()
    return python


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--bundle", type=Path, help="a trained bundle, for --file")
    options.add_argument("--file", type=Path, action="append", default=[], help="text to translate, plain or .gz")
    options.add_argument("--peers", type=Path, default=Path(".peers"), help="the peers' environment")
    options.add_argument("--output", type=Path, help="write the table here, too, row by row, as markdown")
    chosen = options.parse_args()
    begin = time.monotonic()
    retain_freed_memory()
    there = chosen.output.read_text(encoding="utf-8").splitlines() if chosen.output and chosen.output.exists() else []
    contestants = systems(peers_python(chosen.peers))
    rows = [
        f"torch {torch.__version__}, {' and '.join(PEERS[1:])}, {processor()}, {os.cpu_count()} cores, "
        f"{ROUNDS} rounds, {time.strftime('%Y-%m-%d')}; milliseconds\n",
        "| | ours | CTranslate2 | CTranslate2 / ours | Hugging Face | Hugging Face / ours |",
        "|---|---|---|---|---|---|",
    ]
    print(*rows, sep="\n", flush=True)
    with tempfile.TemporaryDirectory() as place:
        cases: list[Case] = []
        folders: list[Path] = []
        for name, config in SIZES.items():
            folders.append(Path(place) / f"d{config.d_model}")
            random_bundle(config, folders[-1])
            cases += cells(folders[-1], name, config.vocab_size - 3, (config.vocab_size - 3, config.vocab_size - 2))
        trained = Bundle.load(chosen.bundle, device=torch.device("cpu")) if chosen.bundle else None
        if trained:
            folders[0] = Path(place) / "trained"
            trained.save(folders[0])
            prepare(trained, folders[0])
        for case in chain(cases, *(whole(file, folders, trained) for file in chosen.file)):
            before = [row for row in there if row.startswith(f"| {case.name} |")]
            rows.append(before[0] if before else compare(case, contestants))
            print(rows[-1], flush=True)
            print(f"  {(time.monotonic() - begin) / 60:.1f} minutes", file=sys.stderr)
            if chosen.output:
                chosen.output.write_text("\n".join(rows) + "\n", encoding="utf-8")


def processor() -> str:
    try:
        info = Path("/proc/cpuinfo").read_text()
        return info.split("model name")[1].splitlines()[0].lstrip("\t :")
    except (OSError, IndexError):
        return platform.processor() or platform.machine()


if __name__ == "__main__":
    main()
