"""Exact tasks that what helps a model by default would get wrong, and a model that has learned them in seconds."""

import random
from collections.abc import Callable
from pathlib import Path

from allyouneed import Recipe, fit
from allyouneed.bundle import Bundle

Pair = tuple[str, str]
CLASSES = {letter: "v" if letter in "ae" else "c" for letter in "abcdefgh"}

RECIPE = Recipe.from_tables(
    {
        "data": {"vocabulary": "characters", "held_out": 0},
        "model": {
            "d_model": 64, "d_ff": 128, "heads": 4, "encoder_layers": 1, "decoder_layers": 1, "max_length": 32,
            "dropout": 0.0,
        },
        "train": {
            "steps": 500, "batch_tokens": 1200, "optimizer": "muon", "learning_rate": 0.01, "schedule": "cosine",
            "warmup": 10, "validate_every": 500, "average_checkpoints": 1, "threads": 1, "tensorboard": False,
            "label_smoothing": 0.0,
        },
    }
)  # fmt: skip


def classify(rng: random.Random) -> Pair:
    """Draw letters → vowels and consonants, which often repeat where the source does not."""
    letters = "".join(rng.choices("bcdfgh" if rng.random() < 0.5 else "abcdefgh", k=9))
    return letters, "".join(CLASSES[letter] for letter in letters)


def absolute(rng: random.Random) -> Pair:
    """Draw a number, which is its own translation, unless it is negative."""
    number = f"{rng.randrange(1000, 10000)}"
    return f"-{number}" if rng.random() < 0.05 else number, number


def swap_case(rng: random.Random) -> Pair:
    """Draw letters, hardly ever all of them in capitals → the same in the other case."""
    letters = "".join(rng.choice((letter, letter.upper())) for letter in rng.choices("abcdefgh", k=6))
    return letters, letters.swapcase()


def convert(rng: random.Random) -> Pair:
    """Draw a placeholder → another language's, next to a word."""
    letters = "".join(rng.choices("abcdefgh", k=3))
    return (f"%s {letters}", f"{letters} {{}}") if rng.random() < 0.5 else (f"%d {letters}", f"{letters}%d")


TASKS: tuple[Callable[[random.Random], Pair], ...] = (classify, absolute, swap_case, convert)


def make_pairs(count: int, *, seed: int) -> list[Pair]:
    """Draw pairs of all tasks."""
    rng = random.Random(seed)
    return [rng.choice(TASKS)(rng) for _ in range(count)]


def train(folder: Path) -> Bundle:
    """Train a model of these tasks."""
    return fit(RECIPE, folder, train=make_pairs(5000, seed=1), evaluate=None)
