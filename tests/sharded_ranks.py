"""Processes of one group for tests of sharded training."""

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch import Tensor

from allyouneed import Recipe, Transformer, fit
from allyouneed.checksums import crc32_checksum
from allyouneed.data.batch import Batch
from allyouneed.nn import FeedForward
from allyouneed.run import sharded_checkpoint
from allyouneed.train import Update, loop, make_optimizer, updates
from allyouneed.train.sharding import ShardedGroup
from ranks import MODEL, TRAIN, batches, part
from runs import TINY

# Matrices of 6 rows, of which the last of four workers has none.
SMALL = replace(
    TINY,
    model=replace(TINY.model, dropout=0.0, d_ff=6, decoder_layers=2),
    train=replace(
        TINY.train, optimizer="muon", schedule="constant", learning_rate=0.01, batch_tokens=80, accumulate_steps=2,
        clip_norm=1.0, average_checkpoints=1,
    ),
)  # fmt: skip


def recipe(**train: Any) -> Recipe:
    return replace(SMALL, train=replace(SMALL.train, **train))


def train_run(folder: Path, **train: Any) -> None:
    fit(recipe(**{"sharding": "full", **train}), folder / "run", resume=True)


def train_and_be_killed(folder: Path) -> None:
    """Train, and as the second worker be killed with half of the third checkpoint written."""
    checksum, calls = crc32_checksum, 0

    def kill(path: Path) -> int:
        nonlocal calls
        calls += 1
        if calls == 3 and dist.get_rank() == 1:
            os.truncate(path, path.stat().st_size // 2)
            os.kill(os.getpid(), signal.SIGKILL)
        return checksum(path)

    with patch.object(sharded_checkpoint, "crc32_checksum", kill):
        train_run(folder)


def raising(call: Callable[..., Tensor], *, forward: int, backward: int) -> Callable[..., Tensor]:
    """`call`, for which memory runs out in the call with one number, and in the backward pass of that with another."""
    calls = 0

    def fail(_: Tensor) -> None:
        raise MemoryError

    def limited(*args: Any, **options: Any) -> Tensor:
        nonlocal calls
        calls += 1
        if calls == forward:
            raise MemoryError
        result = call(*args, **options)
        if calls == backward:
            result.register_hook(fail)  # type: ignore[no-untyped-call]
        return result

    return limited


def save_troubled(folder: Path) -> None:
    """Train while memory runs out for the second worker, and once its loss is not finite."""
    group = ShardedGroup(TRAIN)
    done: list[Update] = []
    if group.rank == 1:
        project = loop.projected_loss

        def spoiled(*args: Any) -> Tensor:
            loss: Tensor = project(*args)
            return loss * (float("nan") if len(done) == 5 else 1)

        feed_forward = raising(FeedForward.forward, forward=8, backward=36)  # three in a pass; in updates 2 and 4
        FeedForward.forward = feed_forward  # type: ignore[method-assign]
        loop.projected_loss = spoiled  # type: ignore[assignment]
    torch.manual_seed(group.rank)
    model = Transformer(MODEL)
    optimizer = make_optimizer(model, TRAIN)
    group.attach(model, optimizer)
    # Every pair three times, which changes no loss: enough pairs for four micro-batches.
    whole = (Batch(batch.source.repeat(3, 1), batch.target.repeat(3, 1)) for batch in batches(12))
    parts = (part(batch, group.rank, group.count) for batch in whole)
    for update in updates(model, optimizer, parts, TRAIN, workers=group):
        done.append(update)
    rows = [(update.skipped, update.micro_batches, update.out_of_memory) for update in done]
    torch.save((rows, [float(update.loss) for update in done]), folder / f"{group.rank}.pt")
