"""Give the engine random models and searches, many of which must be refused: `fuzz.py LIBRARY ROUNDS`."""

from __future__ import annotations

import random
import sys
from array import array
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from allyouneed.config import ModelConfig
from allyouneed.decode import Restriction
from allyouneed.errors import AllYouNeedError
from allyouneed.native import engine as native_engine
from allyouneed.native import library
from allyouneed.native.engine import NativeEngine, Precision, as_structure
from recordings import random_weights

AS_STRUCTURE = as_structure


def random_config(rng: random.Random) -> ModelConfig:
    heads = rng.choice([1, 2, 3])
    return ModelConfig(
        vocab_size=rng.choice([2, 17, 64, 200]),
        target_vocab_size=rng.choice([3, 63, 65, 300]),
        tied_embeddings=rng.choice(["none", "target"]),
        d_model=heads * 2 * rng.randrange(1, 12),
        d_ff=rng.randrange(1, 70),
        heads=heads,
        d_k=rng.choice([None, 2, 3, 17]),
        d_v=rng.choice([None, 1, 16, 19]),
        encoder_layers=rng.randrange(1, 3),
        decoder_layers=rng.randrange(1, 3),
        max_length=rng.randrange(1, 40),
        positions=rng.choice(["sinusoidal", "learned", "rotary", "sinusoidal-rotary"]),
        norm=rng.choice(["post", "pre"]),
        activation=rng.choice(["relu", "gelu", "silu"]),
        query_key_norm=rng.random() < 0.5,
        projection_bias=rng.random() < 0.5,
    )


def damage(weights: dict[str, memoryview[Any]], rng: random.Random) -> dict[str, memoryview[Any]]:
    """Cut a weight short, leave one out, or put something that is not a number into one."""
    name = rng.choice(list(weights))
    numbers = array("f", weights[name].tobytes())
    kind = rng.choice(["cut", "missing", "infinite", "extreme"])
    if kind == "missing":
        return {key: value for key, value in weights.items() if key != name}
    if kind == "cut":
        return weights | {name: memoryview(numbers.tobytes()[:-4]).cast("f")}
    numbers[rng.randrange(len(numbers))] = float("inf") if kind == "infinite" else 3e38
    return weights | {name: memoryview(numbers.tobytes()).cast("f", weights[name].shape or ())}


def switch(rng: random.Random) -> library.Config:
    """Let the next engine be watched, or without the causal mask, or neither. Returns its switches."""
    switches = library.Config(watched=rng.random() < 0.5, acausal=rng.random() < 0.2)

    def as_structure(config: ModelConfig, precision: Precision) -> library.Config:
        structure = AS_STRUCTURE(config, precision)
        structure.watched, structure.acausal = switches.watched, switches.acausal
        return structure

    vars(native_engine)["as_structure"] = as_structure
    return switches


def run(rng: random.Random) -> None:
    config = random_config(rng)
    weights = random_weights(config, rng.randrange(1000))
    if rng.random() < 0.3:
        weights = damage(weights, rng)
    switches = switch(rng)
    engine = NativeEngine(config, weights, rng.choice(["float32", "int8"]))

    def ids(size: int, count: int) -> list[int]:
        wild = rng.random() < 0.02
        return [rng.choice([-1, size, 2**31 - 1, -(2**31)]) if wild and rng.random() < 0.2 else rng.randrange(size)
                for _ in range(count)]  # fmt: skip

    sources = [ids(config.vocab_size, rng.randrange(0 if rng.random() < 0.02 else 1, config.max_length + 1))
               for _ in range(rng.randrange(1, 5))]  # fmt: skip
    step = engine.start(sources, banned_ids=ids(config.effective_target_vocab_size, rng.randrange(3)),
                        renormalize=rng.random() < 0.5)  # fmt: skip
    rows = len(sources)
    for length in range(1, rng.randrange(1, config.max_length + 3)):
        count = rng.randrange(1, 9)
        if switches.acausal and rng.random() < 0.98:
            count *= length  # as many rows as tokens
        hypotheses = sorted(ids(rows, count))
        step(hypotheses, ids(config.effective_target_vocab_size, count))
        rows = count
        if rng.random() < 0.3:
            restriction = Restriction(
                banned=ids(config.effective_target_vocab_size, rng.randrange(9)),
                penalized=ids(config.effective_target_vocab_size, rng.randrange(9)),
                penalty=rng.choice([0.0, 1.2, float("inf")]),
                forced=rng.choice([None, *ids(config.effective_target_vocab_size, 1)]),
            )
            step.restrict(ids(rows, 1)[0], restriction)
        totals = [rng.choice([0.0, -3.5, float("-inf"), float("nan")]) for _ in range(rows)]
        for found in step.best(totals, rng.choice([1, 5, 1000])):
            for one in found:
                assert 0 <= one.hypothesis < rows
                assert 0 <= one.token < config.effective_target_vocab_size


def main() -> None:
    vars(library)["LIBRARY"] = Path(sys.argv[1])
    rng = random.Random(0)
    done = refused = 0
    for _ in range(int(sys.argv[2])):
        try:
            run(rng)
            done += 1
        except (AllYouNeedError, MemoryError):
            refused += 1
    print(done, refused)


if __name__ == "__main__":
    main()
