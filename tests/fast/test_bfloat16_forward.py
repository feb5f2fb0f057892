"""The fast pass of training in bfloat16 is held equal to the model itself; in float32, to rounding."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from allyouneed.config import ModelConfig, TrainConfig
from allyouneed.data.batch import Batch
from allyouneed.fast import bfloat16_forward
from allyouneed.fast.bfloat16_forward import LONGEST, bfloat16_loss, is_supported, through_model
from allyouneed.fast.loss import round_down, round_up
from allyouneed.nn import Transformer
from allyouneed.train import batch_loss
from allyouneed.younger import build_model

CONFIG = ModelConfig(
    vocab_size=17, d_model=24, d_ff=40, heads=3, encoder_layers=2, decoder_layers=2, dropout=0.2, max_length=200
)
SOURCE = torch.tensor([[1, 5, 6, 7, 2], [1, 4, 2, 0, 0], [1, 9, 9, 2, 0]])
TARGET = torch.tensor([[1, 6, 5, 3, 8, 9, 4], [1, 4, 0, 0, 0, 0, 0], [1, 3, 0, 0, 0, 0, 0]])


def trained(model: Transformer, vectors: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the vectors, and the gradients of a sum over the real tokens."""
    model.zero_grad()
    weights = torch.arange(1, vectors.size(-1) + 1) / vectors.size(-1)
    (vectors[TARGET != 0] * weights).square().sum().backward()  # type: ignore[no-untyped-call]
    gradients = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    return vectors.detach(), gradients


def compare(config: ModelConfig, dtype: torch.dtype) -> dict[str, tuple[Tensor, Tensor]]:
    """Compute with the fast way and with the model, with the same random numbers."""
    torch.manual_seed(1)
    model = build_model(config).train()
    torch.manual_seed(2)
    fast, gradients = trained(model, through_model(model, SOURCE, TARGET, dtype))
    drawn = torch.get_rng_state()
    torch.manual_seed(2)
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
        {"positions": "sinusoidal-rotary"},
        {"query_key_norm": True},
        {"positions": "rotary", "query_key_norm": True},
    ],
)
def test_in_float32_vectors_gradients_and_random_numbers_are_those_of_the_model(changes: dict[str, object]) -> None:
    for name, (fast, exact) in compare(replace(CONFIG, **changes), torch.float32).items():  # type: ignore[arg-type]
        torch.testing.assert_close(fast, exact, atol=2e-4, rtol=1e-4, msg=name)


def test_in_bfloat16_they_differ_from_float32_by_rounding() -> None:
    for name, (fast, exact) in compare(CONFIG, torch.bfloat16).items():
        if not name.endswith("key.bias"):  # softmax cancels it: its gradient is rounding alone
            assert (fast - exact).norm() < 0.1 * exact.norm(), name


@pytest.mark.parametrize("changes", [{"norm": "pre"}, {"activation": "gelu"}, {"attention_dropout": 0.3}, {"d_k": 5}])
def test_other_models_are_not_supported(changes: dict[str, object]) -> None:
    assert is_supported(Transformer(CONFIG))
    assert not is_supported(Transformer(replace(CONFIG, **changes)))  # type: ignore[arg-type]


def test_long_sentences_go_through_the_model_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bfloat16_forward, "through_model", None)
    model, settings = Transformer(replace(CONFIG, dropout=0.0)), TrainConfig(precision="float32")
    long = Batch(torch.ones(1, LONGEST + 1, dtype=torch.int64), TARGET[:1])
    torch.testing.assert_close(bfloat16_loss(model, long, settings), batch_loss(model, long, settings))
    with pytest.raises(TypeError, match="'NoneType'"):
        bfloat16_loss(model, Batch(SOURCE, TARGET), settings)


def test_round_numbers_are_few_and_at_most_an_eighth_away() -> None:
    for rows in range(1, 5_000):
        up, down = round_up(rows), round_down(rows)
        assert rows <= up < rows + max(16, rows / 8 + 1)
        assert down <= rows
        assert round_up(up) == up
        assert rows < 16 or (round_down(down) == down > rows - max(16, rows / 8 + 1))
    assert len({round_up(rows) for rows in range(1_024, 2_049)}) == 9
