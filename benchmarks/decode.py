"""Translation speed of ours, CTranslate2 and Hugging Face `generate`, with the same weights, timed in alternation.

    python benchmarks/decode.py [--bundle runs/mine] [--file test.en …] [--only TEXT] [--output decode.md]

Batches: 1 and 32 random sources of 20 tokens, 25 forced output tokens, greedy and beam 4, random weights of two sizes.
Files: all lines of each, sorted by length; with the trained bundle, beam 4, ended by the model; and with random
weights (greedy, 25 forced tokens) of the larger size, and of the smaller one if there is no bundle.

The other libraries run in an environment of their own, `--peers`, which is created if it does not exist. Each system
first tries all its settings (precision, one thread and two; for CTranslate2 also two batches in parallel, MKL or not)
and its three fastest twice more. With two threads ours translates two batches in parallel, or one in two parts, as
`allyouneed translate` does. The best settings are then timed in alternating rounds, two for whole files, of which
Hugging Face translates a sample. Times are medians in milliseconds; a ratio is the median of the ratios of the rounds,
and above 1 ours is faster. Outputs are compared in float32. A run that was stopped continues with the rows that are in
`--output`.
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
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

import torch

from allyouneed import Bundle, DecodeConfig, ModelConfig, Tokenizer, Transformer
from allyouneed.apps.convert.ctranslate2 import write_ctranslate2
from allyouneed.decode import SearchLimits, search
from allyouneed.machine.device import parallel_map, retain_freed_memory
from allyouneed.nn import sinusoids
from allyouneed.translator.engine import Engine, make_engine

PEERS = ("torch==2.13.0", "ctranslate2==4.8.5", "transformers==5.23.0")
SIZES = {
    "d 256, 3+3": ModelConfig(
        vocab_size=8_000, d_model=256, d_ff=1024, heads=4, encoder_layers=3, decoder_layers=3, max_length=512
    ),
    "d 512, 6+6": ModelConfig(vocab_size=37_000, max_length=512),
}

THREADS = (1, 2)
LEAST_SHARE = 16  # sentences of a batch that are worth a thread of their own, as in `allyouneed translate`
ROUNDS = 5

Ids = list[list[int]]
Setting = dict[str, Any]
Worker = Callable[[dict[str, Any]], dict[str, Any]]


class Case(NamedTuple):
    """One row of the table. `folder` has the bundle, and the converted model in `ct2/`."""

    name: str
    folder: Path
    sources: Ids
    beam: int
    max_length: int
    forced: bool
    batch: int


def ours(request: dict[str, Any]) -> dict[str, Any]:
    torch.set_num_threads(request["threads"])
    bundle, engine = _loaded(request["folder"], request["precision"])
    tokenizer, sources = bundle.source_tokenizer, request["sources"]
    banned_ids = {tokenizer.pad_id, tokenizer.sos_id} | ({tokenizer.eos_id} if request["forced"] else set())
    config = DecodeConfig(beam=request["beam"], alpha=0.0)
    by_length = sorted(range(len(sources)), key=lambda i: len(sources[i]))

    def translate(indices: list[int]) -> Ids:
        max_lengths = [request["max_length"]] * len(indices)
        limits = SearchLimits(sos_id=tokenizer.sos_id, eos_id=tokenizer.eos_id, max_lengths=max_lengths)
        step = engine.start([sources[i] for i in indices], banned_ids=tuple(banned_ids))
        return [hypotheses[0].ids for hypotheses in search(step, config, limits)]

    begin = time.perf_counter()
    # As `allyouneed translate`: a batch has one thread, so a single one is divided among the threads.
    size = min(request["batch"], max(LEAST_SHARE, ceil(len(sources) / request["threads"])))
    batches = [by_length[start : start + size] for start in range(0, len(by_length), size)]
    with parallel_map(min(request["threads"], len(batches))) as map_batches:
        outputs = dict(zip(by_length, chain.from_iterable(map_batches(translate, batches)), strict=True))
    return {"seconds": time.perf_counter() - begin, "outputs": [outputs[i] for i in range(len(sources))]}


@lru_cache(2)
def _loaded(folder: str, precision: str) -> tuple[Bundle, Engine]:
    bundle = Bundle.load(Path(folder), device=torch.device("cpu"))
    return bundle, make_engine([bundle], precision)


def start_peer(python: Path, name: str, **environment: str) -> Worker:
    process = subprocess.Popen(
        [str(python), str(Path(__file__).with_name("peers.py")), name],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment},
    )  # fmt: skip

    def request(message: dict[str, Any]) -> dict[str, Any]:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(message) + "\n")
        process.stdin.flush()
        if not (line := process.stdout.readline()):
            raise SystemExit(f"{name} stopped; its error is above")
        answer: dict[str, Any] = json.loads(line)
        return answer

    return request


class System(NamedTuple):
    """One of the compared systems, with all its settings."""

    name: str
    settings: Sequence[tuple[str, Worker, dict[str, Any]]]  # label, worker, settings
    folder: str  # of its model, below the folder of a case


def systems(python: Path) -> list[System]:
    def all_settings(worker: Worker, precisions: Sequence[str], parallel: bool, suffix: str = "") -> list[Any]:
        counts = [(n, p) for n in THREADS for p in ({1, n} if parallel else {1})]
        return [
            (
                f"{precision}, {n} thread{'s' * (n > 1)}{' for two batches' * (p > 1)}{suffix}",
                worker,
                {"precision": precision, "threads": n, "parallel": p},
            )
            for precision in precisions
            for n, p in counts
        ]

    ctranslate2 = []
    for mkl in ("0", "1"):
        worker = start_peer(python, "ctranslate2", CT2_USE_MKL=mkl)
        ctranslate2 += all_settings(worker, worker({"do": "settings"})["precisions"], True, f", MKL {mkl}")
    huggingface = start_peer(python, "huggingface")
    return [
        System("ours", all_settings(ours, ("float32", "int8"), False), ""),
        System("CTranslate2", ctranslate2, "ct2"),
        System("Hugging Face", all_settings(huggingface, huggingface({"do": "settings"})["precisions"], False), ""),
    ]


def compare(case: Case, contestants: list[System]) -> str:
    def seconds_and_outputs(system: System, worker: Worker, setting: Setting, sources: Ids) -> tuple[float, Ids]:
        time.sleep(0.3)  # threads of the system before wait for work busily, 200 ms with Intel's OpenMP
        result = worker({
            "do": "translate", **setting, "folder": str(case.folder / system.folder), "sources": sources,
            "beam": case.beam, "max_length": case.max_length, "forced": case.forced, "batch": case.batch,
        })  # fmt: skip
        return result["seconds"], result["outputs"]

    is_long = len(case.sources) > 512
    sample = case.sources[:: max(1, len(case.sources) // (2 * case.batch))] if is_long else case.sources
    best, exact = [], {}
    for system in contestants:
        times = {}
        for label, worker, setting in system.settings:
            if setting["parallel"] > 1 and len(sample) <= case.batch:
                continue  # there is only one batch
            times[label], outputs = seconds_and_outputs(system, worker, setting, sample)
            if setting["precision"] == "float32":
                exact[system.name] = outputs
        fastest = sorted(times, key=times.__getitem__)[:3]
        candidates = [candidate for candidate in system.settings if candidate[0] in fastest]
        for _ in range(2):
            for label, worker, setting in candidates:
                times[label] = min(times[label], seconds_and_outputs(system, worker, setting, sample)[0])
        best.append((system, *min(candidates, key=lambda candidate: times[candidate[0]])))
    rounds: list[list[float]] = []
    for number in range(2 if is_long else ROUNDS):
        seconds = []
        for system, _, worker, setting in best:
            is_slow = system.name == "Hugging Face"  # its time varies little, so fewer rounds are enough
            if is_slow and number >= (1 if is_long else 2):
                seconds.append(rounds[number - 1][-1])
            elif is_slow and is_long:
                share = sum(map(len, case.sources)) / sum(map(len, sample))
                seconds.append(share * seconds_and_outputs(system, worker, setting, sample)[0])
            else:
                seconds.append(seconds_and_outputs(system, worker, setting, case.sources)[0])
        rounds.append(seconds)
    row = [case.name]
    for column, (system, label, *_) in enumerate(best):
        row.append(f"{1000 * statistics.median(times[column] for times in rounds):,.0f} ({label})")
        if column:
            same = sum(a == b for a, b in zip(exact["ours"], exact[system.name], strict=True))
            ratio = statistics.median(times[column] / times[0] for times in rounds)
            row.append(f"**{ratio:.2f}** ({same} of {len(sample)} the same)")
    return "| " + " | ".join(row) + " |"


def random_bundle(config: ModelConfig, folder: Path) -> None:
    torch.manual_seed(1)
    tokenizer = Tokenizer.characters(map(chr, range(0x20000, 0x20000 + config.vocab_size - 3)))
    bundle = Bundle(Transformer(replace(config, pad_id=tokenizer.pad_id)).eval(), tokenizer, tokenizer, DecodeConfig())
    bundle.save(folder)
    prepare(bundle, folder)


def prepare(bundle: Bundle, folder: Path) -> None:
    """Write the files that the other systems need, besides the bundle."""
    (folder / "ct2").mkdir()
    write_ctranslate2(bundle, folder / "ct2", "float32")
    tokenizer, config = bundle.source_tokenizer, bundle.model.config
    peer_config = {
        "pad": tokenizer.pad_id, "sos": tokenizer.sos_id, "eos": tokenizer.eos_id,
        "positions": sinusoids(config.max_length, config.d_model).tolist(),
    }  # fmt: skip
    (folder / "peer.json").write_text(json.dumps(peer_config))


def random_sources(config: ModelConfig, lengths: Iterable[int]) -> Ids:
    """Draw random tokens between the start and the end token of `random_bundle`."""
    rng, tokens = random.Random(1), config.vocab_size - 3
    return [[tokens, *(rng.randrange(tokens) for _ in range(length - 2)), tokens + 1] for length in lengths]


def batch_cases(folder: Path, name: str, config: ModelConfig) -> list[Case]:
    sources = random_sources(config, [20] * 32)
    return [
        Case(f"{name}; batch {batch}, {search_name}", folder, sources[:batch], beam, 25, True, batch)
        for batch in (1, 32)
        for beam, search_name in ((1, "greedy"), (4, "beam 4"))
    ]


def file_cases(file: Path, folders: list[Path], trained: Bundle | None) -> list[Case]:
    """Yield the lines of a file, with the bundle in the first folder if it is trained, and with random weights."""
    content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    lines = [line for line in content.decode("utf-8").splitlines() if line.strip()]
    name = f"{file.name.removesuffix('.gz')}, {len(lines):,} lines"
    # With random weights only lengths matter. Without a tokenizer: four tokens for three words.
    sources = (
        trained.source_tokenizer.encode_all(lines)
        if trained
        else [[0] * (len(line.split()) * 4 // 3 + 2) for line in lines]
    )
    longest = trained.model.config.max_length if trained else 512
    sources = [ids[: longest - 1] for ids in sources]
    cases: list[Case] = []
    for folder, (size, config) in zip(folders, SIZES.items(), strict=True):
        if trained and not cases:
            cases.append(Case(f"{name}; the trained bundle, beam 4", folder, sources, 4, 100, False, 64))
        else:
            random_ids = random_sources(config, map(len, sources))
            cases.append(Case(f"{name}; {size}, greedy", folder, random_ids, 1, 25, True, 64))
    return cases


def peers_python(folder: Path) -> Path:
    python, installed = folder / "bin" / "python", folder / "installed"
    if not installed.exists():
        print(f"installing {', '.join(PEERS)} in {folder}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", *PEERS], check=True, stdout=sys.stderr)
        installed.touch()
    return python


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", type=Path, help="a trained bundle, for --file")
    parser.add_argument("--file", type=Path, action="append", default=[], help="text to translate, plain or .gz")
    parser.add_argument("--peers", type=Path, default=Path(".peers"), help="environment of the other libraries")
    parser.add_argument("--only", default="", metavar="TEXT", help="only rows whose name has this text")
    parser.add_argument("--output", type=Path, help="also write the table to this file, row by row, as Markdown")
    options = parser.parse_args()
    begin = time.monotonic()
    retain_freed_memory()
    earlier = options.output.read_text(encoding="utf-8") if options.output and options.output.exists() else ""
    contestants = systems(peers_python(options.peers))
    rows = [
        f"torch {torch.__version__}, {' and '.join(PEERS[1:])}, {processor()}, {os.cpu_count()} cores, "
        f"{instructions()}, {ROUNDS} rounds, {time.strftime('%Y-%m-%d')}; milliseconds\n",
        "| | ours | CTranslate2 | CTranslate2 / ours | Hugging Face | Hugging Face / ours |",
        "|---|---|---|---|---|---|",
    ]
    print(*rows, sep="\n", flush=True)
    with tempfile.TemporaryDirectory() as root:
        cases: list[Case] = []
        folders: list[Path] = []
        for name, config in SIZES.items():
            folders.append(Path(root) / f"d{config.d_model}")
            random_bundle(config, folders[-1])
            cases += batch_cases(folders[-1], name, config)
        trained = Bundle.load(options.bundle, device=torch.device("cpu")) if options.bundle else None
        if trained:
            folders[0] = Path(root) / "trained"
            trained.save(folders[0])
            prepare(trained, folders[0])
        for case in chain(cases, *(file_cases(file, folders, trained) for file in options.file)):
            done = [row for row in earlier.splitlines() if row.startswith(f"| {case.name} |")]
            if options.only not in case.name and not done:
                continue
            rows.append(done[0] if done else compare(case, contestants))
            print(rows[-1], flush=True)
            print(f"  {(time.monotonic() - begin) / 60:.1f} minutes", file=sys.stderr)
            if options.output:
                options.output.write_text("\n".join(rows) + "\n", encoding="utf-8")


def instructions() -> str:
    """Say what limits the systems to fewer instructions than the processor has."""
    names = ("ALLYOUNEED_ISA", "CT2_FORCE_CPU_ISA", "ONEDNN_MAX_CPU_ISA")
    held = [f"{name}={os.environ[name]}" for name in names if name in os.environ]
    return f"held to {' '.join(held)}" if held else "all instructions"


def processor() -> str:
    try:
        info = Path("/proc/cpuinfo").read_text()
        return info.split("model name")[1].splitlines()[0].lstrip("\t :")
    except (OSError, IndexError):
        return platform.processor() or platform.machine()


if __name__ == "__main__":
    main()
