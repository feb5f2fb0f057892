"""Scores of translations, and their statistical uncertainty."""

from .bootstrap import (
    FEWEST,
    SAMPLES,
    Interval,
    PairedScore,
    compare_counts,
    paired_bootstrap,
    resampled_scores,
    score_with_interval,
)
from .corpus_metrics import (
    AUTO,
    METRICS,
    QUICK_METRICS,
    Metric,
    References,
    Score,
    SentenceCounts,
    bleu,
    can_rise,
    chrf,
    count_sentences,
    edit_distance,
    exact_match,
    looks_tokenized,
    make_metrics,
    refuse_unknown_tokenizer,
    sentence_chrf,
)

__all__ = [
    "AUTO", "FEWEST", "METRICS", "QUICK_METRICS", "SAMPLES", "Interval", "Metric", "PairedScore", "References", "Score",
    "SentenceCounts", "bleu", "can_rise", "chrf", "compare_counts", "count_sentences", "edit_distance", "exact_match",
    "looks_tokenized", "make_metrics", "paired_bootstrap", "refuse_unknown_tokenizer", "resampled_scores",
    "score_with_interval", "sentence_chrf",
]  # fmt: skip
