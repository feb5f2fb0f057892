"""Start or resume a run from a complete recipe, or take part in a run as a worker."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

import tomli_w
import torch

from ..bundle import Bundle, builder_name, mark_ensemble
from ..bundle_parts import read_config
from ..config import Recipe, TrainConfig
from ..data.clean import ProgressCallback
from ..data.prepared_files import open_prepared
from ..errors import ConfigError
from ..fast.workers import WorkerGroup
from ..machine.device import describe_device, pick_device, using_threads
from ..machine.files import locked, write_whole
from ..machine.interpreter import environment
from ..machine.interrupts import InterruptRequest, catch_interrupts
from ..train.averaging import copy_weights
from ..younger import build_model as build_known_model
from .budget import USED_FILE, Stopwatch, within_budget
from .checkpoint import CHECKPOINT_FILE, load_checkpoint, read_state, save_checkpoint
from .ensemble import FurtherModel, OtherModels, hooks_of_further
from .estimate import describe_plan, describe_time
from .hooks import Hooks
from .log import RunLog
from .parallel_models import model_processes
from .preparation import find_languages, prepare_pairs, require_resumable
from .processes import Helpers, Task, group_of_torchrun, running_workers, started_by_torchrun, was_restarted
from .run import Run
from .run_folder import Stage, enter_run, has_run, refuse_a_run
from .setup import Setup, require_parallel, set_up
from .state import TrainState
from .worker_count import CoreChoice, Cores, begin_with_cores


def run_training(
    recipe: Recipe,
    output: str | Path,
    hooks: Hooks | None = None,
    *,
    resume: bool = False,
    notes: Sequence[tuple[str, str]] = (),
) -> Bundle:
    """Train the model that `recipe` describes and leave it in the folder `output`.

    `notes` are topics and lines that say which settings were chosen automatically, and why. The run logs them, together
    with its expected duration.

    With `resume`, the run continues from the checkpoint in `output`, exactly as if it had never stopped; without a
    checkpoint it starts, and a finished run is left unchanged. Resuming is refused if settings or data differ. Without
    `resume`, an existing `output` is refused. A folder in which another process trains is always refused. After SIGINT
    or SIGTERM the run is saved and `Interrupted` is raised.

    With `train.minutes` the whole run ends within this time, measured by the stopwatch of `hooks`. A resumed run gets
    the time that is left.

    With `train.ensemble`, the other models are trained after the first one, or with `train.parallel_models` at the same
    time, in folders inside `output`. The bundle is that of the first model; `Translator.load(output)` uses all of them.

    Under torchrun, the first process calls this function, and the others call `join_run`.
    """
    output = Path(output)
    hooks = hooks or Hooks()
    resume = resume or was_restarted()
    models = recipe.train.ensemble
    if models > 1 and started_by_torchrun():
        raise ConfigError(f"torchrun trains a single model; got train.ensemble={models}").mended_by("train.ensemble=1")
    require_parallel(recipe.train, hooks)
    with group_of_torchrun(), locked(output, what=str(output)):
        with model_processes(recipe, output, hooks, resume=resume) as processes:
            bundle = _train_one(recipe, output, hooks, resume=resume, notes=notes, others=processes.for_first)
            train_further(processes.own, hooks, resume=resume, others=processes.for_further)
        if models > 1:
            mark_ensemble(output, models)
        return bundle


def train_further(
    models: Iterable[FurtherModel],
    hooks: Hooks,
    *,
    resume: bool,
    others: OtherModels,
    stopwatch: Stopwatch | None = None,
) -> None:
    """Train further models of an ensemble, one after another, with the hooks of the first model.

    `stopwatch` measures the time of the first of `models`, if that has already begun.
    """
    for model in models:
        hooks.callback.on_message("model", f"number {model.number} of {model.models}, in {model.folder}")
        its_own = hooks_of_further(hooks, stopwatch or Stopwatch())
        _train_one(model.recipe, model.folder, its_own, resume=resume, others=others)
        others = replace(others, earlier=model.folder)
        stopwatch = None


def _train_one(
    recipe: Recipe,
    output: Path,
    hooks: Hooks,
    *,
    resume: bool,
    notes: Sequence[tuple[str, str]] = (),
    others: OtherModels,
) -> Bundle:
    """Train one model in the folder `output`. A further model of an ensemble uses the pairs of the first one."""
    first = others.first
    stage, changes = _enter(recipe, output, resume=resume)
    device = pick_device(recipe.train.device)
    used = output / USED_FILE
    noted = hooks.stopwatch.noted(used, goes_on=resume) if recipe.train.minutes else nullcontext()
    with noted, using_threads(first_threads(recipe.train, device, others.share)):
        progress: ProgressCallback = hooks.callback.on_prepare
        if not stage.has_checkpoint:
            progress = within_budget(recipe.train, hooks.stopwatch, progress)
        pairs = prepare_pairs(recipe, output, stage=stage, progress=progress, folder=first / "data" if first else None)
        setup = set_up(recipe, pairs, output, hooks, device=device, notes=notes, share=others.share)
        setup.messages.extend(_describe_length(setup, stage, is_chosen=bool(notes)))
        return _train(setup, stage, changes=changes, others=others)


def _enter(recipe: Recipe, output: Path, *, resume: bool) -> tuple[Stage, list[str]]:
    """Return how far a run has come, and the settings that have changed since it started."""
    if resume and has_run(output):
        return enter_run(recipe, output)
    refuse_a_run(output, resume=partial(require_resumable, recipe, output))
    return Stage.NEW, []


def _describe_length(setup: Setup, stage: Stage, *, is_chosen: bool) -> list[tuple[str, str]]:
    """Describe how long a run takes: its time budget, or an estimate if this program chose its length."""
    minutes = setup.recipe.train.minutes
    if minutes and not stage.has_checkpoint:
        unit = "minute" if minutes == 1 else "minutes"
        shared = f" for {models} models" if (models := setup.recipe.train.ensemble) > 1 else ""
        text = f"{minutes:g} {unit} in all{shared}, with validations and final scores; Ctrl-C saves earlier"
        return [("time", text)]
    return describe_time(setup) if is_chosen else []


def preview_training(
    recipe: Recipe, output: str | Path, hooks: Hooks | None = None, *, notes: Sequence[tuple[str, str]] = ()
) -> None:
    """Report to the callback of `hooks` what `run_training` would do, and how long it would take.

    Nothing is trained, and `output` does not become a run: only the prepared pairs and the measured speed of the
    machine are stored there, for a later run. Refuses everything that `run_training` refuses.
    """
    output = Path(output)
    hooks = hooks or Hooks()
    require_parallel(recipe.train, hooks)
    with locked(output, what=str(output)):
        refuse_a_run(output)
        (output / USED_FILE).unlink(missing_ok=True)  # a preview uses no time of a run
        device = pick_device(recipe.train.device)
        with using_threads(first_threads(recipe.train, device)):
            progress = within_budget(recipe.train, hooks.stopwatch, hooks.callback.on_prepare)
            pairs = prepare_pairs(recipe, output, stage=Stage.NEW, progress=progress)
            share = recipe.train.parallel_models
            setup = set_up(recipe, pairs, output, hooks, device=device, notes=notes, share=share)
            for topic, text in [*setup.messages, *describe_plan(setup)]:
                hooks.callback.on_message(topic, text)
            hooks.callback.on_message("data", f"{setup.data_folder} has the pairs, which the run will use")


def _train(setup: Setup, stage: Stage, *, changes: list[str], others: OtherModels) -> Bundle:
    checkpoint = setup.output / CHECKPOINT_FILE
    state = _first_state(setup, stage, others.earlier)
    if stage is Stage.FINISHED:
        others.begin()
        return _finished(setup, state, changes)
    if stage is Stage.STOPPED:
        resumed = (f"continuing after update {state.step:,}", *changes)
        setup.messages.extend(("resume", text) for text in resumed)
    cores = setup.cores.resumed(state)
    with (
        RunLog(setup.output, tensorboard=setup.recipe.train.tensorboard) as log,
        catch_interrupts(others.failure) as interrupt,
        Helpers() as helpers,
    ):
        helpers.require(setup.cores.processes(cores), threads=setup.threads_each(cores))
        if not state.step:
            setup.hooks.stopwatch.require_time(setup.recipe.train)
        run = Run(setup, state, log, choice=_core_choice(setup, helpers, lambda text: run.message("workers", text)))
        setup.output.mkdir(parents=True, exist_ok=True)
        write_whole(setup.output / "recipe.toml", tomli_w.dumps(setup.recipe.tables()))
        setup.data.save(setup.output)
        if not stage.has_checkpoint:  # the other workers start from this checkpoint
            save_checkpoint(checkpoint, setup.model, setup.optimizer, state, data=setup.data.identity())
        log.begin(after=state.step)
        log.environment(step=state.step, facts=environment() | describe_device(setup.device))
        for topic, text in setup.messages:
            run.message(topic, text)
        setup.hooks.report(setup.output, run.message, running=True)
        others.begin()
        try:
            while cores:
                cores = _train_on(cores, setup, run, helpers, interrupt)
        finally:
            setup.hooks.report(setup.output, run.message)
    return Bundle.load(setup.output, device=setup.device, build_model=setup.hooks.build_model)


def _first_state(setup: Setup, stage: Stage, earlier: Path | None) -> TrainState:
    """Return the state to start from. If there is a checkpoint, load the model and the optimizer from it.

    Otherwise the model begins with as many cores as an `earlier` model of the ensemble had in the end.
    """
    if not stage.has_checkpoint:
        state = TrainState(ema=copy_weights(setup.model) if setup.recipe.train.ema_decay else {})
        return begin_with_cores(state, read_state(earlier / CHECKPOINT_FILE)) if earlier else state
    _refuse_another_builder(setup)
    checkpoint = setup.output / CHECKPOINT_FILE
    state = load_checkpoint(checkpoint, setup.model, setup.optimizer, data=setup.data.identity())
    state.continue_with(setup.recipe.train)
    setup.hooks.stopwatch.go_on_after(state.used_seconds)
    return state


def _refuse_another_builder(setup: Setup) -> None:
    """Refuse to continue a run whose model was built by a different function when it started."""
    if not (setup.output / "config.json").exists():  # there was no validation yet
        return
    before = read_config(setup.output).builder
    now = builder_name(setup.hooks.build_model)
    if before != now:
        names = [repr(name) if name else "the package's own build_model" for name in (before, now)]
        raise ConfigError(
            f"the model of {setup.output} is built by {names[0]}, not by {names[1]}; "
            "resume it with fit(…, build_model=…) as it was started, or train in another folder"
        )


def _finished(setup: Setup, state: TrainState, changes: list[str]) -> Bundle:
    """Report that nothing is left to do, let the other workers of torchrun end, and return the bundle."""
    models = setup.recipe.train.ensemble
    what = "this run" if models == 1 else f"the first of {models} models"
    text = f"{what} was finished after update {state.step:,}; nothing is left to do"
    of_the_model = [change for change in changes if not change.startswith("train.")]
    if of_the_model:
        text += f", and its model keeps its settings: {'; '.join(of_the_model)}"
    setup.hooks.callback.on_message("resume", text)
    with running_workers(1, threads=1, helpers=Helpers()) as workers:
        workers.from_first(lambda: Task(setup.recipe, setup.output, setup.data_folder, 1, 0, is_finished=True))
    return Bundle.load(setup.output, device=setup.device, build_model=setup.hooks.build_model)


def _train_on(cores: int, setup: Setup, run: Run, helpers: Helpers, interrupt: InterruptRequest) -> int:
    """Train on this many cores. Returns 0 when the run has ended, or another number of cores to continue with."""
    threads = setup.threads_each(cores)
    processes = setup.cores.processes(cores)
    task = Task(setup.recipe, setup.output, setup.data_folder, threads, setup.window)
    with using_threads(threads), running_workers(processes, threads=threads, helpers=helpers) as workers:
        workers.from_first(lambda: task)
        return run.train(workers, interrupt)


def _core_choice(setup: Setup, helpers: Helpers, say: Callable[[str], None]) -> CoreChoice | None:
    """Make the object that tries other numbers of cores, if the run may use them."""
    if not setup.window:
        return None

    def start(cores: int) -> None:
        if not setup.cores.by_threads:
            helpers.start(cores, threads=setup.threads_each(cores))

    return CoreChoice(setup.cores.most, setup.window, start=start, can_start=lambda: not helpers.failed(), say=say)


def first_threads(settings: TrainConfig, device: torch.device, share: int = 1) -> int:
    """Return how many threads a process uses to prepare a run, or to train by itself; 0 means PyTorch's choice.

    `share` models train at the same time.
    """
    return settings.threads // share or int(device.type == "cpu")


def join_run(hooks: Hooks) -> Bundle:
    """Take part in the run that the first process of torchrun directs, and return its bundle."""
    with group_of_torchrun():
        return Bundle.load(follow(hooks), build_model=hooks.build_model)


def follow(hooks: Hooks | None = None) -> Path:
    """Take part in the run of the default process group, and return its folder. Prints and writes nothing."""
    hooks = hooks or Hooks()
    workers = WorkerGroup()
    task = workers.from_first(_task_of_the_first)
    if task.is_finished:
        return task.output
    plan = task.recipe
    data = open_prepared(task.data_folder, plan.data, max_length=plan.model.max_length)
    model = (hooks.build_model or build_known_model)(data.vocabulary.with_vocab_size(plan.model))
    model = model.to(pick_device(plan.train.device), torch.float32)
    optimizer = hooks.optimizer(model, plan.train)
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
