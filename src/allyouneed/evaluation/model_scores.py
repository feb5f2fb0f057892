"""Scores of a model on pairs, by our metrics and by metrics of the user."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib import import_module
from math import isfinite
from pathlib import Path

from ..bundle import Bundle
from ..data.pairs import Pair
from ..data.readers import read_pairs
from ..errors import ConfigError, TrainingError
from ..machine.device import pick_device
from ..metrics import (
    AUTO,
    METRICS,
    QUICK_METRICS,
    Interval,
    Metric,
    PairedScore,
    SentenceCounts,
    can_rise,
    compare_counts,
    count_sentences,
    make_metrics,
    score_with_interval,
    sentence_chrf,
)
from ..run import Evaluation, Evaluator, Sample, Validation
from ..run.callback import WITHOUT_TRANSLATIONS
from ..translator import Translator
from ..translator.texts import checked_references

SourceReferences = Iterable[tuple[str, str | Sequence[str]]] | str | Path  # a path is a file of pairs


@dataclass(frozen=True, slots=True)
class TranslatedSet:
    """A system called `name`: the sources, the references of each source, and the system's translations."""

    name: str
    sources: Sequence[str]
    references: Sequence[Sequence[str]]
    outputs: Sequence[str]

    def samples(self) -> list[Sample]:
        """Return each translation with its first reference and its chrF."""
        scores = sentence_chrf(self.outputs, self.references)
        rows = zip(self.sources, self.references, self.outputs, scores, strict=True)
        return [Sample(source, references[0], output, score) for source, references, output, score in rows]

    def wrong(self) -> list[Sample]:
        """Return the translations that equal none of their references, the worst first."""
        pairs = zip(self.samples(), self.references, strict=True)
        wrong = [sample for sample, references in pairs if sample.output not in references]
        return sorted(wrong, key=lambda sample: sample.score)


@dataclass(frozen=True, slots=True)
class ScoredSet:
    """A translated set, with each metric's counts for its sentences."""

    translated: TranslatedSet
    metrics: Mapping[str, Metric]
    counts: Mapping[str, SentenceCounts]

    @classmethod
    def count(cls, translated: TranslatedSet, metrics: Mapping[str, Metric]) -> "ScoredSet":
        """Count all `metrics`. Refuses an empty set."""
        counts = {
            name: count_sentences(metric, translated.outputs, translated.references) for name, metric in metrics.items()
        }
        return cls(translated, metrics, counts)

    def intervals(self) -> dict[str, Interval]:
        """Compute the scores with their 95 % intervals, by the name of the metric."""
        return {name: score_with_interval(metric, self.counts[name]) for name, metric in self.metrics.items()}

    def telling_metrics(self) -> list[str]:
        """Return the names of the metrics to show.

        BLEU is left out if no reference has four words and there are others.
        """
        telling = [name for name, metric in self.metrics.items() if can_rise(metric, self.translated.references)]
        return telling or list(self.metrics)

    def compare(self, other: "ScoredSet") -> dict[str, PairedScore]:
        """Compare the scores of two systems on the same sentences, with the significance of their differences."""
        return {
            name: compare_counts(metric, self.counts[name], other.counts[name]) for name, metric in self.metrics.items()
        }


def translate_set(
    model: Bundle | Translator | str | Path,
    pairs: SourceReferences,
    *,
    name: str = "",
    on_progress: Callable[[int], None] = lambda _: None,
) -> TranslatedSet:
    """Translate the sources of some pairs. References are normalized like the model's training text."""
    if isinstance(model, str | Path):
        model = Bundle.load(model, device=pick_device())
    translator = model if isinstance(model, Translator) else Translator(model)
    rows = list(checked_references(read_pairs(str(pairs)) if isinstance(pairs, str | Path) else pairs))
    outputs = translator.translate([source for source, _ in rows], on_progress=on_progress)
    # A letter with an accent may be one character or two, which would count as different words.
    references = [[translator.bundle.normalization(target) for target in targets] for _, targets in rows]
    return TranslatedSet(name, [source for source, _ in rows], references, outputs)


