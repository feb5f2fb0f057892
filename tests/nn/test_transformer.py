"""What a Transformer is, as properties, and held against `torch.nn.Transformer`."""

import math
from dataclasses import replace
from typing import Literal

import pytest
import torch
from torch import nn

from allyouneed.config import ModelConfig
from allyouneed.errors import InputError
from allyouneed.nn import Transformer, causal_mask
from twins import same_decoder_layer, same_encoder_layer, same_norm, scatter


def test_ids_become_logits(model: Transformer, source: torch.Tensor, target: torch.Tensor) -> None:
    assert model(source, target).shape == (2, 7, 13)


def test_a_word_never_sees_the_words_after_it(model: Transformer, source: torch.Tensor, target: torch.Tensor) -> None:
    before = model(source, target)
    for position in range(1, target.size(1)):
        changed = target.clone()
        changed[:, position:] = 6
        torch.testing.assert_close(model(source, changed)[:, :position], before[:, :position])
        assert not torch.allclose(model(source, changed)[:, position], before[:, position])


def test_padding_changes_nothing(model: Transformer, source: torch.Tensor, target: torch.Tensor) -> None:
    alone = model(source[1:, :4], target[1:, :4])
    torch.testing.assert_close(model(source, target)[1:, :4], alone)


def test_every_word_of_the_source_matters(model: Transformer, source: torch.Tensor, target: torch.Tensor) -> None:
    before = model(source, target)
    for position in range(source.size(1)):
        changed = source.clone()
        changed[0, position] = 12
        assert not torch.allclose(model(changed, target)[0], before[0])


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_whole_equals_that_of_pytorch(
    config: ModelConfig, source: torch.Tensor, target: torch.Tensor, norm: Literal["post", "pre"]
) -> None:
    ours = Transformer(replace(config, norm=norm)).eval()
    scatter(ours)
    layer = nn.TransformerEncoderLayer(12, 3, 20, norm_first=norm == "pre", batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(12), enable_nested_tensor=False)
    reference = nn.Transformer(
        12, 3, 2, 3, 20, norm_first=norm == "pre", batch_first=True, custom_encoder=encoder
    ).eval()
    for their_layer, our_layer in zip(reference.encoder.layers, ours.encoder.layers, strict=True):
        same_encoder_layer(their_layer, our_layer)
    for their_decoder_layer, our_decoder_layer in zip(reference.decoder.layers, ours.decoder.layers, strict=True):
        same_decoder_layer(their_decoder_layer, our_decoder_layer)
    if norm == "pre":
        same_norm(reference.encoder.norm, ours.encoder.norm)  # type: ignore[arg-type]
        same_norm(reference.decoder.norm, ours.decoder.norm)  # type: ignore[arg-type]
    else:  # PyTorch puts a norm at the end of either stack in any case
        reference.encoder.norm = reference.decoder.norm = None
    vectors = reference(
        ours.source_position(ours.source_embedding(source)),
        ours.target_position(ours.target_embedding(target)),
        tgt_mask=~causal_mask(7),
        src_key_padding_mask=source == 0,
        memory_key_padding_mask=source == 0,
    )
    torch.testing.assert_close(ours(source, target), vectors @ ours.projection.table.T)


@pytest.mark.parametrize("share", ["none", "target", "all"])
def test_tables_are_shared_as_asked(config: ModelConfig, share: Literal["none", "target", "all"]) -> None:
    model = Transformer(replace(config, tied_embeddings=share))
    tables = {
        id(table) for table in (model.source_embedding.table, model.target_embedding.table, model.projection.table)
    }
    assert len(tables) == {"none": 3, "target": 2, "all": 1}[share]


def test_the_two_sides_may_have_vocabularies_of_their_own(config: ModelConfig, source: torch.Tensor) -> None:
    model = Transformer(replace(config, target_vocab_size=29, tied_embeddings="target"))
    assert model(source, torch.tensor([[1, 28], [1, 27]])).shape == (2, 2, 29)


