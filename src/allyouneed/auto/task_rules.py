"""Find out from their statistics what kind of task some pairs are, and choose a vocabulary that suits it.

In *text*, such as translations, several targets may be correct. In *strings* (pronunciations, part numbers) and
*templates* (SQL for a few tables, sums) only one is correct.
"""

from math import inf
from typing import Any, Literal

from .statistics import PairStatistics, SideStatistics

TaskKind = Literal["text", "strings", "templates"]

# Text has at least TEXT_WORDS words on both sides. Its targets have at least TEXT_DISTINCT different words, or a share
# of more than TEXT_NOVEL new words.
TEXT_WORDS, TEXT_DISTINCT, TEXT_NOVEL = 2.5, 500, 0.01
NEAR_COPIES = 0.5  # from this share of target words in the source on, a pair of equal sides is correct and kept
# Texts are changed letter by letter if the ratio of the sides' lengths varies by less than SAME_LENGTHS, and neither
# side has more than MOST_LETTERS characters on average.
SAME_LENGTHS, MOST_LETTERS = 0.05, 60
CLOSED = 0.01  # a side with at most this share of new units has a closed vocabulary
LETTERS = 1.5  # characters per "word", on average; if there are fewer, words are letters

# Symbols of more than SHORT characters are spelled out if the other side writes at least the share COPIED of them.
SHORT, COPIED = 3, 0.3
# If at least COPIES of the target, on average, is a string that also occurs in the source, a share of the pairs is made
# up (data/made_up.py): MADE_UP, by the largest number of pairs.
COPIES, MADE_UP = 0.25, {500: 0.5, 3_000: 0.3, inf: 0.1}
# For strings of several recurring words, byte pairs are correct more often than characters after the same minutes. In a
# script with more than MOST_ALPHABET letters, letters would take up most of this vocabulary.
PHRASE_TOKENS, MOST_ALPHABET, WORD_LETTERS = 1_000, 250, 2


def task_kind(statistics: PairStatistics) -> tuple[TaskKind, str]:
    """Say what kind of task some pairs are, and which numbers show it."""
    source, target = statistics.source, statistics.target
    if all(_closed_sides(statistics)):
        return "templates", f"one target is right; {source.symbols} symbols on one side, {target.symbols} on the other"
    if _has_many_words(statistics):
        if _is_letter_by_letter(statistics):
            spread = f"{statistics.length_spread:.0%}"
            return "strings", f"the ratio of the lengths varies by {spread}: letters change, not words"
        return "text", f"{target.words:.1f} words a target, {target.distinct:,} different ones"
    if max(source.novel, target.novel) <= CLOSED and not any(map(_is_of_letters, (source, target))):
        return "templates", "one target is right, and new texts consist of known words, digits and marks"
    return "strings", f"one target is right; {max(source.novel, target.novel):.0%} of the words of new texts are new"


def _is_letter_by_letter(statistics: PairStatistics) -> bool:
    """Return True if the sides correspond letter by letter, like text without and with accents, and texts are short."""
    mean_length = max(statistics.source.characters, statistics.target.characters)
    return statistics.length_spread < SAME_LENGTHS and mean_length <= MOST_LETTERS


def _is_of_letters(side: SideStatistics) -> bool:
    """Return True if a side's words are single letters, because its script has no spaces or its letters are spaced."""
    return side.words >= 1 and side.word_length < LETTERS


def _has_many_words(statistics: PairStatistics) -> bool:
    source, target = statistics.source, statistics.target
    is_open = target.distinct >= TEXT_DISTINCT or target.novel > TEXT_NOVEL
    return min(source.words, target.words) >= TEXT_WORDS and is_open


def choose_vocabulary(statistics: PairStatistics) -> tuple[dict[str, Any], str]:
    """Choose the settings of [data] for the vocabularies, if they differ from the defaults, and say why."""
    kind, _ = task_kind(statistics)
    spelled, size, closed = "characters", 0, _closed_sides(statistics)
    if kind == "text" or (kind == "templates" and max(statistics.source.words, statistics.target.words) >= 1):
        spelled = "bpe"
    elif kind == "strings" and not any(closed) and _are_phrases(statistics):
        spelled, size = "bpe", PHRASE_TOKENS
    kinds = ["symbols" if is_closed else spelled for is_closed in closed]
    why = [
        f"the {side} consists of {getattr(statistics, side).symbols} symbols"
        for side, one in zip(("source", "target"), kinds, strict=True)
        if one == "symbols"
    ]
    if "characters" in kinds:
        why.append("new texts have new words of known characters" if kind == "strings" else "digits and marks")
    settings: dict[str, Any] = {}
    if kind == "strings" and kinds == ["characters"] * 2 and statistics.copied >= COPIES:
        settings["made_up"] = next(share for most, share in MADE_UP.items() if statistics.pairs <= most)
        why.append(f"{statistics.copied:.0%} of a target are copied, and so other stems and unknown letters are to be")
    if kinds[0] != kinds[1]:
        settings = {"source_vocabulary": kinds[0], "target_vocabulary": kinds[1]}
    elif kinds[0] != "bpe":
        settings["vocabulary"] = kinds[0]
    if size and "bpe" in kinds:
        settings["vocab_size"] = size
        why.append(f"{statistics.target.words:.1f} words a target")
    return settings, "; ".join(why)


def _closed_sides(statistics: PairStatistics) -> tuple[bool, bool]:
    """Return, for the source and the target, True if each word of the side should be one token.

    This requires that the side consists of symbols, words of a closed set. Such words are spelled out if the other side
    spells them, such as the years of dates. Numbers without words are spelled out too.
    """
    sides = statistics.source, statistics.target
    closed = [side.symbols > 0 and side.distinct > 0 for side in sides]
    if not all(closed) and statistics.shared_characters >= COPIED:
        closed = [is_closed and side.symbol_length <= SHORT for is_closed, side in zip(closed, sides, strict=True)]
    return closed[0], closed[1]


def _are_phrases(statistics: PairStatistics) -> bool:
    sides, target = (statistics.source, statistics.target), statistics.target
    has_words = target.words >= TEXT_WORDS and target.word_length >= WORD_LETTERS
    return has_words and max(side.alphabet for side in sides) <= MOST_ALPHABET
