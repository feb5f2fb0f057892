"""Processes of one group of `torch.distributed` for tests, each of which trains its part."""

import multiprocessing
import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from allyouneed import fit
from allyouneed.config import ModelConfig, TrainConfig
from allyouneed.data.batch import Batch
from allyouneed.fast.micro_batches import MicroBatches
from allyouneed.fast.workers import WorkerGroup, Workers
from allyouneed.nn import Transformer
from allyouneed.nn.weights import weights
from allyouneed.run.processes import process_group
from allyouneed.train import add_gradients, updates
from allyouneed.younger.muon import build_optimizer
from runs import TINY
from waiting import PATIENCE

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["allyouneed.run", "torch._dynamo"])  # the second, Adam imports

MODEL = ModelConfig(vocab_size=13, d_model=12, d_ff=20, heads=3, encoder_layers=1, decoder_layers=2, dropout=0.0)
TRAIN = TrainConfig(steps=6, warmup=3, learning_rate=0.01, schedule="constant", clip_norm=0.5, accumulate_steps=2)
TRAININGS = {
    "adam": TRAIN,
    "muon": replace(TRAIN, optimizer="muon"),
    "bfloat16": replace(TRAIN, precision="bfloat16"),
}


def batches(count: int) -> list[Batch]:
    """Draw batches of different lengths; the last has one pair."""
    generator = torch.Generator().manual_seed(3)
    sizes = [(4, 5, 6), (3, 7, 4), (1, 6, 9)]
    return [
        Batch(*(torch.randint(3, 13, (pairs, length), generator=generator) for length in lengths))
        for pairs, *lengths in islice(cycle(sizes), count)
    ]


def part(batch: Batch, rank: int, count: int) -> Batch:
    return Batch(batch.source[rank::count], batch.target[rank::count])


def train_part(workers: Workers, config: TrainConfig = TRAIN) -> tuple[list[float], dict[str, torch.Tensor]]:
    """Train as one of some workers: the losses of all updates, and the weights at the end."""
    torch.manual_seed(workers.rank)  # the weights of the first count
    model = Transformer(MODEL)
    optimizer = build_optimizer(model, config)
    workers.attach(model, optimizer)
    parts = (part(batch, workers.rank, workers.count) for batch in batches(12))
    gradients = workers.gradients(add_gradients, first=1)
    losses = []
    for update in updates(model, optimizer, parts, config, gradients=gradients):
        workers.agree(0)
        losses.append(update.loss.item())
    return losses, {name: tensor.clone() for name, tensor in weights(model).items()}


def run_ranks(folder: Path, count: int, act: Callable[[Path], None], **environment: str) -> None:
    """Call `act` with the folder in `count` processes of one group; refuses a process that fails."""
    assert exit_codes(folder, count, act, **environment) == [0] * count


def exit_codes(folder: Path, count: int, act: Callable[[Path], None], **environment: str) -> list[int | None]:
    """Return the exit codes of `count` processes of one group that call `act` with the folder."""
    return _exit_codes(_run, [(folder, rank, count, act, environment) for rank in range(count)])


def run_torchrun(folder: Path, count: int, act: Callable[[Path], None]) -> list[int | None]:
    """Return the exit codes of `count` processes that call `act` as if torchrun had started them."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    return _exit_codes(_run_as_torchrun, [(folder, rank, count, act, port) for rank in range(count)])


def _exit_codes(act: Callable[..., None], arguments: Sequence[tuple[Any, ...]]) -> list[int | None]:
    processes = [FORKS.Process(target=act, args=some, daemon=True) for some in arguments]
    for process in processes:
        process.start()
    for process in processes:
        process.join(PATIENCE)
        assert process.exitcode is not None, "a process does not end"
    return [process.exitcode for process in processes]


def save_trained(folder: Path) -> None:
    """Train as one worker of a group, with both optimizers and in both precisions, and save what each ends with."""
    for name, config in TRAININGS.items():
        torch.save(train_part(WorkerGroup(), config), folder / f"{name}{dist.get_rank()}.pt")


def save_troubled(folder: Path) -> None:
    """Train while the second worker has gradients that are not finite at first, and later too little memory."""
    rank, calls = dist.get_rank(), 0

    def troubled(model: Transformer, batches: Sequence[Batch], config: TrainConfig) -> tuple[Tensor, Tensor]:
        nonlocal calls
        calls += 1
        if rank == 1 and calls == 5:
            raise MemoryError
        loss, norm = add_gradients(model, batches, config)
        if rank == 1 and calls == 2:
            next(model.parameters()).grad.fill_(torch.nan)  # type: ignore[union-attr]
        return loss, norm

    torch.manual_seed(0)
    model = Transformer(MODEL)
    optimizer, workers, fitting = build_optimizer(model, TRAIN), WorkerGroup(), MicroBatches(troubled)
    workers.attach(model, optimizer)
    parts = (part(batch, rank, workers.count) for batch in batches(12))
    done = updates(model, optimizer, parts, TRAIN, gradients=workers.gradients(fitting, first=1))
    torch.save([(bool(update.is_finite), fitting.count + workers.agree(0)) for update in done], folder / f"{rank}.pt")


def train_without_dropout(folder: Path, **train: Any) -> None:
    """Train a whole run in `folder`/run, or the rest of it."""
    settings = {
        "optimizer": "muon", "schedule": "constant", "learning_rate": 0.01, "batch_tokens": 80, "accumulate_steps": 2,
        "clip_norm": 1.0, "average_checkpoints": 1, **train,
    }  # fmt: skip
    model = replace(TINY.model, dropout=0.0, d_ff=6, decoder_layers=2)
    fit(replace(TINY, model=model, train=replace(TINY.train, **settings)), folder / "run", resume=True)


def _run(folder: Path, rank: int, count: int, act: Callable[[Path], None], environment: dict[str, str]) -> None:
    torch.set_num_threads(1)
    os.environ.update(environment, GLOO_SOCKET_IFNAME="lo")
    with process_group(f"file://{folder}/store", rank=rank, count=count):
        act(folder)


def _run_as_torchrun(folder: Path, rank: int, count: int, act: Callable[[Path], None], port: int) -> None:
    torch.set_num_threads(1)
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(count), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(count))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
    act(folder)
