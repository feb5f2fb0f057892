"""`fit`: from a recipe, or a draft of one, to a run that is started or resumed, and the part of a worker in it."""

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import tomli_w
import torch

from ..auto import Draft, preliminary_recipe
from ..bundle import Bundle
from ..config import Recipe, TrainConfig
from ..data.prepared import open_prepared
from ..data.readers import is_task
from ..device import describe_device, pick_device, using_threads
from ..errors import AllYouNeedError
from ..fast.workers import WorkerGroup
from ..files import locked, write_whole
from ..interpreter import environment
from ..interrupts import InterruptRequest, catch_interrupts
from ..train.averaging import copy_weights
from ..younger import build_model
from ..younger.muon import build_optimizer
from .budget import USED_FILE, Stopwatch
from .callback import Evaluator, Reporter, SilentCallback, TrainingCallback, no_report
from .checkpoint import CHECKPOINT_FILE, load_checkpoint, read_state, save_checkpoint
from .estimate import describe_plan, describe_time
from .log import FrameMaker, RunLog
from .preparation import find_languages, has_same_pairs
from .processes import Helpers, Task, group_of_torchrun, is_follower, running_workers, was_restarted
from .run import Run
from .run_folder import as_resumed, has_run, refuse_a_run, refuse_other_recipe
from .setup import OptimizerFactory, Setup, set_up
from .state import TrainState
from .worker_count import CoreChoice, Cores


def run_training(
    recipe: Recipe | Draft,
    output: str | Path,
    *,
    callback: TrainingCallback | None = None,
    evaluate: Evaluator | None = None,
    film: FrameMaker | None = None,
    optimizer: OptimizerFactory = build_optimizer,
    resume: bool = False,
    stopwatch: Stopwatch | None = None,
    report: Reporter = no_report,
) -> Bundle:
    """Train what `recipe` describes and leave it in the folder `output`.

    What a `Draft` leaves out is chosen from the corpus. `callback` is informed of the progress; `evaluate` scores the
    model at every validation; `film` makes the frames of film.jsonl; `optimizer` makes the optimizer, whose learning
    rate follows the recipe's schedule. `report` writes a page about the run at its start, after each validation and
    at its end.

    With `resume`, continue from the checkpoint there as if the run had never stopped; start where there is none, and
    leave a finished run as it is. Otherwise refuses an `output` that exists. Refuses to resume with other settings or
    other data, and a folder in which another process trains. A SIGINT or SIGTERM saves the run and raises
    `Interrupted`.

    With `train.minutes` the whole run ends within this time, measured by `stopwatch` (a new one, if None). A resumed
    run has the rest of it.

    Under torchrun every process calls this; the first one directs the run, and the others return its bundle.
    """
    if is_follower():
        with group_of_torchrun():
            return Bundle.load(follow(optimizer))
    output, callback, resume = Path(output), callback or SilentCallback(), resume or was_restarted()
    stopwatch, goes_on = stopwatch or Stopwatch(), resume
    with group_of_torchrun(), locked(output, what=str(output)):
        changes: list[str] = []
        if resume := resume and has_run(output):
            recipe = as_resumed(recipe, output)
            changes = refuse_other_recipe(recipe, output)
        else:
            refuse_a_run(output, can_resume=partial(_can_resume, recipe, output))
        settings, starts = preliminary_recipe(recipe).train, not (resume and (output / CHECKPOINT_FILE).exists())
        noted = stopwatch.noted(output / USED_FILE, goes_on=goes_on) if settings.minutes else nullcontext()
        with noted, using_threads(_first_threads(settings)):
            setup = set_up(
                recipe, output, callback=callback, evaluate=evaluate, film=film, optimizer_factory=optimizer,
                stopwatch=stopwatch, report=report, starts=starts, resume=resume,
            )  # fmt: skip
            settings = setup.recipe.train
            if isinstance(recipe, Draft) and not (settings.minutes and starts):
                setup.messages.extend(describe_time(setup, optimizer))
            elif settings.minutes and starts:
                unit = "minute" if settings.minutes == 1 else "minutes"
                text = f"{settings.minutes:g} {unit} in all, with validations and final scores; Ctrl-C saves earlier"
                setup.messages.append(("time", text))
            return _train(setup, starts=starts, changes=changes)


def preview_training(
    recipe: Recipe | Draft,
    output: str | Path,
    *,
    callback: TrainingCallback | None = None,
    evaluate: Evaluator | None = None,
) -> Recipe:
    """The recipe with which `run_training` would train; the same lines go to `callback`, and what the run would take.

    Nothing is trained, and `output` becomes no run: it has the prepared pairs and the speed of the machine, which the
    run then uses. Refuses what `run_training` refuses.
    """
    output, callback, stopwatch = Path(output), callback or SilentCallback(), Stopwatch()
    with locked(output, what=str(output)):
        refuse_a_run(output)
        with using_threads(_first_threads(preliminary_recipe(recipe).train)):
            setup = set_up(
                recipe, output, callback=callback, evaluate=evaluate, optimizer_factory=build_optimizer,
                stopwatch=stopwatch, report=no_report, starts=True, resume=False,
            )  # fmt: skip
            for topic, text in [*setup.messages, *describe_plan(setup, build_optimizer)]:
                callback.on_message(topic, text)
            callback.on_message("data", f"{setup.data_folder} has the pairs, which the run will use")
    return setup.recipe


