import pytest
import torch

from allyouneed.apps.explain.theory import THEORY, rotation
from allyouneed.nn import sinusoids


@pytest.mark.parametrize("step", [1, 7])
def test_moving_on_is_one_rotation_wherever_from(step: int) -> None:
    encoding = sinusoids(40, 16)
    turn = rotation(step, 16)
    torch.testing.assert_close(encoding[:-step] @ turn.T, encoding[step:], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(turn @ turn.T, torch.eye(16), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", THEORY)
def test_every_picture_can_be_drawn(name: str) -> None:
    assert len(THEORY[name]().axes) >= 1
