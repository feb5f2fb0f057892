"""Random models in plain Python, and recordings of searches that `replay.c` computes again."""

from __future__ import annotations

import random
import struct
from array import array
from pathlib import Path
from typing import Any, NamedTuple

from allyouneed.config import ModelConfig
from allyouneed.native.engine import Precision, as_structure, list_weights

# A swapped axis or a wrong stride survives none of these: sizes differ, and few are multiples of 4 or 16.
CONFIGS = {
    "post": ModelConfig(vocab_size=301, d_model=64, d_ff=96, heads=4, encoder_layers=2, decoder_layers=2),
    "pre, rotary, gelu, two vocabularies": ModelConfig(
        vocab_size=301, target_vocab_size=77, d_model=36, d_ff=50, heads=3, encoder_layers=1, decoder_layers=3,
        tied_embeddings="none", norm="pre", positions="rotary", activation="gelu", projection_bias=True,
    ),
    "learned positions, silu, query-key norm, odd widths": ModelConfig(
        vocab_size=68, d_model=30, d_ff=20, heads=2, d_k=5, d_v=7, encoder_layers=2, decoder_layers=1,
        positions="learned", activation="silu", query_key_norm=True, max_length=60, tied_embeddings="target",
    ),
    "both positions, wide": ModelConfig(
        vocab_size=1000, d_model=128, d_ff=512, heads=2, encoder_layers=1, decoder_layers=1, norm="pre",
        positions="sinusoidal-rotary", query_key_norm=True, max_length=600,
    ),
}  # fmt: skip


def random_weights(config: ModelConfig, seed: int) -> dict[str, memoryview[Any]]:
    """Draw the weights of a config; gains are near 1, matrices have the deviation of Glorot and Bengio (2010)."""
    rng = random.Random(seed)
    weights: dict[str, memoryview[Any]] = {}
    for weight in filter(None, list_weights(config)):
        rows, columns = (*weight.shape, 1)[:2]
        deviation = 0.1 if len(weight.shape) == 1 else (2 / (rows + columns)) ** 0.5
        mean = 1.0 if weight.name.endswith("gain") else 0.0
        numbers = array("f", [rng.gauss(mean, deviation) for _ in range(rows * columns)])
        weights[weight.name] = memoryview(numbers.tobytes()).cast("f", weight.shape)
    return weights


class RecordedSearch(NamedTuple):
    """Sources, and for each step which hypotheses it continues, and with which tokens."""

    sources: list[list[int]]
    steps: list[tuple[list[int], list[int]]]


def record_search(
    config: ModelConfig, seed: int, *, sentences: int = 3, steps: int = 8, longest: int = 40
) -> RecordedSearch:
    """Make a search at random: sentences have different numbers of hypotheses, and one leaves early."""
    rng = random.Random(seed)
    longest = min(config.max_length, longest)
    lengths = [rng.choice([1, 2, longest // 2, longest]) for _ in range(sentences)]
    sources = [[rng.randrange(1, config.vocab_size) for _ in range(length)] for length in lengths]  # 0 is padding
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
    path: Path, config: ModelConfig, weights: dict[str, memoryview[Any]], precision: Precision, search: RecordedSearch
) -> None:
    """Write what `replay.c` reads."""
    listed = list_weights(config)
    structure = as_structure(config, precision)
    structure.watched = True  # so that the sanitizers see that, too
    parts = [bytes(structure), struct.pack("i", len(listed))]
    for weight in listed:
        numbers = weights[weight.name].tobytes() if weight else b""
        parts += [struct.pack("i", len(numbers) // 4), numbers]
    integers = [
        len(search.sources),
        *map(len, search.sources),
        *(token for source in search.sources for token in source),
    ]
    integers.append(len(search.steps))
    for hypotheses, tokens in search.steps:
        integers += [len(tokens), *hypotheses, *tokens]
    path.write_bytes(b"".join(parts) + array("i", integers).tobytes())