def evaluate(
    model: Bundle | Translator | str | Path,
    pairs: SourceReferences,
    *,
    tokenize: str = AUTO,
    metrics: Sequence[str] = METRICS,
    intervals: bool = True,
    on_progress: Callable[[int], None] = lambda _: None,
) -> Evaluation:
    """Translate the sources of some pairs, or of a file of pairs, and compare the translations with the targets.

    The scores are BLEU, chrF2, chrF++, TER, character error rate and exact match, in percent, each with its 95 %
    interval. `metrics` chooses some of them, or "wer", the word error rate. `intervals=False` saves the time of
    bootstrap samples. TER, CER and WER are better when lower, and may exceed 100. A target is one reference
    translation, or several. `tokenize` is sacrebleu's tokenizer for BLEU: "auto" suits the references' script, "none"
    is for tokenized text. References are normalized like the model's training text. The samples are the translations,
    each with its chrF.

    A bundle, or the folder of a bundle, uses the search settings that are stored in it. A `Translator` uses its own:
    `evaluate(Translator.load("runs/mine", beam=8), pairs)`. Refuses an empty set, anything that is not a pair, and a
    text that cannot be translated.
    """
    translated = translate_set(model, pairs, on_progress=on_progress)
    scored = ScoredSet.count(translated, make_metrics(metrics, tokenize=tokenize))
    ends = {name: (one.low, one.high) for name, one in scored.intervals().items()} if intervals else {}
    return Evaluation(
        scores={name: counts.score for name, counts in scored.counts.items()},
        samples=translated.samples(),
        signatures={name: counts.signature for name, counts in scored.counts.items()},
        intervals=ends,
    )


def evaluate_greedily(bundle: Bundle, pairs: Sequence[Pair]) -> Evaluation:
    """Compute BLEU, chrF and exact match of greedy search in large batches, for validation during training."""
    return evaluate(greedy_translator(bundle), pairs, metrics=QUICK_METRICS, intervals=False)


def greedy_translator(bundle: Bundle) -> Translator:
    """Make a translator with greedy search in large batches."""
    greedy = replace(bundle.decode, beam=1, nbest=1, sample=False, batch_size=max(128, bundle.decode.batch_size))
    return Translator(bundle, decode=greedy)


# A function of translations and their references; higher is better.
UserMetric = Callable[[Sequence[str], Sequence[str]], float]

MEASURED = (*WITHOUT_TRANSLATIONS, *QUICK_METRICS)  # measured in every run
RECORDED = {*MEASURED, "perplexity", *(recorded.name for recorded in fields(Validation))}


def collect_metrics(metrics: Mapping[str, UserMetric], early_stopping_metric: str) -> dict[str, UserMetric]:
    """Combine the metrics of a call with the recipe's early-stopping metric, if that is a "module:function".

    Refuses a metric with a reserved name.
    """
    if "" in metrics:
        raise ConfigError("a metric has no name; give it one")
    if taken := [name for name in metrics if name in RECORDED]:
        raise ConfigError(f'a metric cannot be called "{taken[0]}", which every run records; give it another name')
    named = [early_stopping_metric] if ":" in early_stopping_metric else []
    return {**metrics, **{name: load_metric(name) for name in named if name not in metrics}}


def with_stopping_metric(
    evaluate: Evaluator | None, metrics: Mapping[str, UserMetric], stopping: str
) -> Evaluator | None:
    """Extend an evaluator so that it also computes `metrics` and the early-stopping metric `stopping`.

    Refuses an unknown early-stopping metric, and metrics without translations.
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
    """Import the function that "module:function" names. The module may be a file in the current folder."""
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
        raise ConfigError(f'the metric "{name}" is not a function of translations and references')
    return metric


def with_metrics(evaluate: Evaluator, metrics: Mapping[str, UserMetric]) -> Evaluator:
    """Extend an evaluator so that it also applies `metrics` to the translations.

    Refuses a metric that raises an exception, and a score that is not a finite number.
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
