"""Metrics of the user, which are measured at every validation like BLEU and may stop a run."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from importlib import import_module
from math import isfinite
from pathlib import Path

from ..bundle import Bundle
from ..data.pairs import Pair
from ..errors import ConfigError, TrainingError
from ..metrics import QUICK_METRICS
from ..run import Evaluation, Evaluator, Validation
from ..run.best_model import WITHOUT_TRANSLATIONS
from .model_scores import evaluate_greedily

# Translations and their references → a score, higher is better.
UserMetric = Callable[[Sequence[str], Sequence[str]], float]

MEASURED = (*WITHOUT_TRANSLATIONS, *QUICK_METRICS)  # in every run
RECORDED = {*MEASURED, "perplexity", *(recorded.name for recorded in fields(Validation))}


def collect_metrics(metrics: Mapping[str, UserMetric], early_stopping_metric: str) -> dict[str, UserMetric]:
    """The metrics that a call gives, and that of a recipe if it is a "module:function". Refuses a reserved name."""
    if "" in metrics:
        raise ConfigError("a metric has no name; give it one")
    if taken := [name for name in metrics if name in RECORDED]:
        raise ConfigError(f'a metric cannot be called "{taken[0]}", which every run records; give it another name')
    named = [early_stopping_metric] if ":" in early_stopping_metric else []
    return {**metrics, **{name: load_metric(name) for name in named if name not in metrics}}


def with_stopping_metric(
    evaluate: Evaluator | None, metrics: Mapping[str, UserMetric], stopping: str
) -> Evaluator | None:
    """`evaluate` with the scores of `metrics`, and of `stopping`, an early-stopping metric that may be another.

    Refuses an early-stopping metric that is unknown, and metrics without translations.
    """
    more = collect_metrics(metrics, stopping)
    if more and evaluate is None:
        raise ConfigError(f"metrics ({', '.join(more)}) need translations; leave out evaluate=None")
    measured = (*MEASURED, *more)
    if evaluate is evaluate_greedily and stopping not in measured:
        raise ConfigError(
            f'train.early_stopping_metric must be one of {", ".join(measured)}, or "module:function"; got "{stopping}"'
        )
    return with_metrics(evaluate, more) if evaluate and more else evaluate


def load_metric(name: str) -> UserMetric:
    """The function that "module:function" names; the module may be a file of the current folder."""
    module, _, function = name.partition(":")
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        metric: UserMetric = getattr(import_module(module), function)
    except Exception as error:  # a module may do anything when it is imported
        raise ConfigError(f'the metric "{name}" could not be imported: {type(error).__name__}: {error}') from error
    finally:
        sys.path.remove(here)
    if not callable(metric):
        raise ConfigError(f'the metric "{name}" is no function of translations and references')
    return metric


def with_metrics(evaluate: Evaluator, metrics: Mapping[str, UserMetric]) -> Evaluator:
    """`evaluate`, with the scores that `metrics` give its translations added to its own.

    Refuses a metric that raises an exception, and a score that is no finite number.
    """

    def evaluate_all(bundle: Bundle, pairs: Sequence[Pair], /) -> Evaluation:
        evaluation = evaluate(bundle, pairs)
        if not evaluation.samples:
            raise ConfigError("metrics need the translations, which `evaluate` returns as samples; it returned none")
        outputs = [sample.output for sample in evaluation.samples]
        references = [sample.reference for sample in evaluation.samples]
        scores = {name: _measure(name, metric, outputs, references) for name, metric in metrics.items()}
        return replace(evaluation, scores={**evaluation.scores, **scores})

    return evaluate_all


def _measure(name: str, metric: UserMetric, outputs: Sequence[str], references: Sequence[str]) -> float:
    try:
        score = float(metric(outputs, references))
    except Exception as error:
        raise TrainingError(f'the metric "{name}" failed: {type(error).__name__}: {error}') from error
    if not isfinite(score):
        raise TrainingError(f'the metric "{name}" returned {score}; expected a finite number, higher for the better')
    return score
