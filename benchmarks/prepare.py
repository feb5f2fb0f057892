"""Speed and memory of preparing a corpus of random words.

    python benchmarks/prepare.py --pairs 10000000

The words follow Zipf's law, as those of text roughly do. The peak is that of this process, memory-mapped files
included; another process writes the corpus. A third one reads batches as training does, and prints by how much its
memory grew.
"""

import argparse
import multiprocessing
import resource
import tempfile
import time
from itertools import islice
from pathlib import Path

import numpy as np

from allyouneed.config import CleanConfig, DataConfig
from allyouneed.data.batch import batches
from allyouneed.data.prepare import prepare

CHUNK = 100_000  # pairs
WORDS = 200_000


def make(folder: Path, pairs: int, words: int) -> None:
    """Write `pairs` lines of about `words` words to source and target, the same in every call."""
    rng = np.random.default_rng(1)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    vocabulary = ["".join(rng.choice(letters, size)) for size in rng.integers(2, 10, WORDS)]
    with (folder / "source").open("w") as source, (folder / "target").open("w") as target:
        for begin in range(0, pairs, CHUNK):
            for file in (source, target):
                lengths = rng.integers(words // 2, 2 * words, min(CHUNK, pairs - begin))
                drawn = np.minimum(rng.zipf(1.2, int(lengths.sum())), WORDS) - 1
                indices = np.split(drawn, np.cumsum(lengths)[:-1])
                file.writelines(" ".join([vocabulary[i] for i in line.tolist()]) + "\n" for line in indices)


def read(data: DataConfig, folder: Path, count: int) -> None:
    """Open the prepared pairs, read `count` batches of 2,048 tokens, and print time and memory."""
    begin = time.monotonic()
    prepared = prepare(data, CleanConfig(), folder, max_length=256)
    print(f"opened again in {time.monotonic() - begin:.1f} s")
    before, begin = anonymous_memory(), time.monotonic()
    feed = batches(prepared.train, batch_tokens=2_048, seed=1, pad_id=prepared.vocabulary.source.pad_id)
    next(feed)
    first = time.monotonic() - begin
    for _ in islice(feed, count - 1):
        pass
    rest = 1000 * (time.monotonic() - begin - first) / (count - 1)
    print(
        f"the first batch after {first:.1f} s, the next {count - 1:,} after {rest:.1f} ms each; "
        f"{anonymous_memory() - before:.0f} MiB of memory more than before"
    )


def anonymous_memory() -> float:
    """Return the memory of this process without mapped files, in MiB."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon")) / 2**10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--words", type=int, default=10, help="words of a sentence, about")
    parser.add_argument("--batches", type=int, default=2_000, help="batches to read")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        maker = multiprocessing.Process(target=make, args=(folder, options.pairs, options.words))
        maker.start()
        maker.join()
        data = DataConfig(train=("source", "target"), data_dir=name)
        begin = time.monotonic()
        prepared = prepare(data, CleanConfig(), folder / "data", max_length=256)
        seconds = time.monotonic() - begin
        context = multiprocessing.get_context("spawn")
        reader = context.Process(target=read, args=(data, folder / "data", options.batches))
        reader.start()
        reader.join()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(prepared.report.text())
    print(f"{options.pairs:,} pairs in {seconds:.0f} s: {options.pairs / seconds:,.0f} a second; peak {peak:.2f} GiB")


if __name__ == "__main__":
    main()
