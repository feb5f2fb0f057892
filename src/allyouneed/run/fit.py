"""`fit`: from a recipe, or a draft of one, to a run that is started or resumed."""

from collections.abc import Sequence
from pathlib import Path

import tomli_w
import torch

from ..auto import Corpus, Draft
from ..bundle import Bundle
from ..config import Recipe, TrainConfig
from ..data.prepare import prepare, prepared_folder
from ..data.prepared_data import PreparedData
from ..device import describe_device, pick_device, require_memory, using_threads
from ..errors import ConfigError
from ..export_limits import describe_exports
from ..files import locked, write_whole
from ..nn import Transformer
from ..nn.weights import set_weights, weights
from ..text.vocabulary import Vocabulary
from ..text.vocabulary_files import load_vocabulary
from ..train.averaging import copy_weights
from ..train.loop import autocast_dtype
from ..train.optimizer import make_optimizer
from ..train.state import TrainState
from ..versions import environment, versions
from .budget import Stopwatch, no_time_left, within_budget
from .callback import Evaluator, SilentCallback, TrainingCallback
from .checkpoint import load_checkpoint
from .estimate import format_duration, seconds_per_update
from .follow import follow
from .interrupts import catch_interrupts
from .log import RunLog, read_plans
from .model_card import describe_model
from .processes import Task, choose_workers, group_of_torchrun, is_follower, running_workers, was_restarted
from .report import write_report
from .resume import has_run, refuse_a_run, refuse_other_recipe
from .run import OptimizerFactory, Run, refuse_patience_without_metric
from .run_languages import find_languages


