"""The uncertainty of scores: bootstrap samples of the sentences (Koehn, 2004), drawn as in sacrebleu.

The samples, intervals and p-values equal those of sacrebleu's `PairedTest`. Its arrays, however, grow with 1,000 times
the number of sentences; here a sample is a weight for each sentence, so any test set fits into memory.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .corpus_metrics import FloatArray, Metric, References, SentenceCounts, count_sentences, make_metrics

SAMPLES, SEED = 1_000, 12_345  # as in sacrebleu
CONFIDENCE = 0.95
SIGNIFICANT = 0.05
FEWEST = 30  # sentences; samples of fewer vary too little, and all samples of a single sentence are equal


@dataclass(frozen=True, slots=True)
class Interval:
    """A corpus score with the ends of its 95 % interval."""

    name: str
    value: float
    low: float
    high: float
    signature: str
    higher_is_better: bool = True


@dataclass(frozen=True, slots=True)
class PairedScore:
    """The corpus scores of two models on the same sentences, and the p-value of their difference.

    `sentences` is the number of sentences.
    """

    name: str
    first: float
    second: float
    p_value: float
    sentences: int
    signature: str
    higher_is_better: bool = True

    @property
    def better(self) -> int | None:
        """The significantly better model, 0 or 1; None if there is no significant difference or few sentences."""
        if self.first == self.second or self.p_value >= SIGNIFICANT or self.sentences < FEWEST:
            return None
        return int((self.second > self.first) == self.higher_is_better)


def resampled_scores(counts: SentenceCounts) -> FloatArray:
    """Score each bootstrap sample: the same number of sentences, drawn with replacement. Shape (samples,)."""
    rng, sentences = np.random.default_rng(SEED), len(counts.rows)
    samples = (rng.integers(sentences, size=sentences) for _ in range(SAMPLES))
    return np.array([counts.compute(np.bincount(drawn, minlength=sentences) @ counts.rows) for drawn in samples])


def score_with_interval(metric: Metric, counts: SentenceCounts) -> Interval:
    """Compute a corpus score and its 95 % interval."""
    low, high = _ends(resampled_scores(counts))
    return Interval(metric.title, counts.score, low, high, counts.signature, metric.higher_is_better)


def paired_bootstrap(
    first: Sequence[str],
    second: Sequence[str],
    references: References,
    metrics: Mapping[str, Metric] | None = None,
) -> list[PairedScore]:
    """Score two models with sacrebleu's paired bootstrap, by default by BLEU and chrF2.

    Refuses texts that do not pair, and an empty set.
    """
    chosen = make_metrics(["bleu", "chrf"]) if metrics is None else metrics
    return [
        compare_counts(metric, *(count_sentences(metric, outputs, references) for outputs in (first, second)))
        for metric in chosen.values()
    ]


def compare_counts(metric: Metric, first: SentenceCounts, second: SentenceCounts) -> PairedScore:
    """Compute the scores of two models and the p-value of their difference.

    The p-value is the share of bootstrap samples whose difference is at least as far from the mean of all samples as
    the measured difference is from 0.
    """
    difference = abs(second.score - first.score)
    differences = np.abs(resampled_scores(second) - resampled_scores(first))
    as_large = int((differences - differences.mean() > difference).sum())
    p_value = (as_large + 1) / (SAMPLES + 1) if difference else 1.0
    how = [first.signature] * (first.signature == second.signature) + [f"bs:{SAMPLES}|seed:{SEED}"]
    return PairedScore(
        metric.title, first.score, second.score, p_value, len(first.rows), "|".join(how), metric.higher_is_better
    )


def _ends(scores: FloatArray) -> tuple[float, float]:
    outside = round(SAMPLES * (1 - CONFIDENCE) / 2)
    ordered = np.sort(scores)
    return float(ordered[outside]), float(ordered[-outside - 1])
