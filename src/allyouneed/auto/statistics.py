"""Statistics of pairs: facts about a task that need no trained model.

A *word* is a run of letters with their marks; in a script without spaces between words, it is a character. A *unit* is
a word, a digit or a punctuation mark.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from statistics import mean, pstdev
from typing import Any, Literal

from ..data.pairs import Pair, stride

MOST_MEASURED = 20_000  # pairs
# A side consists of symbols (words of a closed set) if texts have at least SYMBOLS of them on average, at most
# MOST_SYMBOLS of them differ, each occurs RECURRING times on average, and at most the share RARE occurs only once.
SYMBOLS, MOST_SYMBOLS, RECURRING, RARE = 1.5, 2_000, 20, 0.005
MOST_LINKED, MOST_LINKED_UNITS = 1_000, 40  # pairs, and units of a side, from which `monotonic` is computed
SAME_FORM = 0.9  # share of the occurrences of a character that are in its most frequent form

# Scripts without spaces between words: Thai to Tibetan, Myanmar, Khmer, Chinese and Japanese.
_UNSPACED = "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fff\u3041-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_OTHER = r"\s\d!-/:-@\[-`{-~\u00a1-\u00bf\u2010-\u2e7f\u3000-\u3040"  # spaces, digits, punctuation and symbols
_UNITS = re.compile(rf"[{_UNSPACED}]|[^{_OTHER}{_UNSPACED}]+|\S")
_WORD = re.compile(rf"[^{_OTHER}]")


@dataclass(frozen=True, slots=True)
class SideStatistics:
    """Statistics of one side of the pairs; lengths are means.

    `novel` is the share, from 0 to 1, of the units in the last tenth of the texts that do not occur in earlier texts;
    it is high for an open vocabulary. `distinct` is the number of different words, and `repeated` the share of texts
    that equal an earlier text. `symbols` is the number of different strings between spaces, such as AE1, if they are a
    closed set, and 0 otherwise. `symbol_length` is their mean length in characters.
    """

    script: str
    characters: float
    words: float
    word_length: float
    distinct: int
    alphabet: int
    novel: float
    repeated: float
    symbols: int
    symbol_length: float

    def describe(self) -> str:
        """Describe the statistics in a few words; a side of only digits and marks gets fewer."""
        if not self.distinct:
            return f"{self.characters:.0f} characters, digits and marks alone"
        words = f"{self.characters:.0f} characters ({self.script}), {self.words:.1f} words, {self.distinct:,} different"
        return f"{words}, {self.novel:.1%} of them, digits and marks unknown in new texts"


@dataclass(frozen=True, slots=True)
class PairStatistics:
    """Statistics of pairs; shares are from 0 to 1.

    `shared_characters` and `shared_words` are the shares of the target that also occur in its source. `copied` is the
    length of the longest string on both sides, as a share of the target. `functional` is the share of the different
    sources that have only one target. `monotonic` is the share of neighbouring target units whose most associated
    source units are in the same order: about 0.5 if order means nothing. `length_spread` is the standard deviation of
    the ratio of the sides' lengths in characters, as a share of its mean: 0 if every letter becomes one other, at least
    0.16 in translations. `unicode_form` is "NFC" if all texts are in that form; "consistent" if some are not, but equal
    characters nearly always have the same form, as in Arabic with its marks in the order of typing; otherwise "mixed".
    """

    pairs: int
    source: SideStatistics
    target: SideStatistics
    shared_characters: float
    shared_words: float
    copied: float
    functional: float
    monotonic: float
    length_spread: float
    unicode_form: Literal["NFC", "consistent", "mixed"] = "NFC"

    def describe(self) -> str:
        """Describe the statistics in one line."""
        shared = f"{self.shared_characters:.0%} of the target's characters"
        if self.target.distinct:
            shared += f" and {self.shared_words:.0%} of its words"
        return "; ".join(
            (
                f"{self.source.describe()} → {self.target.describe()}",
                f"{shared} occur in the source",
                f"{self.functional:.0%} of the sources have one target",
                f"{self.monotonic:.0%} in the same order",
                f"the ratio of the lengths varies by {self.length_spread:.0%}",
                f"{self.target.repeated:.0%} of the targets are repeated",
            )
        )


def measure_pairs(pairs: Sequence[Pair]) -> PairStatistics:
    """Measure the statistics of one or more pairs. If there are many, only evenly spaced pairs are used."""
    measured = pairs[:: stride(len(pairs), MOST_MEASURED)]
    sources, targets = [pair.source for pair in measured], [pair.target for pair in measured]
    units = [(split_units(pair.source), split_units(pair.target)) for pair in measured]
    return PairStatistics(
        pairs=len(pairs),
        source=_measure_side(sources, [source for source, _ in units]),
        target=_measure_side(targets, [target for _, target in units]),
        shared_characters=_share_in_common(zip(sources, targets, strict=True)),
        shared_words=_share_in_common((_words(source), _words(target)) for source, target in units),
        copied=_share_copied(measured[:: max(1, len(units) // MOST_LINKED)]),
        functional=_share_with_one_target(measured),
        monotonic=_share_in_order(_linked(measured, units)[:: max(1, len(units) // MOST_LINKED)]),
        length_spread=_spread([(len(target) + 1) / (len(source) + 1) for source, target in measured]),
        unicode_form=_unicode_form([*sources, *targets]),
    )


def split_units(text: str) -> list[str]:
    """Split a text into words, digits and punctuation marks, without spaces."""
    return _UNITS.findall(text)


def _words(units: Iterable[str]) -> list[str]:
    return [unit for unit in units if _WORD.match(unit)]


def _measure_side(texts: Sequence[str], units: Sequence[Sequence[str]]) -> SideStatistics:
    words = Counter(word for text in units for word in _words(text))
    characters = Counter(character for text in texts for character in text)
    total = sum(words.values())
    symbols, symbol_length = _measure_symbols(texts)
    return SideStatistics(
        script=_script(characters),
        characters=sum(characters.values()) / len(texts),
        words=total / len(texts),
        word_length=sum(len(word) * count for word, count in words.items()) / max(1, total),
        distinct=len(words),
        alphabet=len(characters),
        novel=_share_of_new(units),
        repeated=1 - len(set(texts)) / len(texts),
        symbols=symbols,
        symbol_length=symbol_length,
    )


def _measure_symbols(texts: Sequence[str]) -> tuple[int, float]:
    """Count the different strings between spaces, and their mean length, if they are a closed set; else return 0."""
    counts = Counter(spaced for text in texts for spaced in text.split())
    total, once = counts.total(), sum(count == 1 for count in counts.values())
    is_closed = len(counts) <= MOST_SYMBOLS and total >= RECURRING * len(counts) and once <= RARE * total
    if not is_closed or total < SYMBOLS * len(texts):
        return 0, 0.0
    return len(counts), sum(len(symbol) * count for symbol, count in counts.items()) / total


def _script(characters: Counter[str]) -> str:
    """Return the script of most letters by its Unicode name, such as "Latin"; "no letters" if there are none."""
    scripts = Counter[str]()
    for character, count in characters.items():
        if character.isalpha():
            scripts[unicodedata.name(character, "unknown").partition(" ")[0].capitalize()] += count
    return scripts.most_common(1)[0][0] if scripts else "no letters"


def _share_of_new(units: Sequence[Sequence[str]]) -> float:
    known = {unit for number, text in enumerate(units) if number % 10 != 9 for unit in text}
    later = [unit for text in units[9::10] for unit in text]
    return sum(unit not in known for unit in later) / max(1, len(later))


def _share_in_common(sides: Iterable[tuple[Sequence[str], Sequence[str]]]) -> float:
    common = total = 0
    for source, target in sides:
        common += (Counter(source) & Counter(target)).total()
        total += len(target)
    return common / max(1, total)


def _share_copied(pairs: Sequence[Pair]) -> float:
    longest = sum(SequenceMatcher(None, *pair, autojunk=False).find_longest_match().size for pair in pairs)
    return longest / max(1, sum(len(pair.target) for pair in pairs))


def _unicode_form(texts: Sequence[str]) -> Literal["NFC", "consistent", "mixed"]:
    """Compare the forms of each character with its marks that is not in NFC everywhere."""
    if all(unicodedata.is_normalized("NFC", text) for text in texts):
        return "NFC"
    forms: dict[str, Counter[str]] = defaultdict(Counter)
    for text in texts:
        for character in _with_marks(text):
            forms[unicodedata.normalize("NFC", character)][character] += 1
    others = [counts for composed, counts in forms.items() if counts.keys() != {composed}]
    most_frequent = sum(max(counts.values()) for counts in others)
    return "consistent" if most_frequent >= SAME_FORM * sum(map(Counter.total, others)) else "mixed"


def _with_marks(text: str) -> list[str]:
    """Split a text into characters, each with the marks that follow it."""
    characters = list[str]()
    for character in text:
        if characters and unicodedata.category(character).startswith("M"):
            characters[-1] += character
        else:
            characters.append(character)
    return characters


def _spread(ratios: Sequence[float]) -> float:
    return pstdev(ratios) / mean(ratios)


def _share_with_one_target(pairs: Sequence[Pair]) -> float:
    targets: dict[str, list[str]] = defaultdict(list)
    for pair in pairs:
        targets[pair.source].append(pair.target)
    return sum(len(set(some)) == 1 for some in targets.values()) / len(targets)


def _linked(pairs: Sequence[Pair], units: Sequence[tuple[list[str], list[str]]]) -> Sequence[tuple[Any, Any]]:
    """Choose the symbols whose order is compared: units, or characters if a side has only one or two units."""
    few = min(sum(map(len, side)) for side in zip(*units, strict=True)) < 3 * len(units)
    return [(pair.source, pair.target) for pair in pairs] if few else units


def _share_in_order(units: Sequence[tuple[Sequence[str], Sequence[str]]]) -> float:
    """Link each target unit to the source unit that occurs most exclusively with it (Dice), and compare their order."""
    cut = [(source[:MOST_LINKED_UNITS], target[:MOST_LINKED_UNITS]) for source, target in units]
    of_source, of_target = (Counter(unit for pair in cut for unit in set(pair[side])) for side in (0, 1))
    together = Counter((s, t) for source, target in cut for s in set(source) for t in set(target))
    in_order = total = 0
    for source, target in cut:
        if not source:
            continue

        def link(j: int, source: Sequence[str] = source, target: Sequence[str] = target) -> int:
            t, diagonal = target[j], j * len(source) / len(target)
            return max(
                range(len(source)),
                key=lambda i: (together[source[i], t] / (of_source[source[i]] + of_target[t]), -abs(i - diagonal)),
            )

        links = [link(j) for j in range(len(target))]
        in_order += sum(first <= second for first, second in pairwise(links))
        total += max(0, len(links) - 1)
    return in_order / total if total else 1.0
