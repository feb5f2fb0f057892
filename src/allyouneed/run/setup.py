"""All that a run needs before its first update: prepared pairs, the whole recipe, a new model and its optimizer."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch.optim import Optimizer

from ..auto import Corpus, Draft, choose_from_pairs, preliminary_recipe
from ..auto.machine_speed import describe_speed
from ..bundle import Bundle
from ..config import Recipe, TrainConfig
from ..data.batch import require_large_batches
from ..data.prepared import PreparedData
from ..device import pick_device, require_memory
from ..errors import ConfigError, refused
from ..export_limits import describe_exports
from ..fast.workers import workers_here
from ..interpreter import versions
from ..nn import Transformer
from ..nn.weights import set_weights, weights
from ..train.gradients import autocast_dtype
from ..younger import build_model
from ..younger.muon import build_optimizer
from .budget import Stopwatch, within_budget
from .callback import WITHOUT_TRANSLATIONS, Evaluator, Reporter, SilentCallback, TrainingCallback, no_report
from .log import FrameMaker
from .preparation import find_languages, prepare_pairs
from .run_bundle import describe_model
from .worker_count import Cores, can_divide, choose_cores, most_workers, window_size

LONGEST_SAMPLE = 60  # characters of each side of the pairs that a message shows

OptimizerFactory = Callable[[Transformer, TrainConfig], Optimizer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a run in the folder `output` starts with.

    `cores` may train it, whose number is chosen between windows of so many updates, if `window` is not 0; `messages`
    are topics and lines. The first worker alone has an evaluator, and a callback that is not silent.
    """

    recipe: Recipe
    output: Path
    data: PreparedData
    data_folder: Path
    model: Transformer
    optimizer: Optimizer
    languages: tuple[str, str]
    cores: Cores
    window: int
    callback: TrainingCallback = field(default_factory=SilentCallback)
    evaluate: Evaluator | None = None
    film: FrameMaker | None = None
    stopwatch: Stopwatch = field(default_factory=Stopwatch)
    report: Reporter = no_report
    messages: list[tuple[str, str]] = field(default_factory=list)

    def threads_each(self, cores: int) -> int:
        """How many threads each process of the run has on so many cores."""
        return self.cores.threads_each(cores, processes_here=workers_here(self.cores.processes(cores)))

    @property
    def device(self) -> torch.device:
        """Where the model is trained."""
        return next(self.model.parameters()).device


def set_up(
    recipe: Recipe | Draft,
    output: Path,
    *,
    callback: TrainingCallback,
    evaluate: Evaluator | None,
    film: FrameMaker | None = None,
    optimizer_factory: OptimizerFactory,
    stopwatch: Stopwatch,
    report: Reporter,
    starts: bool,
    resume: bool,
) -> Setup:
    """Prepare the pairs in `output`/data, choose what a draft leaves out, and make the model with random weights.

    `starts`: there is no checkpoint yet, so that the weights are those of `train.init_from`, if it is set.
    """
    plan = preliminary_recipe(recipe)
    device = pick_device(plan.train.device)
    divides = can_divide(on_cpu=device.type == "cpu", is_standard=optimizer_factory is build_optimizer)
    progress = within_budget(plan.train, stopwatch, callback.on_prepare) if starts else callback.on_prepare
    if isinstance(recipe, Draft):
        workers = most_workers(plan.train, can_divide=divides)
        recipe = choose_from_pairs(recipe, output, device=device, workers=workers)
        plan = recipe.preliminary
    pairs = prepare_pairs(plan, output, starts=starts, resume=resume, progress=progress)
    data, initial = pairs.data, pairs.initial
    messages = [("data", line) for line in data.describe()]
    messages += [("pair", f"{_shortened(pair.source)} → {_shortened(pair.target)}") for pair in data.readable[:2]]
    messages += [("vocabulary", note) for note in pairs.notes]
    messages += [("tokens", line) for line in data.describe_sides()]
    if isinstance(recipe, Draft):
        messages += [("statistics", recipe.statistics.describe())] if recipe.statistics else []
        messages += [("speed", describe_speed(recipe.speed))] if recipe.speed else []
        corpus = Corpus(
            pairs=len(data.train),
            tokens=data.train.epoch_tokens(),
            longest=data.train.longest(),
            has_valid=data.valid is not None,
            exact=recipe.is_exact,
            gpu=device.type != "cpu",
            minutes=plan.train.minutes,
            speed=recipe.speed,
        )
        warning = recipe.warning(len(data.train))
        messages += [("warning", warning)] if warning else []
        plan, choices = recipe.complete(corpus)
        messages += [("auto", str(choice)) for choice in choices]

    require_large_batches(data.train, plan.train.batch_tokens)
    torch.manual_seed(plan.train.seed)
    model = _make_model(plan, data, initial, device)
    optimizer = optimizer_factory(model, plan.train)
    dtype = str(autocast_dtype(plan.train.precision, model)).removeprefix("torch.")
    languages, guess = find_languages(plan)
    messages += [("languages", guess)] if guess else []
    messages += [("model", f"{describe_model(model)}, products in {dtype}")]
    messages += [
        ("exports", describe_exports(model.config, (data.vocabulary.source, data.vocabulary.target))),
        ("program", versions()),
    ]
    _refuse_patience_without_metric(plan, data, evaluate)
    cores = choose_cores(plan.train, model, can_divide=divides)
    messages += [("workers", cores.reason)] if cores.reason else []
    return Setup(
        recipe=plan, output=output, data=data, data_folder=pairs.folder, model=model, optimizer=optimizer,
        languages=languages, cores=cores, callback=callback,
        window=window_size(plan.train, model) if cores.first < cores.most else 0,
        evaluate=evaluate, film=film, stopwatch=stopwatch, report=report, messages=messages,
    )  # fmt: skip


def _refuse_patience_without_metric(recipe: Recipe, data: PreparedData, evaluate: Evaluator | None) -> None:
    """Refuse patience, or a time budget, where the metric that they compare is not measured."""
    settings = recipe.train
    if not settings.patience and (not settings.minutes or data.valid is None):
        return
    if data.valid is None:
        raise ConfigError(f"train.patience={settings.patience} needs validation pairs; name them in data.valid")
    if settings.early_stopping_metric not in WITHOUT_TRANSLATIONS and (
        evaluate is None or not settings.validate_samples
    ):
        raise ConfigError(
            f'train.early_stopping_metric="{settings.early_stopping_metric}" needs translations of validation pairs: '
            "set train.validate_samples to more than 0 and, from Python, give `fit` an `evaluate` function; or use "
            'train.early_stopping_metric="loss"'
        )


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_SAMPLE else f"{text[: LONGEST_SAMPLE - 1]}…"


def _make_model(plan: Recipe, data: PreparedData, initial: Bundle | None, device: torch.device) -> Transformer:
    config = data.vocabulary.with_vocab_size(plan.model)
    if device.type == "cpu":
        require_memory("training this model, with gradients and Adam's two means,", 4 * config.weight_bytes)
    model = build_model(config)
    if initial:
        what = f"the model of {plan.train.init_from} does not have the sizes this recipe asks for"
        with refused(ConfigError, what, ConfigError, remedy="leave [model] out, or give the sizes in its config.json"):
            set_weights(model, weights(initial.model))
    return model.to(device, torch.float32)  # whatever the default of the program is
