"""`fit`: from a recipe, or a draft of one, to a run that is begun or gone on with."""

from pathlib import Path

import tomli_w
import torch

from ..bundle import Bundle
from ..config import Recipe
from ..data.sampler import batches
from ..device import limit_onednn_cache, pick_device, require_memory, retain_freed_memory, set_threads
from ..errors import ConfigError
from ..files import locked, write_whole
from ..nn import Transformer
from ..nn.weights import set_weights, weights
from ..text.vocabulary import Vocabulary
from ..train.loop import autocast_dtype
from ..train.optimizer import make_optimizer
from ..versions import versions
from .auto import Corpus, Draft
from .callback import Evaluator, SilentCallback, TrainingCallback
from .estimate import format_duration, seconds_per_update
from .interrupts import catch_interrupts
from .log import RunLog
from .model_card import describe_model
from .resume import has_run, refuse_a_run, refuse_other_recipe
from .run import Run
from .training_data import TrainingData, load_training_data


def fit(
    recipe: Recipe | Draft,
    output: str | Path,
    *,
    callback: TrainingCallback | None = None,
    evaluate: Evaluator | None = None,
    resume: bool = False,
) -> Bundle:
    """Train what `recipe` describes and leave it in the folder `output`.

    What a `Draft` leaves out is chosen from the corpus, and told. `watch` is told how it goes; `judge`
    scores the model at every pause.

    With `resume`, go on from the checkpoint there, as if the run had never stopped; begin where there is
    none, and leave a finished run as it is. Else refuses an `output` that exists. Refuses to resume with
    other settings or other data, and a folder in which another process trains. A SIGINT or SIGTERM saves the run
    and raises `Stopped`.
    """
    output = Path(output)
    with locked(output, what=str(output)):
        return _fit(
            recipe, output, watch=callback or SilentCallback(), judge=evaluate, resume=resume and has_run(output)
        )


def _fit(
    recipe: Recipe | Draft, output: Path, *, watch: TrainingCallback, judge: Evaluator | None, resume: bool
) -> Bundle:
    changes: list[str] = []
    if not resume:
        refuse_a_run(output)
    else:
        recipe = recipe.merged_into(Recipe.read(output / "recipe.toml")) if isinstance(recipe, Draft) else recipe
        changes = refuse_other_recipe(recipe, output)
    plan = recipe.preliminary if isinstance(recipe, Draft) else recipe
    set_threads(plan.train.threads)
    retain_freed_memory()
    limit_onednn_cache()
    torch.set_flush_denormal(True)  # numbers too small to matter are slow on a CPU
    device = pick_device(plan.train.device)

    begins = not (resume and (output / "checkpoint.safetensors").exists())
    start = Bundle.load(Path(plan.train.init_from)) if plan.train.init_from and begins else None
    vocabulary = _existing_vocabulary(plan, output, start)
    material = load_training_data(plan, output, vocabulary=vocabulary, resume=resume, progress=watch.on_prepare)
    told = [("data", line) for line in material.describe()]
    if isinstance(recipe, Draft):
        plan, choices = recipe.complete(_corpus(plan, material, device))
        told += [("auto", str(choice)) for choice in choices]

    torch.manual_seed(plan.train.seed)
    config = material.vocabulary.with_vocab_size(plan.model)
    if device.type == "cpu":
        require_memory("training this model, with gradients and Adam's two means,", 4 * config.weight_bytes)
    model = Transformer(config)
    if start:
        _copy_initial_weights(start, model, plan.train.init_from)
    model = model.to(device)
    dtype = str(autocast_dtype(plan.train.precision, model)).removeprefix("torch.")
    told.append(("model", f"{describe_model(model)}, products in {dtype}"))
    told.append(("program", versions()))
    if isinstance(recipe, Draft):
        told.append(("time", _describe_time(plan, material, model)))

    with (
        RunLog(output, tensorboard=plan.train.tensorboard) as record,
        catch_interrupts() as request,
    ):
        run = Run(
            plan, output, material, model, make_optimizer(model, plan.train), watch=watch, judge=judge, record=record
        )
        if begins:
            output.mkdir(parents=True, exist_ok=True)
            write_whole(output / "recipe.toml", tomli_w.dumps(plan.tables()))
            material.save(output)
            run.save()
        else:
            run.state = run.restore()
            if not _has_updates_left(run):
                watch.on_message(
                    "resume", f"this run was finished after update {run.state.step:,}; nothing is left to do"
                )
                return Bundle.load(output, device=device)
            material.save(output)
            told += [("resume", text) for text in (f"going on after update {run.state.step:,}", *changes)]
            write_whole(output / "recipe.toml", tomli_w.dumps(plan.tables()))
        record.begin(after=run.state.step)
        for topic, text in told:
            run.message(topic, text)
        run.train(request)
    return Bundle.load(output, device=device)


def _existing_vocabulary(plan: Recipe, output: Path, start: Bundle | None) -> Vocabulary | None:
    """That of the model a run begins with, which the run then has too."""
    if start:
        return Vocabulary(start.source_tokenizer, start.target_tokenizer)
    if plan.train.init_from:
        return Vocabulary.load(output, joint=not (output / "tokenizer.target.json").exists())
    return None


def _corpus(plan: Recipe, material: TrainingData, device: torch.device) -> Corpus:
    sides = (material.train.source, material.train.target)
    return Corpus(
        pairs=len(material.train),
        tokens=max(len(side.ids) for side in sides),
        longest=max(side.length_quantile(1) for side in sides),
        has_valid=material.valid is not None,
        exact=plan.data.vocabulary == "characters",
        gpu=device.type != "cpu",
    )


def _copy_initial_weights(start: Bundle, model: Transformer, name: str) -> None:
    try:
        set_weights(model, weights(start.model))
    except ConfigError as error:
        raise ConfigError(
            f"the model of {name} is not of the sizes this recipe asks for: {error}; leave [model] out, or give "
            "the sizes in its config.json"
        ) from error


def _describe_time(plan: Recipe, material: TrainingData, model: Transformer) -> str:
    settings, vocabulary = plan.train, material.vocabulary
    feed = batches(
        material.train,
        batch_tokens=settings.batch_tokens,
        seed=settings.seed,
        pad_id=vocabulary.source.pad_id,
        target_pad_id=vocabulary.target.pad_id,
    )
    seconds = seconds_per_update(model, feed, settings)
    return (
        f"about {format_duration(seconds * settings.steps)} for {settings.steps:,} updates of {seconds:.3g} seconds, "
        "measured just now; looking at how it does comes on top"
    )


def _has_updates_left(run: Run) -> bool:
    """Whether something of a run is still to be done; with more steps or patience than before there may be."""
    settings, place = run.recipe.train, run.state
    if settings.steps < place.step:
        raise ConfigError(f"train.steps={settings.steps} is less than the {place.step} updates already done")
    place.stopped_early = 0 < settings.patience <= place.validations_since_best
    place.finished = place.finished and (place.stopped_early or place.step == settings.steps)
    return not place.finished
