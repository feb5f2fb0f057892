"""A damaged file of a run is refused in one line, or made good; never a trace, never another model."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from allyouneed import fit
from allyouneed.bundle import Bundle
from allyouneed.errors import AllYouNeedError
from ranks import run_torchrun, train_without_dropout
from runs import StopAt, eventful, read_weights
from waiting import PATIENCE, wait_until


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


pytestmark = pytest.mark.slow

RECIPE = """
[data]
train = "dates:train"
max_train_samples = 200
held_out = 0
vocabulary = "characters"
[model]
d_model = 8
d_ff = 8
heads = 2
encoder_layers = 1
decoder_layers = 1
max_length = 32
[train]
steps = 400
batch_tokens = 200
validate_every = 50
average_checkpoints = 1
threads = 1
tensorboard = false
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


def worker(agents: list[int], rank: int) -> int:
    """Return the process of a worker that one of some agents of torchrun has started."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if parent in agents and f"\0RANK={rank}\0" in (path / "environ").read_text():
                return int(path.name)
        except OSError:
            continue
    raise AssertionError(f"no worker {rank}")


def start_agent(folder: Path, *options: str) -> "subprocess.Popen[str]":
    words = [sys.executable, "-m", "torch.distributed.run", "--max-restarts=1", *options]
    return subprocess.Popen(
        [*words, "-m", "allyouneed", "train", "tiny.toml", "-o", "run"],
        cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_a_killed_worker_is_replaced_and_the_run_goes_on(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(RECIPE)
    agent = start_agent(tmp_path, "--nproc-per-node=2")
    wait_until((tmp_path / "run/config.json").exists, agent)
    os.kill(worker([agent.pid], 1), signal.SIGKILL)
    output, errors = agent.communicate(timeout=PATIENCE)
    assert agent.returncode == 0, errors
    assert output == ""
    log = (tmp_path / "run/log.txt").read_text()
    assert log.count("workers  2 processes") == 2
    assert log.count("resume   continuing after ") == 1
    assert errors.count(" is in run") == 1  # the first worker alone prints
    assert Bundle.load(tmp_path / "run").model.config.d_model == 8
    steps = [line.split(",")[0] for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert len(steps) == len(set(steps)) == 8


def test_two_machines_train_one_model_and_go_on_after_a_worker_of_one_was_killed(tmp_path: Path) -> None:
    """Two agents of torchrun, each with one worker."""
    recipe = RECIPE.replace("steps = 400", "steps = 60").replace("validate_every = 50", "validate_every = 20")
    (tmp_path / "tiny.toml").write_text(recipe)
    meeting = f"--rdzv-endpoint=127.0.0.1:{free_port()}"
    options = ("--nnodes=2", "--nproc-per-node=1", "--rdzv-backend=c10d", meeting, "--local-addr=127.0.0.1")
    agents = [start_agent(tmp_path, *options) for _ in range(2)]
    wait_until((tmp_path / "run/config.json").exists, agents[0])
    os.kill(worker([agent.pid for agent in agents], 1), signal.SIGKILL)
    with ThreadPoolExecutor() as pool:
        results = list(pool.map(lambda agent: agent.communicate(timeout=PATIENCE), agents))
    assert [agent.returncode for agent in agents] == [0, 0], results
    assert sum(errors.count(" is in run") for _, errors in results) == 1
    log = (tmp_path / "run/log.txt").read_text()
    assert log.count("resume   continuing after ") == 1
    assert len((tmp_path / "run/metrics.jsonl").read_text().splitlines()) == 3


def losses(folder: Path) -> list[float]:
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [row[key] for row in rows for key in ("loss", "valid_loss")]


@pytest.mark.parametrize(
    ("optimizer", "tolerance"),
    [("adamw", 1e-5), ("muon", 1e-2)],  # Muon's orthogonal matrices enlarge what rounding made different, ever more
)
def test_two_then_four_processes_then_one_continue_a_run_with_the_losses_of_one(
    tmp_path: Path, optimizer: str, tolerance: float
) -> None:
    train = partial(train_without_dropout, optimizer=optimizer)
    train(tmp_path / "straight")
    for count, steps in ((2, 4), (4, 8), (1, 12)):
        assert run_torchrun(tmp_path, count, partial(train, steps=steps)) == [0] * count
    assert losses(tmp_path / "run") == pytest.approx(losses(tmp_path / "straight/run"), rel=1e-3)
    model, other = (Bundle.load(tmp_path / name).model.state_dict() for name in ("run", "straight/run"))
    for name, tensor in model.items():
        if not name.endswith("key.bias"):  # softmax cancels it: its gradient is rounding alone, which Adam enlarges
            assert (tensor - other[name]).abs().max() < tolerance, name