def test_parameters_of_a_small_model_counted_by_hand() -> None:
    model = Transformer(
        ModelConfig(
            vocab_size=10, d_model=4, d_ff=6, heads=2, encoder_layers=1, decoder_layers=2, tied_embeddings="all"
        )
    )
    attention = 4 * (4 * 4 + 4)
    feed_forward = (4 * 6 + 6) + (6 * 4 + 4)
    norm = 4 + 4
    encoder = attention + feed_forward + 2 * norm
    decoder = 2 * attention + feed_forward + 3 * norm
    assert model.parameter_count() == 10 * 4 + encoder + 2 * decoder == 40 + 154 + 2 * 242


def test_parameters_of_the_base_model() -> None:
    with torch.device("meta"):
        model = Transformer(ModelConfig())
    # Embedding 37,000 · 512; six encoder blocks of 3,152,384; six decoder blocks of 4,204,032.
    assert model.parameter_count() == 18_944_000 + 6 * 3_152_384 + 6 * 4_204_032 == 63_082_496


def test_the_names_of_the_weights_are_a_public_format() -> None:
    model = Transformer(ModelConfig(vocab_size=9, d_model=4, d_ff=6, heads=2, encoder_layers=1, decoder_layers=1))
    attention = [f"{part}.{kind}" for part in ("query", "key", "value", "output") for kind in ("weight", "bias")]
    feed_forward = [f"feed_forward.{part}.{kind}" for part in ("inner", "outer") for kind in ("weight", "bias")]
    norm = ["norm.gain", "norm.bias"]
    assert [name for name, _ in model.named_parameters()] == [
        "source_embedding.table",
        *(f"encoder.layers.0.attention.{name}" for name in attention),
        *(f"encoder.layers.0.attention_residual.{name}" for name in norm),
        *(f"encoder.layers.0.{name}" for name in feed_forward),
        *(f"encoder.layers.0.feed_forward_residual.{name}" for name in norm),
        *(f"decoder.layers.0.self_attention.{name}" for name in attention),
        *(f"decoder.layers.0.self_attention_residual.{name}" for name in norm),
        *(f"decoder.layers.0.cross_attention.{name}" for name in attention),
        *(f"decoder.layers.0.cross_attention_residual.{name}" for name in norm),
        *(f"decoder.layers.0.{name}" for name in feed_forward),
        *(f"decoder.layers.0.feed_forward_residual.{name}" for name in norm),
    ]


def test_an_untrained_model_knows_nothing(config: ModelConfig) -> None:
    """Its loss is near that of a guess among all words, ln V."""
    model = Transformer(replace(config, vocab_size=1_000, d_model=64, heads=4)).eval()
    source, target = torch.randint(1, 1_000, (8, 9)), torch.randint(1, 1_000, (8, 10))
    logits = model(source, target[:, :-1])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten()).item()
    assert math.isclose(loss, math.log(1_000), rel_tol=0.12)


def test_learned_positions_are_one_word_in_the_config(config: ModelConfig, source: torch.Tensor) -> None:
    model = Transformer(replace(config, positions="learned"))
    names = {name for name, _ in model.named_parameters()}
    assert {"source_position.encoding", "target_position.encoding"} <= names
    assert model(source, source).isfinite().all()


def test_bad_ids_are_refused_at_the_door(model: Transformer, source: torch.Tensor) -> None:
    with pytest.raises(InputError, match="id 13 .*13"):
        model(source, torch.tensor([[1, 13], [1, 2]]))
    with pytest.raises(InputError, match="18 tokens .*max_length=17"):
        model(torch.ones(2, 18, dtype=torch.int64), source)
    with pytest.raises(InputError, match="source must"):
        model(source[0], source)
    with pytest.raises(InputError, match="target must"):
        model(source, source[:, :0])
