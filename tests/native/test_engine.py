"""The engine in C computes what `nn/` does, in every precision and by every instruction set."""

from __future__ import annotations

import gc
import os
import random
import threading
from array import array
from dataclasses import replace
from itertools import count
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
import torch

from allyouneed.config import ModelConfig
from allyouneed.decode import Restriction
from allyouneed.errors import ConfigError, InputError, SlowerEngineWarning
from allyouneed.native import library
from allyouneed.native.engine import NativeEngine, NativeStep, Precision
from allyouneed.native.library import POSITION_FIELDS, instruction_sets
from allyouneed.nn import Transformer
from allyouneed.nn.weights import set_weights
from allyouneed.younger import build_model
from recordings import CONFIGS, random_weights, record_search

CONFIG = CONFIGS["post"]
every_config = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
every_precision = pytest.mark.parametrize("precision", ["float32", "int8"])


def shape_of(view: memoryview[Any]) -> tuple[int, ...]:
    assert view.shape
    return view.shape


def make(config: ModelConfig, precision: Precision = "float32") -> NativeEngine:
    return NativeEngine(config, random_weights(config, 1), precision)


def definition(config: ModelConfig) -> Transformer:
    model = build_model(config).eval()
    set_weights(model, {name: torch.frombuffer(bytearray(view.tobytes()), dtype=torch.float32).view(shape_of(view))
                        for name, view in random_weights(config, 1).items()})  # fmt: skip
    return model


def replayed(engine: NativeEngine, seed: int = 3, longest: int = 40) -> list[np.ndarray]:
    search = record_search(engine.config, seed, longest=longest)
    step = engine.start(search.sources)
    found = []
    for hypotheses, tokens in search.steps:
        step(hypotheses, tokens)
        found.append(step.log_probabilities().copy())
    return found


@every_config
@torch.inference_mode()
def test_every_hypothesis_has_the_log_probabilities_of_the_definition(config: ModelConfig) -> None:
    model = definition(config)
    search = record_search(config, 3, longest=70)
    sentences = list(range(len(search.sources)))
    prefixes: list[list[int]] = [[] for _ in sentences]
    for found, (hypotheses, tokens) in zip(replayed(make(config), longest=70), search.steps, strict=True):
        prefixes = [[*prefixes[n], token] for n, token in zip(hypotheses, tokens, strict=True)]
        sentences = [sentences[n] for n in hypotheses]
        for row, prefix, sentence in zip(found, prefixes, sentences, strict=True):
            logits = model(torch.tensor([search.sources[sentence]]), torch.tensor([prefix]))[0, -1]
            torch.testing.assert_close(torch.from_numpy(row), logits.log_softmax(-1), atol=2e-5, rtol=0)


def test_every_scheme_of_positions_is_compared() -> None:
    schemes = set(get_args(get_type_hints(ModelConfig)["positions"]))
    assert schemes == set(POSITION_FIELDS) == {config.positions for config in CONFIGS.values()}


@every_config
def test_int8_rounds_by_a_few_percent(config: ModelConfig) -> None:
    exact, rounded = (np.concatenate(replayed(make(config, precision))) for precision in ("float32", "int8"))
    assert 0 < np.sqrt(((exact - rounded) ** 2).mean()) < 0.05 * exact.std()


