"""Everything that a run needs before its first update: its recipe, its pairs, a new model and its optimizer."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch.optim import Optimizer

from ..bundle import Bundle, ModelBuilder
from ..config import Recipe, TrainConfig
from ..config.export_limits import describe_exports
from ..data.batch import require_large_batches
from ..data.prepared import PreparedData
from ..data.readers import is_task
from ..errors import ConfigError, refused
from ..fast.workers import workers_here
from ..machine.device import pick_device, require_memory
from ..machine.interpreter import versions
from ..nn import Transformer
from ..nn.weights import set_weights, weights
from ..train.gradients import autocast_dtype
from ..younger import build_model as build_known_model
from .callback import WITHOUT_TRANSLATIONS, Evaluator
from .hooks import Hooks
from .log import describe_guessing
from .preparation import RunPairs, find_languages
from .run_bundle import describe_model
from .worker_count import Cores, can_divide, choose_cores, most_workers, window_size


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The parts with which a run in the folder `output` starts.

    The number of `cores` may change after every `window` updates; a `window` of 0 means that it never changes.
    `messages` are topics and lines. Only the first worker has the evaluator and the callback that the caller passed.
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
    hooks: Hooks = field(default_factory=Hooks)
    messages: list[tuple[str, str]] = field(default_factory=list)

    def threads_each(self, cores: int) -> int:
        """Return how many threads each process has when the run uses this many cores."""
        return self.cores.threads_each(cores, processes_here=workers_here(self.cores.processes(cores)))

    @property
    def has_test(self) -> bool:
        """True if there are test pairs to score after the run."""
        corpora = self.recipe.data.corpora()
        return bool(self.data.test_pairs) or any(is_task(corpus.test) for corpus in corpora)

    @property
    def device(self) -> torch.device:
        """The device that trains the model."""
        return next(self.model.parameters()).device


def set_up(
    recipe: Recipe,
    pairs: RunPairs,
    output: Path,
    hooks: Hooks,
    *,
    device: torch.device,
    notes: Sequence[tuple[str, str]] = (),
    share: int = 1,
) -> Setup:
    """Make the model that a recipe asks for, with its first weights, and its optimizer.

    `notes` are topics and lines about the recipe. `share` models train at the same time.
    """
    data = pairs.data
    require_large_batches(data.train, recipe.train.batch_tokens)
    initial = Bundle.load(pairs.starts_from, build_model=hooks.build_model) if pairs.starts_from else None
    torch.manual_seed(recipe.train.seed)
    model = _make_model(recipe, data, initial, device, hooks.build_model)
    optimizer = hooks.optimizer(model, recipe.train)
    _refuse_patience_without_metric(recipe, data, hooks.evaluate)
    languages, guess = find_languages(recipe)
    cores = choose_cores(recipe.train, model, can_divide=divides_work(device, hooks), share=share)
    dtype = str(autocast_dtype(recipe.train.precision, model)).removeprefix("torch.")
    messages = [*pairs.describe(), *notes]
    messages += [("languages", guess)] if guess else []
    messages += [("model", f"{describe_model(model)}, products in {dtype}")]
    messages += [("loss", describe_guessing(len(data.vocabulary.target)))]
    messages += [("exports", describe_exports(model.config, (data.vocabulary.source, data.vocabulary.target)))]
    messages += [("program", versions())]
    messages += [("workers", cores.reason)] if cores.reason else []
    return Setup(
        recipe=recipe, output=output, data=data, data_folder=pairs.folder, model=model, optimizer=optimizer,
        languages=languages, cores=cores, window=window_size(recipe.train, model) if cores.first < cores.most else 0,
        hooks=hooks, messages=messages,
    )  # fmt: skip


def divides_work(device: torch.device, hooks: Hooks) -> bool:
    """Return True if a run may start processes that share its work. They cannot call functions of the caller."""
    return can_divide(on_cpu=device.type == "cpu", is_standard=hooks.are_standard)


def most_parallel_models(config: TrainConfig, device: torch.device, hooks: Hooks) -> int:
    """Return how many models of an ensemble can train at the same time: one for each core, if processes can."""
    if config.workers != "auto" or not hooks.are_portable:
        return 1
    return most_workers(config, can_divide=divides_work(device, hooks))


def require_parallel(config: TrainConfig, hooks: Hooks) -> None:
    """Refuse models that train at the same time if other processes could not train them."""
    if config.parallel_models > 1 and not (divides_work(pick_device(config.device), hooks) and hooks.are_portable):
        raise ConfigError(
            f"train.parallel_models={config.parallel_models} needs Linux, a CPU as device and built-in functions; "
            "set train.parallel_models=1"
        ).mended_by("train.parallel_models=1")


def _refuse_patience_without_metric(recipe: Recipe, data: PreparedData, evaluate: Evaluator | None) -> None:
    """Refuse patience, or a time budget, if nothing measures the metric by which they compare models."""
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


def _make_model(
    recipe: Recipe,
    data: PreparedData,
    initial: Bundle | None,
    device: torch.device,
    build_model: ModelBuilder | None,
) -> Transformer:
    config = data.vocabulary.with_vocab_size(recipe.model)
    if device.type == "cpu":
        require_memory("training this model, with gradients and Adam's two means,", 4 * config.weight_bytes)
    model = (build_model or build_known_model)(config)
    if initial:
        what = f"the model of {recipe.train.init_from} does not have the sizes this recipe asks for"
        with refused(ConfigError, what, ConfigError, remedy="leave [model] out, or give the sizes in its config.json"):
            set_weights(model, weights(initial.model))
    return model.to(device, torch.float32)  # whatever default dtype the program has set
