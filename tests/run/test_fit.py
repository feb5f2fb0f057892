"""A damaged file of a run is refused in one line, or made good; never a trace, never another model."""

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from allyouneed import fit
from allyouneed.errors import AllYouNeedError
from runs import StopAt, eventful, read_weights


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    for position in (len(content) // 3, len(content) // 2):
        content[position] ^= 0x81
    path.write_bytes(content)


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def made_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stopped")
    with pytest.raises(KeyboardInterrupt):
        fit(eventful(), folder / "run", callback=StopAt(8), evaluate=None)
    fit(eventful(), folder / "straight", evaluate=None)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("harm", [truncated, flipped, emptied, Path.unlink, made_a_folder])
def test_every_file_of_a_run_may_be_damaged(stopped: Path, tmp_path: Path, harm: Callable[[Path], None]) -> None:
    run = stopped / "run"
    names = [path.relative_to(run) for path in sorted(run.rglob("*")) if path.stat().st_size and path.is_file()]
    assert len(names) > 15
    for number, name in enumerate(names):
        copy = tmp_path / str(number)
        shutil.copytree(run, copy)
        harm(copy / name)
        with suppress(AllYouNeedError, OSError):  # the command tells both in one line
            fit(eventful(), copy, resume=True, evaluate=None)
            assert read_weights(copy) == read_weights(stopped / "straight"), name
