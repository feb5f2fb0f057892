"""What is trained is what the files of nn/ say: a fast pass that computes anything else is not used."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from allyouneed import fit
from allyouneed.config import ModelConfig, TrainConfig
from allyouneed.data.batch import Batch
from allyouneed.fast import passes
from allyouneed.fast.bfloat16_forward import bfloat16_loss
from allyouneed.fast.loss import projected_loss
from allyouneed.fast.packed import packed_loss
from allyouneed.fast.passes import choose_loss, find_difference
from allyouneed.nn import (
    DecoderBlock,
    Embedding,
    EncoderBlock,
    FeedForward,
    LayerNorm,
    MultiHeadAttention,
    PositionalEncoding,
    Projection,
    Residual,
    Transformer,
)
from allyouneed.nn.dropout import Dropout
from allyouneed.train import loss as loss_file
from allyouneed.train.gradients import BatchLoss, batch_loss
from allyouneed.younger import build_model
from runs import TINY, Notebook

CONFIG = ModelConfig(
    vocab_size=40, d_model=16, d_ff=24, heads=2, encoder_layers=1, decoder_layers=1, dropout=0.1, max_length=90
)
SETTINGS, BFLOAT16 = TrainConfig(precision="float32"), TrainConfig(precision="bfloat16")
PASSES = [projected_loss, packed_loss, bfloat16_loss]


@pytest.mark.parametrize("loss_of", PASSES)
@pytest.mark.parametrize(
    "sizes", [{}, {"positions": "rotary", "query_key_norm": True}, {"tied_embeddings": "none", "projection_bias": True}]
)
@pytest.mark.parametrize("settings", [{}, {"r_drop": 3.0}, {"label_smoothing": 0.0}])
def test_each_pass_is_that_of_the_model(loss_of: BatchLoss, sizes: dict[str, Any], settings: dict[str, Any]) -> None:
    model, plain = build_model(replace(CONFIG, **sizes)), BFLOAT16 if loss_of is bfloat16_loss else SETTINGS
    assert find_difference(loss_of, model, replace(plain, **settings)) == ""


def test_a_relu_that_rounds_to_the_other_side_of_0_is_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build_model(ModelConfig(vocab_size=97, d_model=64, d_ff=256, heads=4, dropout=0.0, max_length=90))

    def flipped(model: Transformer, batch: Batch, config: TrainConfig) -> Tensor:
        loss = projected_loss(model, batch, config)
        return loss * (1.01 if batch.source[0, 0] == first else 1)

    monkeypatch.setattr(
        passes, "varied_ids", lambda count, size, pad_id, rng: torch.randint(1, size, (count,), generator=rng)
    )
    first = passes._small_batch(model, 0).source[0, 0]
    assert find_difference(flipped, model, SETTINGS) == ""


def test_a_comparison_leaves_no_trace() -> None:
    model = Transformer(CONFIG).eval()
    model.projection.table.grad = torch.ones_like(model.projection.table)
    random = torch.get_rng_state()
    assert find_difference(projected_loss, model, SETTINGS) == ""
    assert torch.equal(torch.get_rng_state(), random)
    assert not model.training
    assert model.projection.table.grad.eq(1).all()
    assert model.get_parameter("encoder.layers.0.attention.query.weight").grad is None


def test_a_comparison_multiplies_exactly_though_tf32_is_allowed() -> None:
    model, seen = Transformer(CONFIG), []

    def noted(*args: Any) -> Tensor:
        seen.append(torch.backends.cuda.matmul.fp32_precision)
        return projected_loss(*args)

    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("high")
        assert find_difference(noted, model, SETTINGS) == ""
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision(before)
    assert set(seen) == {"ieee"}


def changed(kind: type, name: str, change: Callable[[Tensor], Tensor]) -> tuple[type, str, Callable[..., Tensor]]:
    original = getattr(kind, name)
    return kind, name, lambda *args, **more: change(original(*args, **more))


EDITS = {
    "embedding without its scale": changed(Embedding, "forward", lambda x: x / 4),
    "positions twice": changed(PositionalEncoding, "forward", lambda x: x + 0.5),
    "attention of zeros": (MultiHeadAttention, "attention", staticmethod(lambda q, k, v, *_, **__: 0 * q)),
    "attention without its scale": (
        MultiHeadAttention, "attention",
        staticmethod(lambda q, k, v, mask=None, dropout=0.0: ((q @ k.mT).masked_fill(~mask, -1e9)).softmax(-1) @ v),
    ),
    "feed-forward of zeros": changed(FeedForward, "forward", lambda x: 0 * x),
    "no norm": (LayerNorm, "forward", lambda self, x: x * self.gain + self.bias),
    "no residual": (Residual, "forward", lambda self, x, sublayer: self.norm(self.dropout(sublayer(x)))),
    "an encoder without self-attention": (
        EncoderBlock, "forward", lambda self, x, mask: self.feed_forward_residual(x, self.feed_forward),
    ),
    "a decoder without memory": (
        DecoderBlock, "forward",
        lambda self, x, *_: self.feed_forward_residual(x, self.feed_forward),
    ),
    "a projection of another sign": changed(Projection, "forward", lambda x: -x),
}  # fmt: skip


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("loss_of", PASSES)
def test_an_edit_is_trained_whatever_pass_was_meant(
    edit: str, loss_of: BatchLoss, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(1)
    model = Transformer(replace(CONFIG, dropout=0.0))
    batch = Batch(torch.tensor([[1, 5, 6, 2], [1, 4, 2, 0]]), torch.tensor([[1, 6, 5, 3, 2], [1, 4, 2, 0, 0]]))
    settings = BFLOAT16 if loss_of is bfloat16_loss else SETTINGS
    before = batch_loss(model, batch, SETTINGS).item()
    monkeypatch.setattr(passes, "fast_loss", lambda model, config: loss_of)
    assert choose_loss(model, settings) == (loss_of, "")
    monkeypatch.setattr(*EDITS[edit])
    edited = batch_loss(model, batch, SETTINGS).item()
    assert abs(edited - before) > 1e-3
    chosen, reason = choose_loss(model, settings)
    assert chosen(model, batch, settings).item() == pytest.approx(
        edited, abs=0.05 if loss_of is bfloat16_loss else 1e-4
    )
    assert (chosen is batch_loss) == bool(reason)


def excluding_padding(logits: Tensor, target: Tensor, *, smoothing: float) -> Tensor:
    """Smooth over all tokens except the first, which is padding."""
    log_p = logits.log_softmax(-1)
    return -((1 - smoothing) * log_p.gather(-1, target[..., None])[..., 0] + smoothing * log_p[..., 1:].mean(-1))


def focal(logits: Tensor, target: Tensor, *, smoothing: float) -> Tensor:
    """Compute the focal loss (Lin et al., 2017)."""
    log_p = logits.log_softmax(-1).gather(-1, target[..., None])[..., 0]
    return -((1 - log_p.exp()) ** 2) * log_p


@pytest.mark.parametrize("loss_of", PASSES)
@pytest.mark.parametrize("loss", [excluding_padding, focal])
def test_an_edited_loss_is_trained(
    loss: Callable[..., Tensor], loss_of: BatchLoss, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Transformer(replace(CONFIG, vocab_size=4_000))
    settings = replace(BFLOAT16 if loss_of is bfloat16_loss else SETTINGS, label_smoothing=0.1 * (loss is not focal))
    assert find_difference(loss_of, model, settings) == ""
    monkeypatch.setattr(loss_file, "smoothed_cross_entropy", loss)
    assert find_difference(loss_of, model, settings) != ""


def test_a_small_edit_is_seen_in_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*changed(FeedForward, "forward", lambda x: 1.01 * x))
    assert find_difference(bfloat16_loss, Transformer(CONFIG), BFLOAT16) != ""


def test_an_edit_for_training_alone_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    forward = PositionalEncoding.forward
    monkeypatch.setattr(
        PositionalEncoding, "forward", lambda self, x, **more: forward(self, (1 + self.training) * x, **more)
    )
    model = Transformer(CONFIG)
    assert find_difference(packed_loss, model, SETTINGS) != ""
    assert {part.p for part in model.modules() if isinstance(part, Dropout)} == {CONFIG.dropout}


@pytest.mark.parametrize("number", [0, 1, 38, 39])
def test_an_edit_for_a_special_token_is_seen(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Transformer(replace(CONFIG, pad_id=2))
    forward = Embedding.forward
    monkeypatch.setattr(
        Embedding, "forward", lambda self, ids: forward(self, ids).masked_fill((ids == number)[..., None], 0.0)
    )
    assert find_difference(packed_loss, model, SETTINGS) != ""


@pytest.mark.parametrize("loss_of", [projected_loss, packed_loss])
def test_an_attention_of_an_instance_stays(loss_of: BatchLoss) -> None:
    model = Transformer(CONFIG)
    part: Any = model.get_submodule("encoder.layers.0.attention")
    part.attention = custom = lambda query, *_, **__: 0 * query
    assert find_difference(loss_of, model, SETTINGS) != ""
    assert part.attention is custom


def test_a_hook_is_seen() -> None:
    model = Transformer(CONFIG)
    model.encoder.layers[0].register_forward_hook(lambda part, inputs, output: 2 * output)
    assert find_difference(bfloat16_loss, model, BFLOAT16) != ""
    assert find_difference(projected_loss, model, SETTINGS) == ""  # it calls the modules


def test_a_run_says_why_it_trains_by_the_model_alone(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    original = Projection.forward
    monkeypatch.setattr(Projection, "forward", lambda self, x: F.dropout(original(self, x), 0.0) * 3)
    notebook = Notebook()
    fit(TINY, tmp_path / "run", callback=notebook)  # its validations translate, and say nothing more
    (line,) = [line for line in notebook.lines if "more slowly" in line]
    assert line.startswith("model: `nn/` was changed")
    assert "fast pass" in line
