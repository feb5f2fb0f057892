"""The fast way through a model in training is held equal to the model itself."""

from dataclasses import replace
from typing import Literal

import pytest
import torch
from torch import Tensor

from allyouneed.config import ModelConfig, TrainConfig
from allyouneed.data.batch import Batch
from allyouneed.nn import Transformer
from allyouneed.train import fast_forward
from allyouneed.train.fast_forward import LONGEST, hidden_states
from allyouneed.train.loop import add_gradients
from allyouneed.train.rounding import round_down, round_up

CONFIG = ModelConfig(
    vocab_size=17, d_model=24, d_ff=40, heads=3, encoder_layers=2, decoder_layers=2, dropout=0.2, max_length=200
)
SOURCE = torch.tensor([[1, 5, 6, 7, 2], [1, 4, 2, 0, 0], [1, 9, 9, 2, 0]])
TARGET = torch.tensor([[1, 6, 5, 3, 8, 9, 4], [1, 4, 0, 0, 0, 0, 0], [1, 3, 0, 0, 0, 0, 0]])


def trained(model: Transformer, vectors: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    """The vectors, and the gradients of a sum over the real tokens."""
    model.zero_grad()
    weights = torch.arange(1, vectors.size(-1) + 1) / vectors.size(-1)
    (vectors[TARGET != 0] * weights).square().sum().backward()  # type: ignore[no-untyped-call]
    gradients = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    return vectors.detach(), gradients


def test_a_hook_added_between_two_updates_is_called() -> None:
    model, seen = Transformer(CONFIG), list[int]()
    hidden_states(model, SOURCE, TARGET, torch.float32)
    hook = model.get_submodule("encoder.layers.1").register_forward_hook(lambda *_: seen.append(1))
    hidden_states(model, SOURCE, TARGET, torch.float32)
    assert seen == [1]
    hook.remove()
    hidden_states(model, SOURCE, TARGET, torch.float32)
    assert seen == [1]


def compare(config: ModelConfig, dtype: torch.dtype) -> dict[str, tuple[Tensor, Tensor]]:
    """What the fast way and the model have, with the same random numbers."""
    torch.manual_seed(1)
    model = Transformer(config).train()
    torch.manual_seed(2)
    fast, gradients = trained(model, hidden_states(model, SOURCE, TARGET, dtype))
    drawn = torch.get_rng_state()
    torch.manual_seed(2)
    with torch.autocast("cpu", dtype=dtype, enabled=dtype != torch.float32):
        slow = model.hidden_states(SOURCE, TARGET)
    exact, expected = trained(model, slow.float())
    assert torch.equal(drawn, torch.get_rng_state())
    real = TARGET != 0
    assert gradients.keys() == expected.keys()
    return {"vectors": (fast[real], exact[real])} | {name: (gradients[name], expected[name]) for name in expected}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"dropout": 0.0},
        {"tied_embeddings": "none", "d_k": 4, "d_v": 4},
        {"positions": "rotary"},
        {"query_key_norm": True},
        {"positions": "rotary", "query_key_norm": True},
    ],
)
def test_in_float32_vectors_gradients_and_random_numbers_are_those_of_the_model(changes: dict[str, object]) -> None:
    for name, (fast, exact) in compare(replace(CONFIG, **changes), torch.float32).items():  # type: ignore[arg-type]
        torch.testing.assert_close(fast, exact, atol=2e-4, rtol=1e-4, msg=name)


def test_in_bfloat16_they_differ_by_rounding() -> None:
    for name, (fast, exact) in compare(CONFIG, torch.bfloat16).items():
        if not name.endswith("key.bias"):  # softmax cancels it: its gradient is rounding alone
            assert (fast - exact).norm() < 0.05 * exact.norm(), name


@pytest.mark.parametrize("changes", [{"norm": "pre"}, {"activation": "gelu"}, {"attention_dropout": 0.3}, {"d_k": 5}])
def test_other_models_go_through_the_model_itself(changes: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast_forward, "_through_encoder", None)
    compare(replace(CONFIG, **changes), torch.float32)  # type: ignore[arg-type]


def test_so_do_models_with_a_part_that_was_replaced_and_long_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast_forward, "_through_encoder", None)
    model = Transformer(CONFIG)
    long = torch.ones(1, LONGEST + 1, dtype=torch.int64)
    assert hidden_states(model, long, TARGET[:1], torch.float32).shape == (1, 7, 24)
    custom = Transformer(CONFIG)
    custom.encoder.layers[0].feed_forward = torch.nn.Identity()
    assert hidden_states(custom, SOURCE, TARGET, torch.float32).shape == (3, 7, 24)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_training_goes_this_way(precision: Literal["float32", "bfloat16"], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast_forward, "_through_encoder", None)
    with pytest.raises(TypeError, match="'NoneType' object is not callable"):
        add_gradients(Transformer(CONFIG), [Batch(SOURCE, TARGET)], TrainConfig(precision=precision))


def test_round_numbers_are_few_and_at_most_an_eighth_away() -> None:
    for rows in range(1, 5_000):
        up, down = round_up(rows), round_down(rows)
        assert rows <= up < rows + max(16, rows / 8 + 1)
        assert down <= rows
        assert round_up(up) == up
        assert rows < 16 or (round_down(down) == down > rows - max(16, rows / 8 + 1))
    assert len({round_up(rows) for rows in range(1_024, 2_049)}) == 9
