"""How fast a corpus is prepared and how much memory that takes, for a corpus of made-up words.

    python benchmarks/prepare.py --pairs 10000000

The words are drawn by Zipf's law, which text roughly follows. The peak is of this process, memory-mapped files
included; making the corpus is another process.
"""

import argparse
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from allyouneed.config import CleanConfig, DataConfig
from allyouneed.data.prepare import prepare

CHUNK = 100_000  # pairs
WORDS = 200_000


def make(folder: Path, pairs: int, words: int) -> None:
    """Write `pairs` lines of about so many words to source and target, the same ones for the same seed."""
    chance = np.random.default_rng(1)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    vocabulary = ["".join(chance.choice(letters, size)) for size in chance.integers(2, 10, WORDS)]
    with (folder / "source").open("w") as source, (folder / "target").open("w") as target:
        for begin in range(0, pairs, CHUNK):
            for file in (source, target):
                lengths = chance.integers(words // 2, 2 * words, min(CHUNK, pairs - begin))
                drawn = np.minimum(chance.zipf(1.2, int(lengths.sum())), WORDS) - 1
                places = np.split(drawn, np.cumsum(lengths)[:-1])
                file.writelines(" ".join([vocabulary[i] for i in line.tolist()]) + "\n" for line in places)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--words", type=int, default=10, help="of a sentence, about")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        maker = multiprocessing.Process(target=make, args=(folder, asked.pairs, asked.words))
        maker.start()
        maker.join()
        data = DataConfig(train=("source", "target"), folder=name)
        begin = time.monotonic()
        prepared = prepare(data, CleanConfig(), folder / "data", max_length=256)
        seconds = time.monotonic() - begin
        begin = time.monotonic()
        prepare(data, CleanConfig(), folder / "data", max_length=256)
        again = time.monotonic() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(prepared.report.text())
    print(f"{asked.pairs:,} pairs in {seconds:.0f} s: {asked.pairs / seconds:,.0f} a second; peak {peak:.2f} GiB")
    print(f"found again, nothing having changed, in {again:.1f} s")


if __name__ == "__main__":
    main()