@every_config
@every_precision
def test_every_instruction_set_gives_the_same_bits(
    config: ModelConfig, precision: Precision, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for name in instruction_sets():
        monkeypatch.setenv("ALLYOUNEED_ISA", name)
        found.append(np.concatenate(replayed(make(config, precision))))
    assert instruction_sets()[-1] == "plain"
    for other in found:
        np.testing.assert_array_equal(other, found[-1])


def test_sums_of_the_greatest_levels_are_exact_with_every_instruction_set(monkeypatch: pytest.MonkeyPatch) -> None:
    # Weights of a row are alike, so all have the greatest level that two neighbours may have; inputs have all levels.
    weights = random_weights(CONFIG, 1)
    for name, view in weights.items():
        if name.endswith(".weight"):
            rows, columns = shape_of(view)
            alike = array("f", [(-1) ** row * 0.3 for row in range(rows) for _ in range(columns)])
            weights[name] = memoryview(alike.tobytes()).cast("f", (rows, columns))
    found = []
    for name in instruction_sets():
        monkeypatch.setenv("ALLYOUNEED_ISA", name)
        found.append(np.concatenate(replayed(NativeEngine(CONFIG, weights, "int8"))))
    for other in found:
        np.testing.assert_array_equal(other, found[-1])


@every_precision
def test_a_sentence_has_the_same_bits_alone_and_in_any_batch(precision: Precision) -> None:
    engine = make(CONFIG, precision)
    rng = random.Random(5)
    sources = [[rng.randrange(301) for _ in range(rng.randrange(1, 90))] for _ in range(9)]
    tokens = [rng.randrange(301) for _ in range(6)]

    def written(step: NativeStep, rows: int) -> list[np.ndarray]:
        found = []
        for token in tokens:
            step(range(rows), [token] * rows)
            found.append(step.log_probabilities().copy())
        return found

    together = written(engine.start(sources), len(sources))
    for b, source in enumerate(sources):
        for alone, batch in zip(written(engine.start([source]), 1), together, strict=True):
            np.testing.assert_array_equal(alone[0], batch[b])


def test_positions_beyond_those_that_are_known_at_the_start() -> None:
    config = replace(CONFIGS["both positions, wide"], encoder_layers=1)
    rng = random.Random(6)
    source = [rng.randrange(1, 1000) for _ in range(600)]
    step = make(config).start([source])
    step([0], [3])
    with torch.inference_mode():
        logits = definition(config)(torch.tensor([source]), torch.tensor([[3]]))[0, -1]
    found = torch.from_numpy(step.log_probabilities()[0].copy())
    torch.testing.assert_close(found, logits.log_softmax(-1), atol=2e-5, rtol=0)


def test_the_best_continuations_are_those_of_a_sorted_list() -> None:
    search = record_search(CONFIG, 8)
    step = make(CONFIG).start(search.sources)
    sentences = list(range(len(search.sources)))
    rng = random.Random(8)
    for hypotheses, tokens in search.steps:
        step(hypotheses, tokens)
        sentences = [sentences[n] for n in hypotheses]
        totals = [rng.choice([-rng.random(), float("-inf")]) for _ in hypotheses]
        rows = step.log_probabilities().astype(float)
        for amount in (1, 8, 1000):
            expected = []
            for b in sorted(set(sentences)):
                continued = [
                    (-(totals[n] + rows[n, token]), n, token)
                    for n, sentence in enumerate(sentences)
                    for token in range(301)
                    if sentence == b and totals[n] > float("-inf")
                ]
                expected.append([(-total, n, token) for total, n, token in sorted(continued)[:amount]])
            assert [[tuple(one) for one in found] for found in step.best(totals, amount)] == expected


def test_banned_ids_get_nothing_and_the_others_share_it() -> None:
    engine = make(CONFIG)
    shared, kept, free = (
        engine.start([[5, 6]], banned_ids=banned, renormalize=renormalize)
        for banned, renormalize in (([0, 7], True), ([0, 7], False), ((), True))
    )
    for step in (shared, kept, free):
        step([0], [1])
    others = np.delete(np.arange(301), [0, 7])
    for step in (shared, kept):
        assert np.isneginf(step.log_probabilities()[0, [0, 7]]).all()
    np.testing.assert_array_equal(kept.log_probabilities()[0, others], free.log_probabilities()[0, others])
    assert np.exp(shared.log_probabilities()[0, others].astype(float)).sum() == pytest.approx(1)


def test_a_restriction_penalizes_then_forces_and_bans_unless_nothing_is_left() -> None:
    step = make(CONFIG).start([[5, 6], [7]])
    step([0, 0, 1], [1, 2, 3])
    before = step.log_probabilities().copy()
    step.restrict(0, Restriction(penalized={4, 9}, penalty=1.5, banned=[2, 2, 4]))
    step.restrict(1, Restriction(forced=11))
    step.restrict(2, Restriction(forced=11, banned=[11]))
    after = step.log_probabilities()
    assert after[0, 9] == before[0, 9] * np.float32(1.5)
    assert np.isneginf(after[0, [2, 4]]).all()
    assert step.log_probability(1, 11) == before[1, 11]
    assert np.isfinite(after[1]).sum() == 1
    np.testing.assert_array_equal(after[2], before[2])


def test_what_is_not_there_is_refused_before_anything_is_computed() -> None:
    engine = make(CONFIG)
    refused: list[list[list[int]]] = [[[301]], [[-1]], [[]], [[1] * 513]]
    for sources in refused:
        with pytest.raises(InputError):
            engine.start(sources)
    with pytest.raises(InputError):
        engine.start([[1]], banned_ids=[301])
    step = engine.start([[1], [2]])
    for hypotheses, tokens in (([2], [1]), ([-1], [1]), ([0], [301]), ([0], [-1]), ([], [])):
        with pytest.raises(InputError):
            step(hypotheses, tokens)
    with pytest.raises(InputError):
        step.restrict(0, Restriction(banned=[1]))  # before the first step
    step([0, 1], [1, 1])
    for restriction in (Restriction(banned=[301]), Restriction(forced=301), Restriction(penalized=[-1])):
        with pytest.raises(InputError):
            step.restrict(0, restriction)
    with pytest.raises(InputError):
        step.restrict(2, Restriction(banned=[1]))


def test_a_target_is_no_longer_than_the_model() -> None:
    step = make(replace(CONFIG, max_length=5)).start([[1]])
    with pytest.raises(InputError):  # noqa: PT012  the sixth token
        for length in count(1):
            step([0], [1])
            assert length <= 5


def test_weights_of_other_names_shapes_or_numbers_are_refused() -> None:
    weights = random_weights(CONFIG, 1)
    name = "decoder.layers.1.feed_forward.inner.weight"
    missing = {key: value for key, value in weights.items() if key != name}
    transposed = weights | {name: memoryview(weights[name].tobytes()).cast("f", (64, 96))}
    doubles = weights | {name: memoryview(array("d", [0.0] * 64 * 96).tobytes()).cast("d", (96, 64))}
    for wrong in (missing, weights | {"more": weights[name]}, transposed, doubles):
        with pytest.raises(ConfigError, match="more|inner.weight"):
            NativeEngine(CONFIG, wrong, "float32")
    for number in (float("nan"), float("inf")):
        for broken in weights:
            numbers = array("f", weights[broken].tobytes())
            numbers[-1] = number
            with pytest.raises(ConfigError):
                NativeEngine(
                    CONFIG,
                    weights | {broken: memoryview(numbers.tobytes()).cast("f", shape_of(weights[broken]))},
                    "int8",
                )


def test_an_instruction_set_that_the_processor_lacks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALLYOUNEED_ISA", "abacus")
    with pytest.raises(ConfigError, match="abacus"):
        make(CONFIG)


def test_two_models_in_one_process_do_not_touch_each_other() -> None:
    engines = [make(config, precision) for config in list(CONFIGS.values())[:2] for precision in ("float32", "int8")]
    alone = [replayed(engine) for engine in engines]
    searches = [record_search(engine.config, 3) for engine in engines]
    steps = [engine.start(search.sources) for engine, search in zip(engines, searches, strict=True)]
    for position in range(min(len(search.steps) for search in searches)):
        for step, search, expected in zip(steps, searches, alone, strict=True):
            step(*search.steps[position])
            np.testing.assert_array_equal(step.log_probabilities(), expected[position])


def test_forty_threads_share_a_model() -> None:
    engine = make(CONFIG, "int8")
    expected = np.concatenate(replayed(engine))
    found: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda: found.append(np.concatenate(replayed(engine)))) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 40
    for one in found:
        np.testing.assert_array_equal(one, expected)


def test_a_process_may_fork_after_a_model_was_made() -> None:
    engine = make(CONFIG, "int8")
    expected = np.concatenate(replayed(engine))
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.write(write, b"same" if np.array_equal(np.concatenate(replayed(engine)), expected) else b"other")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 8) == b"same"
    os.close(read)
    os.close(write)


def test_a_search_outlives_the_engine_that_nobody_else_holds() -> None:
    engine = make(CONFIG)
    expected = replayed(engine)[0]
    search = record_search(CONFIG, 3)
    step = engine.start(search.sources)
    del engine
    gc.collect()
    step(*search.steps[0])
    np.testing.assert_array_equal(step.log_probabilities(), expected)


def test_a_library_that_was_compiled_from_other_files_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "sources_digest", lambda: "0123456789abcdef")
    with pytest.warns(SlowerEngineWarning, match="allyouneed.native.build"):
        assert library.load_library.__wrapped__() is None
