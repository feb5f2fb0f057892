"""Random models in plain Python, and recordings of searches that `replay.c` computes again."""

import random
import struct
from array import array
from pathlib import Path
from typing import NamedTuple

from allyouneed.config import ModelConfig
from allyouneed.native.engine import Precision, as_structure, list_weights


class RandomWeights:
    """Random weights of a config; gains are near 1, matrices have the deviation of Glorot and Bengio (2010)."""

    def __init__(self, config: ModelConfig, seed: int) -> None:
        rng = random.Random(seed)
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.numbers: dict[str, array[float]] = {}
        for weight in list_weights(config):
            if weight is None:
                continue
            rows, columns = (*weight.shape, 1)[:2]
            deviation = 0.1 if len(weight.shape) == 1 else (2 / (rows + columns)) ** 0.5
            mean = 1.0 if weight.name.endswith("gain") else 0.0
            self.shapes[weight.name] = weight.shape
            self.numbers[weight.name] = array("f", [rng.gauss(mean, deviation) for _ in range(rows * columns)])

    def address(self, name: str) -> int:
        return self.numbers[name].buffer_info()[0]


class RecordedSearch(NamedTuple):
    """Sources, and for each step which hypotheses it continues, and with which tokens."""

    sources: list[list[int]]
    steps: list[tuple[list[int], list[int]]]


def record_search(config: ModelConfig, seed: int, *, sentences: int = 3, steps: int = 8) -> RecordedSearch:
    """Make a search at random: sentences have different numbers of hypotheses, and one leaves early."""
    rng = random.Random(seed)
    longest = min(config.max_length, 40)
    lengths = [rng.choice([1, 2, longest // 2, longest]) for _ in range(sentences)]
    sources = [[rng.randrange(config.vocab_size) for _ in range(length)] for length in lengths]
    sentence_of = list(range(sentences))
    recorded = []
    for step in range(min(steps, config.max_length)):
        left = [b for b in sorted(set(sentence_of)) if step < 4 or b != 1 or sentences == 1]
        hypotheses = []
        for b in left:
            rows = [n for n, sentence in enumerate(sentence_of) if sentence == b]
            hypotheses += sorted(rng.choices(rows, k=rng.choice([1, 2, 4, 7])))
        tokens = [rng.randrange(config.effective_target_vocab_size) for _ in hypotheses]
        sentence_of = [sentence_of[n] for n in hypotheses]
        recorded.append((hypotheses, tokens))
    return RecordedSearch(sources, recorded)


def write_recording(
    path: Path, config: ModelConfig, weights: RandomWeights, precision: Precision, search: RecordedSearch
) -> None:
    """Write what `replay.c` reads."""
    listed = list_weights(config)
    parts = [bytes(as_structure(config, precision)), struct.pack("i", len(listed))]
    for weight in listed:
        numbers = weights.numbers[weight.name] if weight else array("f")
        parts += [struct.pack("i", len(numbers)), numbers.tobytes()]
    integers = [
        len(search.sources),
        *map(len, search.sources),
        *(token for source in search.sources for token in source),
    ]
    integers.append(len(search.steps))
    for hypotheses, tokens in search.steps:
        integers += [len(tokens), *hypotheses, *tokens]
    path.write_bytes(b"".join(parts) + array("i", integers).tobytes())