def run_training(
    recipe: Recipe | Draft,
    output: str | Path,
    *,
    callback: TrainingCallback | None = None,
    evaluate: Evaluator | None = None,
    optimizer: OptimizerFactory = make_optimizer,
    resume: bool = False,
    stopwatch: Stopwatch | None = None,
) -> Bundle:
    """Train what `recipe` describes and leave it in the folder `output`.

    What a `Draft` leaves out is chosen from the corpus. `callback` is informed of the progress; `evaluate` scores the
    model at every validation; `optimizer` makes the optimizer, whose learning rate follows the recipe's schedule.

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
    stopwatch = stopwatch or Stopwatch()
    with group_of_torchrun(), locked(output, what=str(output)):
        changes: list[str] = []
        if resume := resume and has_run(output):
            recipe = recipe.merged_into(Recipe.read(output / "recipe.toml")) if isinstance(recipe, Draft) else recipe
            changes = refuse_other_recipe(recipe, output)
        else:
            refuse_a_run(output)
        with using_threads((recipe.preliminary if isinstance(recipe, Draft) else recipe).train.threads):
            return _fit(recipe, output, callback, evaluate, optimizer, stopwatch, resume=resume, changes=changes)


def _fit(
    recipe: Recipe | Draft,
    output: Path,
    callback: TrainingCallback,
    evaluate: Evaluator | None,
    optimizer_factory: OptimizerFactory,
    stopwatch: Stopwatch,
    *,
    resume: bool,
    changes: list[str],
) -> Bundle:
    plan = recipe.preliminary if isinstance(recipe, Draft) else recipe
    device = pick_device(plan.train.device)
    checkpoint = output / "checkpoint.safetensors"
    starts = not (resume and checkpoint.exists())
    initial = Bundle.load(Path(plan.train.init_from)) if plan.train.init_from and starts else None
    vocabulary, notes = _existing_vocabulary(plan, output, initial)
    data = prepare(
        plan.data,
        plan.clean,
        output / "data",
        max_length=plan.model.max_length,
        vocabulary=vocabulary,
        resume=resume,
        progress=within_budget(plan.train, stopwatch, callback.on_prepare),
    )
    data_folder = prepared_folder(plan.data, output / "data", data.provenance)
    messages = [("data", line) for line in data.describe()] + [("vocabulary", note) for note in notes]
    if isinstance(recipe, Draft):
        plan, choices = recipe.complete(_corpus(plan, data, device))
        messages += [("auto", str(choice)) for choice in choices]

    torch.manual_seed(plan.train.seed)
    model = _make_model(plan, data, initial, device)
    optimizer = optimizer_factory(model, plan.train)
    dtype = str(autocast_dtype(plan.train.precision, model)).removeprefix("torch.")
    languages, guess = find_languages(plan)
    messages += [("languages", guess)] if guess else []
    messages += [("model", f"{describe_model(model)}, products in {dtype}")]
    messages += [("exports", describe_exports(model.config)), ("program", versions())]
    refuse_patience_without_metric(plan, data, evaluate)
    threads = torch.get_num_threads()
    is_standard = optimizer_factory is make_optimizer
    count, text = choose_workers(plan.train, model, threads=threads, is_standard=is_standard)
    messages += [("workers", text)] if text else []
    share = max(1, threads // count)
    if isinstance(recipe, Draft):
        messages.append(("time", _describe_time(plan, data, model, optimizer_factory, workers=count)))

    if starts:
        state = TrainState(ema=copy_weights(model) if plan.train.ema_decay else {})
    else:
        state = load_checkpoint(checkpoint, model, optimizer, data=data.identity())
        stopwatch.before = max([state.used_seconds, *(plan.seconds for plan in read_plans(output))])
        messages += [("resume", text) for text in (f"continuing after update {state.step:,}", *changes)]
        if not _has_updates_left(plan.train, state):
            text = f"this run was finished after update {state.step:,}; nothing is left to do"
            callback.on_message("resume", text)
            with running_workers(1, threads=threads) as workers:
                workers.from_first(lambda: Task(plan, output, data_folder, share, is_finished=True))
            return Bundle.load(output, device=device)

    if starts and plan.train.minutes and stopwatch.seconds() > 60 * plan.train.minutes:
        raise no_time_left(plan.train, stopwatch.seconds())

    with (
        RunLog(output, tensorboard=plan.train.tensorboard) as log,
        catch_interrupts() as interrupt,
        using_threads(share),
        running_workers(count, threads=share) as workers,
    ):
        run = Run(
            plan, output, data, model, optimizer, state,
            languages=languages, callback=callback, evaluate=evaluate, log=log, workers=workers, stopwatch=stopwatch,
        )  # fmt: skip
        output.mkdir(parents=True, exist_ok=True)
        write_whole(output / "recipe.toml", tomli_w.dumps(plan.tables()))
        data.save(output)
        if starts:
            run.save()
        log.begin(after=state.step)
        log.environment(step=state.step, facts=environment() | describe_device(device))
        for topic, text in messages:
            run.message(topic, text)
        write_report(output, running=True)
        workers.from_first(lambda: Task(plan, output, data_folder, share))
        try:
            run.train(interrupt)
        finally:
            write_report(output)
    return Bundle.load(output, device=device)


def _make_model(plan: Recipe, data: PreparedData, initial: Bundle | None, device: torch.device) -> Transformer:
    config = data.vocabulary.with_vocab_size(plan.model)
    if device.type == "cpu":
        require_memory("training this model, with gradients and Adam's two means,", 4 * config.weight_bytes)
    model = Transformer(config)
    if initial:
        _copy_initial_weights(initial, model, plan.train.init_from)
    return model.to(device)


def _existing_vocabulary(plan: Recipe, output: Path, initial: Bundle | None) -> tuple[Vocabulary | None, Sequence[str]]:
    """The vocabulary that is not to be learned, and what to say about it.

    It is that of the model that a run is initialized from, or that of `data.tokenizer`.
    """
    if plan.train.init_from and plan.data.tokenizer:
        raise ConfigError(
            "a run that starts from the weights of a model has its vocabulary; leave out data.tokenizer or "
            "train.init_from"
        )
    if initial:
        return initial.vocabulary, ()
    if plan.train.init_from:
        return Vocabulary.load(output, joint=not (output / "tokenizer.target.json").exists()), ()
    return load_vocabulary(plan.data.tokenizer) if plan.data.tokenizer else (None, ())


def _corpus(plan: Recipe, data: PreparedData, device: torch.device) -> Corpus:
    sides = (data.train.source, data.train.target)
    return Corpus(
        pairs=len(data.train),
        tokens=max(len(side.ids) for side in sides),
        longest=max(side.length_quantile(1) for side in sides),
        has_valid=data.valid is not None,
        exact=plan.data.vocabulary == "characters",
        gpu=device.type != "cpu",
    )


def _copy_initial_weights(initial: Bundle, model: Transformer, name: str) -> None:
    try:
        set_weights(model, weights(initial.model))
    except ConfigError as error:
        raise ConfigError(
            f"the model of {name} does not have the sizes this recipe asks for: {error}; leave [model] out, or give "
            "the sizes in its config.json"
        ) from error


def _describe_time(
    plan: Recipe, data: PreparedData, model: Transformer, optimizer_factory: OptimizerFactory, *, workers: int
) -> str:
    settings = plan.train
    seconds = seconds_per_update(model, data.batches(settings, part=(0, workers)), settings, optimizer_factory)
    return (
        f"about {format_duration(seconds * settings.steps)} for {settings.steps:,} updates of {seconds:.3g} seconds, "
        "measured now; validation takes additional time"
    )


def _has_updates_left(settings: TrainConfig, state: TrainState) -> bool:
    """Whether a run is unfinished; with more steps, minutes or patience than before it may be unfinished again."""
    if settings.steps < state.step:
        raise ConfigError(f"train.steps={settings.steps} is less than the {state.step} updates already done")
    if settings.minutes not in (0, state.minutes) and 60 * settings.minutes < state.used_seconds:
        raise ConfigError(
            f"train.minutes={settings.minutes:g} is less than the {state.used_seconds / 60:.2g} minutes already used"
        )
    state.stopped_early = 0 < settings.patience <= state.validations_since_best
    is_complete = settings.minutes == state.minutes if settings.minutes else state.step == settings.steps
    state.finished = state.finished and (state.stopped_early or is_complete)
    return not state.finished
