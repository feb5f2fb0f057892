"""Numbers that workers exchange through shared memory reach all of them, and a worker that has ended is noticed."""

import signal
from pathlib import Path

import torch

from ranks import exit_codes, save_exchanged


def test_every_exchange_has_the_numbers_of_all_and_a_killed_worker_is_noticed(tmp_path: Path) -> None:
    assert exit_codes(tmp_path, 3, save_exchanged) == [0, 0, -signal.SIGKILL]
    for rank in range(3):
        assert torch.load(tmp_path / f"{rank}.pt") == [[10 * turn, 10 * turn + 1, 10 * turn + 2] for turn in range(300)]
