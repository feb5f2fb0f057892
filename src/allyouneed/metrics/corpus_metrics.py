"""Scores of a corpus of translations: sacrebleu's metrics (Post, 2018), error rates, and exact match."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from ..errors import ConfigError, DataError

# One reference for each translation, or several.
References = Sequence[str] | Sequence[Sequence[str]]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SentenceCounts:
    """The counts behind a corpus score: a row of numbers for each sentence, such as its matching n-grams.

    `compute` makes a score from the sum of the rows of any sentences. `rows` has the shape (sentences, numbers).
    """

    rows: FloatArray
    compute: Callable[[FloatArray], float]
    signature: str

    @property
    def score(self) -> float:
        """The score of all sentences."""
        return self.compute(self.rows.sum(0))


@dataclass(frozen=True, slots=True)
class Metric:
    """A corpus score: its title in tables, how its sentences are counted, and whether lower is better."""

    title: str
    count: Callable[[Sequence[str], Sequence[Sequence[str]]], SentenceCounts]
    higher_is_better: bool = True


@dataclass(frozen=True, slots=True)
class Score:
    """A number in percent, and the signature that says how it was computed."""

    name: str
    value: float
    signature: str


AUTO = "auto"  # chooses the BLEU tokenizer that suits the script of the references


def make_metrics(names: Iterable[str], *, tokenize: str = AUTO) -> dict[str, Metric]:
    """Make metrics by name. Refuses an unknown name.

    `tokenize` is sacrebleu's tokenizer for BLEU. "auto" suits the references' script (`pick_tokenizer`).
    """

    def count_bleu(translations: Sequence[str], references: Sequence[Sequence[str]]) -> SentenceCounts:
        chosen = pick_tokenizer(references) if tokenize == AUTO else tokenize
        return _count(partial(BLEU, tokenize=chosen, force=True), translations, references)

    def count_ter(translations: Sequence[str], references: Sequence[Sequence[str]]) -> SentenceCounts:
        by_character = pick_tokenizer(references) != "13a"  # normalized TER also splits scripts other than Latin
        return _count(partial(TER, normalized=by_character, asian_support=by_character), translations, references)

    known = {
        "bleu": Metric("BLEU", count_bleu),
        "chrf": Metric("chrF2", partial(_count, CHRF)),
        "chrf++": Metric("chrF++", partial(_count, partial(CHRF, word_order=2))),
        "ter": Metric("TER", count_ter, higher_is_better=False),
        "cer": Metric("CER", partial(_count_errors, str, "char"), higher_is_better=False),
        "wer": Metric("WER", partial(_count_errors, str.split, "word"), higher_is_better=False),
        "exact": Metric("exact match", _count_equal),
    }
    if isinstance(names, str):
        raise ConfigError(f"metrics must be a list, [{names!r}]; got the one string {names!r}")
    if unknown := [name for name in names if name not in known]:
        raise ConfigError(f'there is no metric "{unknown[0]}"; known metrics: {", ".join(known)}')
    return {name: known[name] for name in names}


# The metrics that are counted by default.
METRICS = ("bleu", "chrf", "chrf++", "ter", "cer", "exact")
QUICK_METRICS = ("bleu", "chrf", "exact")


def count_sentences(metric: Metric, translations: Sequence[str], references: References) -> SentenceCounts:
    """Count `metric` in each sentence. Refuses texts that do not pair, and an empty set."""
    if len(translations) != len(references):
        raise DataError(f"{len(translations)} translations cannot be scored against {len(references)} references")
    if not references:
        raise DataError("there is nothing to score: the reference is empty")
    return metric.count(translations, list(map(_all, references)))


def can_rise(metric: Metric, references: References) -> bool:
    """Return True if `metric` counts errors, or if a perfect translation would score above 0.

    BLEU, for example, needs references of four words.
    """
    longest = [max(_all(some), key=lambda text: len(text.split())) for some in references]
    return not metric.higher_is_better or count_sentences(metric, longest, references).score > 0


def looks_tokenized(references: References) -> bool:
    """Return True if the references seem to be tokenized: most full stops at their ends have a space before them."""
    ends = [text[-2:] for some in references for text in _all(some) if text.endswith(".")]
    return 2 * ends.count(" .") > len(ends)


_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# Kana, Hangul, Thai, Lao, Tibetan, Burmese, Khmer: scripts whose words are not separated by blanks.
_BY_CHARACTER = "\u3040-\u30ff\u1100-\u11ff\u3130-\u318f\uac00-\ud7af\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff"
_SAMPLE = 1_000  # references whose letters are counted
_COUNTED = re.compile(rf"([{_BY_CHARACTER}])|([{_HAN}])|[^\W\d_{_BY_CHARACTER}{_HAN}]+")


def pick_tokenizer(references: References) -> str:
    """Return the BLEU tokenizer for the script of most words: "zh" for Chinese, "13a" if blanks separate words.

    Japanese, Korean, Thai and others are scored by characters ("char"), because sacrebleu's tokenizers for their words
    need programs that are not installed with it.
    """
    texts = (text for some in references[:_SAMPLE] for text in _all(some))
    scripts = Counter(match.lastindex for text in texts for match in _COUNTED.finditer(text))
    by_character, han, spaced = scripts[1], scripts[2], scripts[None]
    if by_character + han <= spaced:
        return "13a"
    # Japanese text has both kinds of characters; Chinese text may quote a few kana.
    return "zh" if han > 10 * by_character else "char"


def bleu(translations: Sequence[str], references: References, *, tokenize: str = AUTO) -> Score:
    """Compute corpus BLEU (Papineni et al., 2002), cased.

    `tokenize` is a tokenizer of sacrebleu, or "auto" to use `pick_tokenizer`. "none" is for text that is already
    tokenized; its score cannot be compared with a score of plain text.
    """
    return _corpus_score("bleu", translations, references, tokenize=tokenize)


def chrf(translations: Sequence[str], references: References) -> Score:
    """Compute corpus chrF2 (Popović, 2015), which compares characters instead of words."""
    return _corpus_score("chrf", translations, references)


def exact_match(translations: Sequence[str], references: References) -> Score:
    """Compute the percentage of translations that equal a reference exactly."""
    return _corpus_score("exact", translations, references)


def sentence_chrf(translations: Sequence[str], references: References) -> list[float]:
    """Compute chrF2 for each sentence, from 0 to 100."""
    counts = count_sentences(make_metrics(["chrf"])["chrf"], translations, references)
    return [counts.compute(row) for row in counts.rows]


def refuse_unknown_tokenizer(name: str) -> None:
    """Refuse an unknown tokenizer of sacrebleu. The message lists the known names."""
    if name not in (AUTO, *BLEU.TOKENIZERS):
        raise ConfigError(f'sacrebleu has no tokenizer "{name}"; it has {", ".join(sorted(BLEU.TOKENIZERS))}')


def _corpus_score(name: str, translations: Sequence[str], references: References, *, tokenize: str = AUTO) -> Score:
    metric = make_metrics([name], tokenize=tokenize)[name]
    counts = count_sentences(metric, translations, references)
    return Score(metric.title, counts.score, counts.signature)


def _count(make: Callable[[], Any], translations: Sequence[str], references: Sequence[Sequence[str]]) -> SentenceCounts:
    """Count a metric of sacrebleu with the methods that sacrebleu's own significance tests use."""
    metric = make()
    # sacrebleu expects all first references, then all second references and so on, with None where a sentence has no
    # more.
    streams = [list(stream) for stream in zip_longest(*references)]
    rows = np.array(metric._extract_corpus_statistics(list(translations), streams), dtype=np.float64)
    return SentenceCounts(
        rows, lambda sums: float(metric._compute_score_from_stats(sums.tolist()).score), str(metric.get_signature())
    )


