"""What kind of task some pairs are, by their statistics, and which vocabulary suits it.

Of *text*, such as translations, several targets may be right. Of *strings* (sounds of words, part numbers) and
*templates* (SQL of a few tables, sums) one is.
"""

from math import ceil
from typing import Any, Literal

from ..config import DataConfig
from ..text.vocabulary import vocab_size
from .statistics import PairStatistics, SideStatistics

TaskKind = Literal["text", "strings", "templates"]

# Text has at least TEXT_WORDS words on both sides, and in the targets at least TEXT_DISTINCT different words or a share
# of more than TEXT_NOVEL new ones.
TEXT_WORDS, TEXT_DISTINCT, TEXT_NOVEL = 2.5, 500, 0.01
NEAR_COPIES = 0.5  # of the target's words, this share in the source: a pair of equal sides is right, and not dropped
# Texts are changed letter by letter if the ratio of the lengths of their sides varies by less than SAME_LENGTHS, and
# neither side has more than MOST_LETTERS characters on average.
SAME_LENGTHS, MOST_LETTERS = 0.05, 60
CLOSED = 0.01  # a side with at most this share of new units has a closed vocabulary

# The largest vocabulary of text on a CPU, by the minutes of a time budget, as `TEXT_SIZES` in choice_rules.py.
TEXT_VOCABULARIES = {8.5: 4_000}
CHARACTERS = {"vocabulary": "characters", "byte_fallback": True}

# Small vocabularies of byte pairs: the bytes, and twice the words of the side whose vocabulary is closed.
BYTE_TOKENS, MERGES_PER_WORD = 259, 2
MOST_CODES = 500  # different texts of letters and digits, such as AE1, each of which is to be one token
# Strings of several words, which recur: byte pairs are right on more of them than characters in the same minutes. Most
# of this vocabulary would be letters of a script that has more of them.
PHRASE_TOKENS, MOST_ALPHABET, WORD_LETTERS = 1_000, 250, 2


def task_kind(statistics: PairStatistics) -> tuple[TaskKind, str]:
    """What kind of task some pairs are, and by which numbers."""
    source, target = statistics.source, statistics.target
    if _has_many_words(statistics):
        if _is_letter_by_letter(statistics):
            spread = f"{statistics.length_spread:.0%}"
            return "strings", f"the ratio of the lengths varies by {spread}: letters change, not words"
        return "text", f"{target.words:.1f} words a target, {target.distinct:,} different ones"
    if max(source.novel, target.novel) <= CLOSED:
        return "templates", "one target is right, and new texts consist of known words, digits and marks"
    return "strings", f"one target is right; {max(source.novel, target.novel):.0%} of the words of new texts are new"


def _is_letter_by_letter(statistics: PairStatistics) -> bool:
    """Whether both sides go letter by letter, as texts without and with their accents; of short texts alone."""
    mean_length = max(statistics.source.characters, statistics.target.characters)
    return statistics.length_spread < SAME_LENGTHS and mean_length <= MOST_LETTERS


def _has_many_words(statistics: PairStatistics) -> bool:
    source, target = statistics.source, statistics.target
    is_open = target.distinct >= TEXT_DISTINCT or target.novel > TEXT_NOVEL
    return min(source.words, target.words) >= TEXT_WORDS and is_open


def choose_vocabulary(statistics: PairStatistics, minutes: float = 0.0) -> tuple[dict[str, Any], str]:
    """Settings of [data] for the vocabulary, those that differ from the defaults, and why.

    `minutes` is the time budget on a CPU, as `Corpus.core_minutes`; 0: none, or a GPU.
    """
    kind, _ = task_kind(statistics)
    sides = statistics.source, statistics.target
    if kind == "text":
        for most, size in TEXT_VOCABULARIES.items():
            if 0 < minutes <= most and size < vocab_size(DataConfig(), statistics.pairs):
                return {"vocab_size": size}, f"this size suits {describe_minutes(most)} without a GPU"
        return {}, ""
    if kind == "templates" and max(side.words for side in sides) >= 1:
        return {}, ""
    if kind == "strings" and (size := small_vocabulary(statistics)):
        chosen, why = {"vocabulary": "bpe", "vocab_size": size}, "few words on one side; parts of words on the other"
        return (
            ({**chosen, "split": "spaces"}, f"{why}; letters and digits together")
            if _codes(statistics)
            else (chosen, why)
        )
    if kind == "strings" and _are_phrases(statistics):
        return {"vocabulary": "bpe", "vocab_size": PHRASE_TOKENS}, f"{statistics.target.words:.1f} words a target"
    why = "digits and marks, no words" if kind == "templates" else "new texts have new words of known characters"
    return CHARACTERS, why


def _are_phrases(statistics: PairStatistics) -> bool:
    sides, target = (statistics.source, statistics.target), statistics.target
    has_words = target.words >= TEXT_WORDS and target.word_length >= WORD_LETTERS
    return has_words and max(side.alphabet for side in sides) <= MOST_ALPHABET


def small_vocabulary(statistics: PairStatistics) -> int:
    """The size of a vocabulary of byte pairs in which the words of a closed side are one token each; 0: no such side.

    For Latin letters only: those of other scripts are two or three bytes each.
    """
    closed = _closed_sides(statistics)
    others = {statistics.source.script, statistics.target.script} - {"Latin", "no letters"}
    if not closed or others or _has_many_words(statistics):
        return 0
    words = _codes(statistics) or min(side.distinct for side in closed)
    return ceil((BYTE_TOKENS + MERGES_PER_WORD * words) / 100) * 100


def _closed_sides(statistics: PairStatistics) -> list[SideStatistics]:
    return [
        side
        for side in (statistics.source, statistics.target)
        if side.novel <= CLOSED and side.words >= TEXT_WORDS and side.word_length > 1 and side.script == "Latin"
    ]


def _codes(statistics: PairStatistics) -> int:
    """The fewest different codes of a side with a closed vocabulary, such as AE1; 0: none, or many."""
    return min((side.codes for side in _closed_sides(statistics) if 0 < side.codes <= MOST_CODES), default=0)


def describe_minutes(most: float) -> str:
    """A row of a table of time budgets."""
    return f"up to {most:g} minutes of a core" if most < float("inf") else "longer budgets"
