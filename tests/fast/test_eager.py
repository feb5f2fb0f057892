"""The quick step is held to the definition, `Transformer`."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from allyouneed.config import ModelConfig
from allyouneed.data.batch import pad
from allyouneed.decode import BeamOptions, SearchLimits, beam_search
from allyouneed.errors import InputError
from allyouneed.fast.engine import EngineStep
from allyouneed.fast.selection import make_engine
from allyouneed.nn import Transformer
from allyouneed.younger import build_model
from conftest import ADJUSTED, ALL_OPTIONS, SMALL
from twins import scatter

SIZES: list[dict[str, Any]] = [
    {},
    {"norm": "pre"},
    {"activation": "gelu"},
    {"activation": "silu", "norm": "pre"},
    {"d_k": 5, "d_v": 7},
    {"positions": "learned", "tied_embeddings": "none"},
    *ADJUSTED,
    {**ALL_OPTIONS, "norm": "pre"},
]
PLAIN_AND_ADJUSTED = pytest.mark.parametrize("sizes", [{}, ALL_OPTIONS], ids=["plain", "adjusted"])


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("sizes", SIZES)
def test_it_equals_the_full_pass(
    config: ModelConfig, sizes: dict[str, Any], compiled: bool, source: torch.Tensor, target: torch.Tensor
) -> None:
    model = build_model(replace(config, **sizes)).eval()
    scatter(model)
    fast = make_engine(model, compiled=compiled)
    for rows in (slice(0, 2), slice(1, 2)):  # two sentences, and one whose source is padded
        with torch.inference_mode():
            full, state = model(source[rows], target[rows]), fast.start(source[rows])
            for position in range(target.size(1)):
                logits, state = fast.step(target[rows, position], state)
                torch.testing.assert_close(logits, full[:, position], atol=1e-5, rtol=1e-4)
        assert state.length == target.size(1)


@given(
    st.integers(0, 2**31),
    st.integers(1, 6),
    st.integers(1, 3),
    st.booleans(),
    st.sampled_from([{}, ALL_OPTIONS]),
)
@settings(deadline=None, max_examples=25)
def test_any_way_through_a_beam_equals_the_full_pass(
    seed: int, width: int, sentences: int, compiled: bool, sizes: dict[str, Any]
) -> None:
    """Hypotheses are dropped and forked, and sentences leave, at every step."""
    rng = torch.Generator().manual_seed(seed)
    config = ModelConfig(vocab_size=13, d_model=12, d_ff=20, heads=3, encoder_layers=1, decoder_layers=2, max_length=90)
    model = build_model(replace(config, **sizes)).eval()
    fast = make_engine(model, compiled=compiled)
    source = torch.randint(1, 13, (sentences, 5), generator=rng)
    with torch.inference_mode():
        state = fast.start(source).reorder(torch.arange(sentences).repeat_interleave(width))
        written = torch.ones(sentences, width, 1, dtype=torch.int64)
        for _ in range(6):
            logits, state = fast.step(written[:, :, -1].flatten(), state)
            expected = model(source.repeat_interleave(width, 0), written.flatten(0, 1))[:, -1]
            torch.testing.assert_close(logits, expected, atol=1e-5, rtol=1e-4)
            parents = torch.randint(width, (len(source), width), generator=rng)
            state = state.reorder((torch.arange(len(source))[:, None] * width + parents).flatten())
            written = written.gather(1, parents[:, :, None].expand_as(written))
            if len(source) > 1 and torch.rand((), generator=rng) < 0.4:
                kept = torch.randperm(len(source), generator=rng)[:-1]
                source, written, state = source[kept], written[kept], state.keep(kept)
            new = torch.randint(1, 13, (*written.shape[:2], 1), generator=rng)
            written = torch.cat((written, new), 2)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_state_is_not_changed_by_the_step_it_goes_into(source: torch.Tensor, compiled: bool) -> None:
    """Two futures of one past do not see each other, though they share its storage."""
    model = build_model(replace(SMALL, norm="pre")).eval()
    fast, source = make_engine(model, compiled=compiled), source[:1]
    with torch.inference_mode():
        _, state = fast.step(torch.tensor([1]), fast.start(source))
        _, state = fast.step(torch.tensor([5]), state)
        _, one = fast.step(torch.tensor([3]), state)
        _, other = fast.step(torch.tensor([7]), state)
        for future, word in ((one, 3), (other, 7)):
            logits, _ = fast.step(torch.tensor([9]), future)
            target = torch.tensor([[1, 5, word, 9]])
            torch.testing.assert_close(logits, model(source, target)[:, -1], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("compiled", [False, True])
@PLAIN_AND_ADJUSTED
def test_many_steps_outgrow_the_first_storage(config: ModelConfig, compiled: bool, sizes: dict[str, Any]) -> None:
    model = build_model(replace(config, max_length=150, **sizes)).eval()
    fast = make_engine(model, compiled=compiled)
    target = torch.randint(1, 13, (1, 150))
    with torch.inference_mode():
        state = fast.start(target[:, :6]).reorder(torch.tensor([0, 0]))
        for word in target[0]:
            logits, state = fast.step(word.repeat(2), state)
        torch.testing.assert_close(logits[:1], model(target[:, :6], target)[:, -1], atol=1e-5, rtol=1e-4)
        with pytest.raises(InputError, match="sequence of 151 tokens is longer than max_length=150"):
            fast.step(torch.tensor([3, 3]), state)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("sizes", [{}, *ADJUSTED])
def test_int8_is_near_float32(config: ModelConfig, compiled: bool, sizes: dict[str, Any]) -> None:
    model = build_model(replace(config, vocab_size=900, d_model=128, d_ff=900, heads=4, **sizes)).eval()
    exact, fast = make_engine(model), make_engine(model, precision="int8", compiled=compiled)
    with torch.inference_mode():
        for rows in (1, 2, 40):
            source = torch.randint(1, 900, (rows, 7))
            expected, _ = exact.step(torch.ones(rows, dtype=torch.int64), exact.start(source))
            logits, _ = fast.step(torch.ones(rows, dtype=torch.int64), fast.start(source))
            assert not torch.equal(logits, expected)
            assert (logits - expected).std() < 0.05 * expected.std()


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_a_step_may_give_log_probabilities(
    config: ModelConfig, source: torch.Tensor, precision: str, compiled: bool
) -> None:
    fast = make_engine(build_model(config).eval(), precision=precision, compiled=compiled)
    never = torch.tensor([0, 5])
    with torch.inference_mode():
        for rows in (slice(0, 1), slice(0, 2)):
            last = torch.full((len(source[rows]),), 3)
            logits, _ = fast.step(last, fast.start(source[rows]))
            expected = logits.index_fill(1, never, -torch.inf).log_softmax(-1)
            results, state = fast.log_probabilities(last, fast.start(source[rows]), never)
            torch.testing.assert_close(results, expected, atol=1e-5, rtol=1e-5)
            assert state.length == 1


WAYS = [(precision, compiled) for precision in ("float32", "int8") for compiled in (False, True)]


@pytest.mark.parametrize("engine", [None, *WAYS])
def test_every_way_refuses_the_same_with_the_same_error(
    engine: tuple[str, bool] | None, model: Transformer, source: torch.Tensor
) -> None:
    fast = make_engine(model, precision=engine[0], compiled=engine[1]) if engine else model
    with torch.inference_mode():
        for rows in (1, 2):
            state = fast.start(source[:rows])
            for word in (-1, 13, 10_000):
                with pytest.raises(InputError, match=rf"id {word} is outside the vocabulary of 13 \(0 to 12\)"):
                    fast.step(torch.full((rows,), word), state)
                with pytest.raises(InputError, match=rf"id {word} is outside the vocabulary of 13 \(0 to 12\)"):
                    fast.start(torch.full((rows, 3), word))
            with pytest.raises(InputError, match="ids must be whole numbers, such as torch.int64; got torch.float32"):
                fast.step(torch.ones(rows), state)
            with pytest.raises(InputError, match="ids must be whole numbers"):
                fast.start(torch.ones(rows, 3))
        for ids in (torch.ones(3, dtype=torch.int64), torch.ones(2, 0, dtype=torch.int64)):
            with pytest.raises(InputError, match=r"source must be ids of shape \(sentences, length\); got shape"):
                fast.start(ids)
        with pytest.raises(InputError, match="a sequence of 18 tokens is longer than max_length=17"):
            fast.start(torch.ones(1, 18, dtype=torch.int64))


@pytest.mark.slow
@pytest.mark.parametrize(("precision", "compiled"), WAYS)
@PLAIN_AND_ADJUSTED
def test_a_translation_does_not_depend_on_its_batch(precision: str, compiled: bool, sizes: dict[str, Any]) -> None:
    """60 sources: alone, in pairs, all at once, and sorted by length."""
    torch.manual_seed(0)
    config = ModelConfig(vocab_size=1_000, d_model=128, d_ff=512, heads=4, encoder_layers=2, decoder_layers=2)
    model = build_model(replace(config, **sizes)).eval()
    fast = make_engine(model, precision=precision, compiled=compiled)
    step = EngineStep(fast, banned_ids=(0, 1))
    lengths = torch.randint(4, 22, (60,)).tolist()
    sources = [[1, *torch.randint(3, 1_000, (length,)).tolist(), 2] for length in lengths]

    @torch.inference_mode()
    def translated(rows: list[list[int]]) -> list[list[int]]:
        results = beam_search(
            step,
            fast.start(pad(rows, 0)),
            SearchLimits(sos_id=1, eos_id=2, max_lengths=torch.full((len(rows),), 10)),
            BeamOptions(beam=4, alpha=0.6),
        )
        return [hypotheses[0].ids for hypotheses in results]

    alone = [translated([source])[0] for source in sources]
    pairs = [ids for i in range(0, 60, 2) for ids in translated(sources[i : i + 2])]
    order = sorted(range(60), key=lambda i: lengths[i])
    by_length = dict(zip(order, translated([sources[i] for i in order]), strict=True))
    for others in (pairs, translated(sources), [by_length[i] for i in range(60)]):
        assert others == alone