def _train(setup: Setup, *, starts: bool, changes: list[str]) -> Bundle:
    plan, data, model, output, stopwatch = setup.recipe, setup.data, setup.model, setup.output, setup.stopwatch
    messages, checkpoint = setup.messages, output / CHECKPOINT_FILE
    stopwatch.test_pairs = bool(data.test_pairs) or any(is_task(corpus.test) for corpus in plan.data.corpora())
    if starts:
        state = TrainState(ema=copy_weights(model) if plan.train.ema_decay else {})
    else:
        state = load_checkpoint(checkpoint, model, setup.optimizer, data=data.identity())
        stopwatch.before = max(stopwatch.before, state.used_seconds)
        messages += [("resume", text) for text in (f"continuing after update {state.step:,}", *changes)]
        if not _has_updates_left(plan.train, state):
            text = f"this run was finished after update {state.step:,}; nothing is left to do"
            if of_the_model := [change for change in changes if not change.startswith("train.")]:
                text += f", and its model keeps its settings: {'; '.join(of_the_model)}"
            setup.callback.on_message("resume", text)
            with running_workers(1, threads=1, helpers=Helpers()) as workers:
                workers.from_first(lambda: Task(plan, output, setup.data_folder, 1, 0, is_finished=True))
            return Bundle.load(output, device=setup.device)

    cores = setup.cores.resumed(state)
    with (
        RunLog(output, tensorboard=plan.train.tensorboard) as log,
        catch_interrupts() as interrupt,
        Helpers() as helpers,
    ):
        helpers.require(setup.cores.processes(cores), threads=setup.threads_each(cores))
        if not state.step:
            stopwatch.require_time(plan.train)
        run = Run(setup, state, log, choice=_core_choice(setup, helpers, lambda text: run.message("workers", text)))
        output.mkdir(parents=True, exist_ok=True)
        write_whole(output / "recipe.toml", tomli_w.dumps(plan.tables()))
        data.save(output)
        if starts:  # the other workers start with this one
            save_checkpoint(checkpoint, model, setup.optimizer, state, data=data.identity())
        log.begin(after=state.step)
        log.environment(step=state.step, facts=environment() | describe_device(setup.device))
        for topic, text in messages:
            run.message(topic, text)
        setup.report(output, run.message, running=True)
        try:
            while cores:
                cores = _train_on(cores, setup, run, helpers, interrupt)
        finally:
            setup.report(output, run.message)
    return Bundle.load(output, device=setup.device)


def _train_on(cores: int, setup: Setup, run: Run, helpers: Helpers, interrupt: InterruptRequest) -> int:
    """Train on so many cores until the run ends (0), or returns another number to go on with."""
    threads, processes = setup.threads_each(cores), setup.cores.processes(cores)
    task = Task(setup.recipe, setup.output, setup.data_folder, threads, setup.window)
    with using_threads(threads), running_workers(processes, threads=threads, helpers=helpers) as workers:
        workers.from_first(lambda: task)
        return run.train(workers, interrupt)


def _core_choice(setup: Setup, helpers: Helpers, say: Callable[[str], None]) -> CoreChoice | None:
    """What tries other numbers of cores, if the run may have others."""
    if not setup.window:
        return None

    def start(cores: int) -> None:
        if not setup.cores.by_threads:
            helpers.start(cores, threads=setup.threads_each(cores))

    return CoreChoice(setup.cores.most, setup.window, start=start, can_start=lambda: not helpers.failed(), say=say)


def _first_threads(settings: TrainConfig) -> int:
    """The threads of a process that prepares a run, as of one that trains alone; 0: PyTorch's choice."""
    return settings.threads or int(pick_device(settings.device).type == "cpu")


def _can_resume(recipe: Recipe | Draft, output: Path) -> bool:
    """Whether the run in a folder accepts this recipe, and its pairs are those that it started with."""
    try:
        plan = as_resumed(recipe, output)
        refuse_other_recipe(plan, output)
        if (output / CHECKPOINT_FILE).exists():
            read_state(output / CHECKPOINT_FILE).refuse_less(plan.train)
        return has_same_pairs(plan, output)
    except AllYouNeedError:
        return False


def _has_updates_left(settings: TrainConfig, state: TrainState) -> bool:
    """Whether a run is unfinished; with more steps, minutes or patience than before it may be unfinished again."""
    state.refuse_less(settings)
    state.check_patience(settings)
    has_budget = settings.minutes and state.plan
    is_complete = settings.minutes == state.minutes if has_budget else state.step >= settings.steps
    state.finished = state.finished and (state.stopped_early or is_complete)
    return not state.finished


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
        languages=find_languages(plan)[0], cores=Cores(workers.count, workers.count, 0, False), window=task.window,
    )  # fmt: skip
    state = load_checkpoint(task.output / CHECKPOINT_FILE, model, optimizer, data=data.identity())
    with using_threads(task.threads), catch_interrupts() as interrupt:
        Run(setup, state, RunLog(task.output, tensorboard=False)).train(workers, interrupt)
    return task.output


def _task_of_the_first() -> Task:
    raise NotImplementedError("only the first worker knows the task")
