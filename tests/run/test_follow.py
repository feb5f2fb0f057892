"""Workers that torchrun starts: one run, which goes on after one of them was killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from allyouneed.bundle import Bundle

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


def worker(agent: int, rank: int) -> int:
    """The process of a worker that an agent of torchrun has started."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == agent and f"\0RANK={rank}\0" in (path / "environ").read_text():
                return int(path.name)
        except OSError:
            continue
    raise AssertionError(f"no worker {rank}")


def test_a_killed_worker_is_replaced_and_the_run_goes_on(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(RECIPE)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--max-restarts=1"]
    agent = subprocess.Popen(
        [*torchrun, "-m", "allyouneed", "train", "tiny.toml", "-o", "run"],
        cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    while not (tmp_path / "run/config.json").exists():
        assert agent.poll() is None, agent.communicate()
        time.sleep(0.02)
    os.kill(worker(agent.pid, 1), signal.SIGKILL)
    output, errors = agent.communicate(timeout=120)
    assert agent.returncode == 0, errors
    assert output == ""
    log = (tmp_path / "run/log.txt").read_text()
    assert log.count("workers  2 processes of torchrun share every batch") == 2
    assert log.count("resume   continuing after update ") == 1
    assert errors.count("The model is in run") == 1  # the first worker alone prints
    assert Bundle.load(tmp_path / "run").model.config.d_model == 8
    steps = [line.split(",")[0] for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert len(steps) == len(set(steps)) == 8
