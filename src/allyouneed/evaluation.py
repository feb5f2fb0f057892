"""Scores of a model on pairs, and `fit`, which computes them at every validation."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from .bundle import Bundle
from .config import DecodeConfig, Recipe
from .corpus.pair import Pair
from .errors import ConfigError
from .metrics import bleu, chrf, exact_match, sentence_chrf
from .run import Draft, Evaluation, Evaluator, Sample, TrainingCallback, run_training
from .run.pairs import with_pairs
from .run.run import OptimizerFactory
from .train.optimizer import make_optimizer
from .translator import Translator

METRICS = ("bleu", "chrf", "exact")  # that `evaluate` computes


def evaluate(
    model: Bundle | Translator,
    pairs: Iterable[tuple[str, str | Sequence[str]]],
    *,
    tokenize: str = "13a",
    on_progress: Callable[[int], None] = lambda _: None,
) -> Evaluation:
    """Translate the sources of some pairs and compare with their targets: BLEU, chrF and exact match, from 0 to 100.

    A target is one reference translation, or several. `tokenize` is sacrebleu's tokenizer for BLEU, "none" for text
    that is tokenized already. References are normalized as the model's training text was. The samples are the
    translations, each with its chrF. A bundle is searched with the settings stored in it, a `Translator` with its own:
    `evaluate(Translator.load("runs/mine", beam=8), pairs)`. Refuses an empty set and a text that cannot be translated.
    """
    translator = model if isinstance(model, Translator) else Translator(model)
    rows = [(source, [target] if isinstance(target, str) else target) for source, target in pairs]
    translations = translator.translate([source for source, _ in rows], on_progress=on_progress)
    # A letter and its accent may be one character or two, which would count as different words.
    references = [[translator.bundle.normalization(target) for target in targets] for _, targets in rows]
    scores = {
        "bleu": bleu(translations, references, tokenize=tokenize),
        "chrf": chrf(translations, references),
        "exact": exact_match(translations, references),
    }
    chrfs = sentence_chrf(translations, references)
    return Evaluation(
        scores={name: score.value for name, score in scores.items()},
        samples=[
            Sample(source, targets[0], translation, score)
            for (source, targets), translation, score in zip(rows, translations, chrfs, strict=True)
        ],
        signatures={name: score.signature for name, score in scores.items()},
    )


def evaluate_greedily(bundle: Bundle, pairs: Sequence[Pair]) -> Evaluation:
    """`evaluate` with greedy search in large batches, for validation during training."""
    greedy = DecodeConfig(
        beam=1, extra_length=bundle.decode.extra_length, batch_size=max(128, bundle.decode.batch_size)
    )
    return evaluate(Translator(bundle, decode=greedy), pairs)


def fit(
    recipe: Recipe | Draft,
    output: str | Path,
    *,
    train: Any = None,
    valid: Any = None,
    test: Any = None,
    callback: TrainingCallback | None = None,
    evaluate: Evaluator | None = evaluate_greedily,
    optimizer: OptimizerFactory = make_optimizer,
    resume: bool = False,
) -> Bundle:
    """Train what `recipe` describes and leave it in the folder `output`; its bundle is returned.

    What a `Draft` leaves out is chosen from the corpus. The pairs are those of the files that `recipe` names, or
    `train`, `valid` and `test` from memory: an iterable of (source, target) pairs or of rows, a polars or pandas frame,
    or a data set of Hugging Face, whose two columns `data.columns` names. They are stored in `output`/pairs.
    `callback` is informed of the progress. `evaluate` scores the model on validation pairs at every validation, by
    default BLEU, chrF and exact match of greedy translations; with None only the loss is measured. `optimizer` makes
    the optimizer, whose learning rate follows the recipe's schedule.

    With `resume`, continue from the checkpoint there as if the run had never stopped; start where there is none, and
    leave a finished run as it is. Otherwise refuses an `output` that exists. Refuses to resume with other settings or
    other pairs, and a folder in which another process trains. A SIGINT or SIGTERM saves the run and raises
    `Interrupted`.
    """
    metric = (recipe.preliminary if isinstance(recipe, Draft) else recipe).train.early_stopping_metric
    if evaluate is evaluate_greedily and metric not in ("loss", *METRICS):
        raise ConfigError(f'train.early_stopping_metric must be one of loss, {", ".join(METRICS)}; got "{metric}"')
    parts = {name: part for name, part in (("train", train), ("valid", valid), ("test", test)) if part is not None}
    if parts:
        recipe = with_pairs(recipe, Path(output), parts, resume=resume)
    return run_training(recipe, output, callback=callback, evaluate=evaluate, optimizer=optimizer, resume=resume)
