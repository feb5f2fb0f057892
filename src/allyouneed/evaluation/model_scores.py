"""Scores of a model on pairs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..bundle import Bundle
from ..data.pairs import Pair
from ..device import pick_device
from ..metrics import (
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
from ..run import Evaluation, Sample
from ..translator import Translator
from ..translator.texts import checked_references

SourceReferences = Iterable[tuple[str, str | Sequence[str]]]


@dataclass(frozen=True, slots=True)
class TranslatedSet:
    """Sources, the references of each, and the translations of a system that is called `name`."""

    name: str
    sources: Sequence[str]
    references: Sequence[Sequence[str]]
    outputs: Sequence[str]

    def samples(self) -> list[Sample]:
        """Each with its first reference and its chrF."""
        scores = sentence_chrf(self.outputs, self.references)
        rows = zip(self.sources, self.references, self.outputs, scores, strict=True)
        return [Sample(source, references[0], output, score) for source, references, output, score in rows]

    def wrong(self) -> list[Sample]:
        """Those that equal none of their references, worst first."""
        pairs = zip(self.samples(), self.references, strict=True)
        wrong = [sample for sample, references in pairs if sample.output not in references]
        return sorted(wrong, key=lambda sample: sample.score)


@dataclass(frozen=True, slots=True)
class ScoredSet:
    """A translated set and what every metric counts in its sentences."""

    translated: TranslatedSet
    metrics: Mapping[str, Metric]
    counts: Mapping[str, SentenceCounts]

    @classmethod
    def count(cls, translated: TranslatedSet, metrics: Mapping[str, Metric]) -> "ScoredSet":
        """Count for all `metrics`. Refuses an empty set."""
        counts = {
            name: count_sentences(metric, translated.outputs, translated.references) for name, metric in metrics.items()
        }
        return cls(translated, metrics, counts)

    def intervals(self) -> dict[str, Interval]:
        """The scores with their 95 % intervals, by the name of the metric."""
        return {name: score_with_interval(metric, self.counts[name]) for name, metric in self.metrics.items()}

    def telling_metrics(self) -> list[str]:
        """The names of the metrics to show: without BLEU where no reference has four words, if others are counted."""
        telling = [name for name, metric in self.metrics.items() if can_rise(metric, self.translated.references)]
        return telling or list(self.metrics)

    def compare(self, other: "ScoredSet") -> dict[str, PairedScore]:
        """The scores of both on the same sentences, with the significance of their differences."""
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
    """Translate the sources of some pairs. References are normalized as the model's training text was."""
    if isinstance(model, str | Path):
        model = Bundle.load(model, device=pick_device())
    translator = model if isinstance(model, Translator) else Translator(model)
    rows = list(checked_references(pairs))
    outputs = translator.translate([source for source, _ in rows], on_progress=on_progress)
    # A letter and its accent may be one character or two, which would count as different words.
    references = [[translator.bundle.normalization(target) for target in targets] for _, targets in rows]
    return TranslatedSet(name, [source for source, _ in rows], references, outputs)


def evaluate(
    model: Bundle | Translator | str | Path,
    pairs: SourceReferences,
    *,
    tokenize: str = "13a",
    metrics: Sequence[str] = METRICS,
    intervals: bool = True,
    on_progress: Callable[[int], None] = lambda _: None,
) -> Evaluation:
    """Translate the sources of some pairs and compare with their targets.

    The scores are BLEU, chrF2, chrF++, TER, character error rate and exact match, in percent, each with its 95 %
    interval; `metrics` names some of them, or "wer", the word error rate, and `intervals=False` saves the bootstrap
    samples. TER, CER and WER are better when lower, and may exceed 100. A target is one reference translation, or
    several. `tokenize` is sacrebleu's tokenizer for BLEU, "none" for text that is tokenized already. References are
    normalized as the model's training text was. The samples are the translations, each with its chrF. A bundle, or the
    folder of one, is searched with the settings stored in it, a `Translator` with its own:
    `evaluate(Translator.load("runs/mine", beam=8), pairs)`. Refuses an empty set, what is no pair, and a text that
    cannot be translated.
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
    """BLEU, chrF and exact match of greedy search in large batches, for validation during training."""
    return evaluate(greedy_translator(bundle), pairs, metrics=QUICK_METRICS, intervals=False)


def greedy_translator(bundle: Bundle) -> Translator:
    """A translator with greedy search in large batches."""
    greedy = replace(
        bundle.decode, beam=1, nbest=1, beam_groups=1, sample=False, batch_size=max(128, bundle.decode.batch_size)
    )
    return Translator(bundle, decode=greedy)
