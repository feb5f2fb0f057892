from dataclasses import replace
from typing import cast

import pytest
import torch
from torch import Tensor

from allyouneed.config import ModelConfig
from allyouneed.explain.recording import recorded
from allyouneed.nn import Memory, MultiHeadAttention, Transformer
from allyouneed.nn.value_residual import ValueResidual
from twins import scatter

LATER = {"positions": "rotary", "query_key_norm": True}


@pytest.fixture(params=[{}, {"norm": "pre"}, LATER], ids=str)
def mixed(request: pytest.FixtureRequest, config: ModelConfig) -> Transformer:
    torch.manual_seed(1)
    changed = replace(config, encoder_layers=3, decoder_layers=3, value_residual=True, **request.param)
    model = Transformer(changed).eval()
    scatter(model)
    return model


def test_a_mix_by_hand() -> None:
    mix = ValueResidual()
    with torch.no_grad():
        mix.share.fill_(0.25)
    torch.testing.assert_close(mix(torch.tensor([[[[4.0]]]]), torch.tensor([[[[8.0]]]])), torch.tensor([[[[5.0]]]]))


def test_every_attention_but_the_first_of_its_kind_starts_with_the_mean(config: ModelConfig) -> None:
    model = Transformer(replace(config, value_residual=True, encoder_layers=3, decoder_layers=2))
    parts = {name: part.share.tolist() for name, part in model.named_modules() if isinstance(part, ValueResidual)}
    assert parts == {
        f"{name}.value_residual": [0.5]
        for name in (
            "encoder.layers.1.attention",
            "encoder.layers.2.attention",
            "decoder.layers.1.self_attention",
            "decoder.layers.1.cross_attention",
        )
    }


def test_attention_uses_the_mean_of_its_values_and_the_first() -> None:
    """Of linear maps: mixing the values is mixing the attended vectors."""
    plain, mixing = (MultiHeadAttention(d_model=12, heads=3, mixes_values=mixes).eval() for mixes in (False, True))
    mixing.load_state_dict(plain.state_dict(), strict=False)
    x = torch.randn(2, 5, 12)
    other = torch.randn(2, 5, 12)
    mean = (plain(x, x, x) + plain(x, x, other)) / 2
    torch.testing.assert_close(mixing(x, x, x, None, plain.value(other)), mean)


def test_a_share_of_zero_is_the_papers_model(mixed: Transformer, source: Tensor, target: Tensor) -> None:
    paper = Transformer(replace(mixed.config, value_residual=False)).eval()
    paper.load_state_dict({name: tensor for name, tensor in mixed.state_dict().items() if "share" not in name})
    assert not torch.allclose(mixed(source, target), paper(source, target))
    for part in mixed.modules():
        if isinstance(part, ValueResidual):
            part.share.detach().zero_()
    torch.testing.assert_close(mixed(source, target), paper(source, target))


def test_steps_with_a_state_equal_the_full_pass(mixed: Transformer, source: Tensor, target: Tensor) -> None:
    full, state = mixed(source, target), mixed.start(source)
    for position in range(target.size(1)):
        logits, state = mixed.step(target[:, position], state)
        torch.testing.assert_close(logits, full[:, position])


def test_neither_later_tokens_nor_padding_matter(mixed: Transformer, source: Tensor, target: Tensor) -> None:
    changed = target.clone()
    changed[:, 2:] = 3
    torch.testing.assert_close(mixed(source, changed)[:, :2], mixed(source, target)[:, :2])
    longer = torch.nn.functional.pad(source, (0, 3))
    torch.testing.assert_close(mixed(longer, target), mixed(source, target))


def test_recorded_values_are_the_mixed_ones(mixed: Transformer, source: Tensor, target: Tensor) -> None:
    with recorded(mixed) as seen:
        mixed(source, target)
    with torch.no_grad():
        memory = Memory(*mixed.encode(source)).hidden_states
        parts = [cast(MultiHeadAttention, mixed.get_submodule(f"decoder.layers.{i}.cross_attention")) for i in (0, 1)]
        first, second = (part.project_kv(memory, memory, parts[0].value(memory))[1] for part in parts)
    torch.testing.assert_close(seen["decoder.layers.0.cross_attention.value"], first)
    torch.testing.assert_close(seen["decoder.layers.1.cross_attention.value"], second)
