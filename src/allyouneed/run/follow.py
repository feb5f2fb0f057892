"""What a worker does in a run that the first worker directs."""

from pathlib import Path

import torch

from ..data.prepared import open_prepared
from ..device import pick_device, using_threads
from ..nn import Transformer
from ..train.optimizer import make_optimizer
from ..train.workers import WorkerGroup
from .callback import SilentCallback
from .checkpoint import CHECKPOINT_FILE, load_checkpoint
from .interrupts import catch_interrupts
from .log import RunLog
from .processes import Task
from .run import OptimizerFactory, Run
from .run_languages import find_languages


def follow(optimizer_factory: OptimizerFactory = make_optimizer) -> Path:
    """Take part in the run of the default process group, and return its folder; nothing is printed or written."""
    workers = WorkerGroup()
    task = workers.from_first(_task_of_the_first)
    if task.is_finished:
        return task.output
    plan = task.recipe
    data = open_prepared(task.data_folder, plan.data, max_length=plan.model.max_length)
    config = data.vocabulary.with_vocab_size(plan.model)
    model = Transformer(config).to(pick_device(plan.train.device), torch.float32)
    optimizer = optimizer_factory(model, plan.train)
    state = load_checkpoint(task.output / CHECKPOINT_FILE, model, optimizer, data=data.identity())
    with using_threads(task.threads), catch_interrupts() as interrupt:
        run = Run(
            plan, task.output, data, model, optimizer, state,
            languages=find_languages(plan)[0], callback=SilentCallback(), evaluate=None,
            log=RunLog(task.output, tensorboard=False), workers=workers,
        )  # fmt: skip
        run.train(interrupt)
    return task.output


def _task_of_the_first() -> Task:
    raise NotImplementedError("only the first worker knows the task")
