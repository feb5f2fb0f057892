import pytest
import torch

from allyouneed.device import at_once, pick_device
from allyouneed.errors import ConfigError


def test_a_device_that_is_not_there_is_refused() -> None:
    assert pick_device("cpu") == torch.device("cpu")
    with pytest.raises(ConfigError, match='device must be "auto", "cpu", "cuda" or "mps"'):
        pick_device("toaster")


@pytest.mark.parametrize("count", [1, 2])
def test_what_is_done_at_once_keeps_its_order_and_each_has_a_thread(count: int) -> None:
    torch.set_num_threads(count)
    with at_once(count) as each:
        assert list(each(lambda n: (n, torch.get_num_threads()), range(9))) == [(n, 1) for n in range(9)]
    assert torch.get_num_threads() == count
    torch.set_num_threads(1)


def test_an_error_among_what_is_done_at_once_is_told() -> None:
    with pytest.raises(ZeroDivisionError), at_once(2) as each:
        list(each(lambda n: 1 // n, [1, 0, 1]))