def _count_errors(
    cut: Callable[[str], Sequence[str]], unit: str, translations: Sequence[str], references: Sequence[Sequence[str]]
) -> SentenceCounts:
    """Count the edits to the nearest reference, in units of `cut`, and average the references' lengths, as TER does."""
    rows = []
    for output, some in zip(translations, references, strict=True):
        written, expected = cut(output), list(map(cut, some))
        edits = min(edit_distance(written, reference) for reference in expected)
        rows.append((edits, sum(map(len, expected)) / len(expected)))
    return SentenceCounts(
        np.array(rows, dtype=np.float64), _rate, f"nrefs:{_number(references)}|case:mixed|unit:{unit}"
    )


def _rate(sums: FloatArray) -> float:
    edits, length = sums.tolist()
    return 100 * edits / length if length else 100 * float(edits > 0)


def _count_equal(translations: Sequence[str], references: Sequence[Sequence[str]]) -> SentenceCounts:
    equal = [output in some for output, some in zip(translations, references, strict=True)]
    rows = np.array([equal, [1] * len(equal)], dtype=np.float64).T
    return SentenceCounts(rows, lambda sums: float(100 * sums[0] / sums[1]), f"equal:{sum(equal)}|of:{len(equal)}")


def _number(references: Sequence[Sequence[str]]) -> str:
    numbers = set(map(len, references))
    return str(*numbers) if len(numbers) == 1 else "var"


def _all(references: str | Sequence[str]) -> Sequence[str]:
    return [references] if isinstance(references, str) else references


def edit_distance(first: Sequence[str], second: Sequence[str]) -> int:
    """Count the items to insert, delete or replace to turn one sequence into the other (Levenshtein, 1966).

    The items of a string are its characters; the items of a list of words are the words.

    A column of the table of distances is stored in two whole numbers, whose bits say where the distance rises or falls
    by one from row to row (Myers, 1999; Hyyrö, 2003). So each column takes only a few operations, however long it is.
    """
    if not first:
        return len(second)
    occurrences: dict[str, int] = {}
    for row, item in enumerate(first):
        occurrences[item] = occurrences.get(item, 0) | 1 << row
    every, last = (1 << len(first)) - 1, 1 << len(first) - 1
    rises, falls, distance = every, 0, len(first)
    for item in second:
        equal = occurrences.get(item, 0)
        diagonal = (((equal & rises) + rises) ^ rises) | equal | falls  # where going down the diagonal costs nothing
        right = falls | ~(diagonal | rises) & every  # where the distance rises from this column to the next
        left = rises & diagonal
        distance += bool(right & last) - bool(left & last)
        right, left = (right << 1 | 1) & every, left << 1 & every
        rises, falls = left | ~(diagonal | right) & every, right & diagonal
    return distance
