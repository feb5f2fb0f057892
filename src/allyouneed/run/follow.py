"""What a worker does in a run that the first worker directs."""

from pathlib import Path

import torch

from ..data.prepared import open_prepared
from ..device import pick_device, using_threads
from ..fast.workers import WorkerGroup
from ..younger import build_model
from ..younger.muon import build_optimizer
from .checkpoint import CHECKPOINT_FILE, load_checkpoint
from .interrupts import catch_interrupts
from .log import RunLog
from .processes import Task
from .run import Run
from .run_languages import find_languages
from .setup import OptimizerFactory, Setup


def follow(optimizer_factory: OptimizerFactory = build_optimizer) -> Path:
    """Take part in the run of the default process group, and return its folder; nothing is printed or written."""
    workers = WorkerGroup()
    task = workers.from_first(_task_of_the_first)
    if task.is_finished:
        return task.output
    plan = task.recipe
    data = open_prepared(task.data_folder, plan.data, max_length=plan.model.max_length)
    model = build_model(data.vocabulary.with_vocab_size(plan.model)).to(pick_device(plan.train.device), torch.float32)
    optimizer = optimizer_factory(model, plan.train)
    setup = Setup(
        recipe=plan, output=task.output, data=data, data_folder=task.data_folder, model=model, optimizer=optimizer,
        languages=find_languages(plan)[0], workers=workers.count, threads=task.threads,
    )  # fmt: skip
    state = load_checkpoint(task.output / CHECKPOINT_FILE, model, optimizer, data=data.identity())
    with using_threads(task.threads), catch_interrupts() as interrupt:
        Run(setup, state, RunLog(task.output, tensorboard=False), workers).train(interrupt)
    return task.output


def _task_of_the_first() -> Task:
    raise NotImplementedError("only the first worker knows the task")
