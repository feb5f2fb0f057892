import math

import pytest
import torch

from allyouneed.errors import ConfigError, InputError
from allyouneed.nn import LearnedPositions, PositionalEncoding, sinusoids

# d_model 16; the columns shown are dimensions 1, 2, 3, 4, 5 and 16.
SHOWN = [0, 1, 2, 3, 4, 15]
BEFORE = [
    [-1.0169, 3.7117, -3.0031, 0.0366, -2.0964, 1.6234],
    [2.5321, -0.1290, -0.9900, -3.7510, 4.6948, 6.4642],
    [-1.2332, -1.0142, -4.4233, 1.6503, 0.4995, -2.9621],
    [-1.0169, 3.7117, -3.0031, 0.0366, -2.0964, 1.6234],
]
AFTER = [
    [-1.0169, 4.7117, -3.0031, 1.0366, -2.0964, 2.6234],
    [3.3736, 0.4113, -0.6790, -2.8006, 4.7947, 7.4642],
    [-0.3239, -1.4303, -3.8322, 2.4569, 0.6982, -1.9621],
    [-0.8758, 2.7217, -2.1904, 0.6194, -1.8009, 2.6234],
]


def test_the_worked_numbers() -> None:
    x = torch.zeros(1, 4, 16)
    x[0, :, SHOWN] = torch.tensor(BEFORE)
    encoded = PositionalEncoding(d_model=16, max_length=12, dropout=0.0)(x)[0, :, SHOWN]
    torch.testing.assert_close(encoded, torch.tensor(AFTER), atol=1.01e-4, rtol=0)  # both tables are rounded


def test_the_formula_by_hand() -> None:
    encoding = sinusoids(5, 6)
    for position in range(5):
        for i in range(3):
            angle = position / 10_000 ** (2 * i / 6)
            assert math.isclose(encoding[position, 2 * i].item(), math.sin(angle), abs_tol=1e-7)
            assert math.isclose(encoding[position, 2 * i + 1].item(), math.cos(angle), abs_tol=1e-7)
    assert math.isclose(encoding[3, 0].item(), 0.1411, abs_tol=1e-4)


@pytest.mark.parametrize("k", [1, 7, 100])
def test_moving_on_is_a_rotation_that_is_the_same_from_everywhere(k: int) -> None:
    d_model, length = 32, 400
    angles = k / 10_000 ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    turns = [torch.tensor([[a.cos(), a.sin()], [-a.sin(), a.cos()]]) for a in angles]
    rotation = torch.block_diag(*turns).double()  # type: ignore[no-untyped-call]
    torch.testing.assert_close(rotation @ rotation.T, torch.eye(d_model, dtype=torch.float64))
    encoding = sinusoids(length + k, d_model).double()
    torch.testing.assert_close(encoding[:length] @ rotation.T, encoding[k:], atol=1e-5, rtol=0)


def test_it_is_cut_to_the_input() -> None:
    assert PositionalEncoding(d_model=512, max_length=100)(torch.zeros(2, 50, 512)).shape == (2, 50, 512)


def test_a_later_start_gives_the_later_positions() -> None:
    encoding = PositionalEncoding(d_model=6, dropout=0.0)
    whole = encoding(torch.zeros(1, 9, 6))
    torch.testing.assert_close(encoding(torch.zeros(1, 2, 6), start=7), whole[:, 7:])


def test_it_is_a_buffer_that_moves_is_cast_and_learns_nothing() -> None:
    encoding = PositionalEncoding(d_model=6)
    assert list(encoding.parameters()) == []
    assert encoding.state_dict() == {}
    assert encoding.double().encoding.dtype == torch.float64
    assert encoding.to("meta").encoding.device.type == "meta"
    assert not encoding.encoding.requires_grad


def test_learned_positions_are_parameters_and_get_gradients() -> None:
    positions = LearnedPositions(d_model=6, max_length=9, dropout=0.0)
    positions(torch.zeros(2, 4, 6)).sum().backward()  # type: ignore[no-untyped-call]
    assert positions.encoding.grad is not None
    torch.testing.assert_close(positions.encoding.grad[:, 0], torch.tensor([2.0] * 4 + [0.0] * 5))


def test_learned_positions_begin_as_long_as_unscaled_embeddings() -> None:
    lengths = LearnedPositions(d_model=64, max_length=500).encoding.norm(dim=1)
    assert lengths.mean().item() == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("kind", [PositionalEncoding, LearnedPositions])
def test_dropout_falls_on_the_sum(kind: type[PositionalEncoding] | type[LearnedPositions]) -> None:
    dropped = kind(d_model=64, max_length=50, dropout=0.5)(torch.full((3, 50, 64), 10.0))
    assert 0.4 < (dropped == 0).float().mean().item() < 0.6


@pytest.mark.parametrize("kind", [PositionalEncoding, LearnedPositions])
def test_a_sequence_that_is_too_long_is_refused(
    kind: type[PositionalEncoding] | type[LearnedPositions],
) -> None:
    with pytest.raises(InputError, match="6 tokens .*max_length=5"):
        kind(d_model=4, max_length=5)(torch.zeros(1, 6, 4))


def test_an_odd_width_is_refused() -> None:
    with pytest.raises(ConfigError, match="d_model .*got 7"):
        PositionalEncoding(d_model=7)


def test_dropout_must_be_a_share() -> None:
    with pytest.raises(ConfigError, match=r"dropout .*got 1\.5"):
        PositionalEncoding(d_model=4, dropout=1.5)
