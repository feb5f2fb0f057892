"""The rules by which the page cuts, copies and checks texts: patterns and numbers of `text/` and `translator/`.

A Python library decides where sentences end, and its list of abbreviations cannot be read directly. So this file asks
the library about every relevant word: the words in the library's own file, the vocabulary's words, and single letters.
The answers are kept, because every model asks about the same nine languages, and most about the same words.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import sentencex.sentencex as library  # type: ignore[import-untyped]

from ...bundle import Bundle
from ...config import SPANS
from ...config.language_tags import primary_language
from ...decode import SURE
from ...text import letter_case, sentences, spans
from ...text.tokenizer import Tokenizer
from ...translator import Translator, constraints, placeholders, repetition
from ...translator.constrained import WIDEST
from ...translator.generation import NEARLY
from ...translator.segment_translator import TRIES
from .javascript_patterns import to_javascript

_QUOTATIONS = ('""', "“”", "‘’", "«»", "»«", "‹›", "„“", "‚‚", "‟‟", "‛‛", "「」", "《》")
_QUOTED = (
    *(rf"{pair[0]}[^{pair[1]}]*{pair[1]}" for pair in _QUOTATIONS),
    r"(?<!\w)'[^']*'(?!\w)",
    r"(?<!\w)`[^`']*[`'](?!\w)",
    r"[(（<{\[][^)\]}>）]*[)\]}>）]",
)


def page_rules() -> dict[str, Any]:
    """Return the rules that all bundles share. Patterns are pairs: the expression and its flags."""
    in_word = spans.in_word_class()
    return {
        "kinds": SPANS,
        "spans": [[kind, _pattern(one)] for kind in SPANS for one in spans.PATTERNS[kind]],
        "around": spans.AROUND,
        "apart": spans.APART,
        "amount": _pattern(spans.AMOUNT, "gu"),
        "edges": placeholders.EDGES,
        "brackets": placeholders.BRACKETS,
        "signsAndSpans": _pattern(placeholders.SIGNS_AND_SPANS, "gu"),
        "enough": spans.ENOUGH,
        "nearlyAlways": spans.NEARLY_ALWAYS,
        "often": spans.OFTEN,
        "inWord": [in_word, "u"],
        "unspaced": sorted(sentences.UNSPACED),
        "otherBlanks": [r"[^\P{White_Space}\x00-\x7f]", "gu"],
        "blanks": _pattern(sentences.BLANKS, "gu"),
        "clauseEnds": _pattern(sentences.CLAUSE_ENDS, "gu"),
        "shortWord": _pattern(sentences.SHORT_WORD),
        "number": _pattern(sentences.NUMBER, "uy"),
        "initial": _pattern(sentences.INITIAL),
        "ordinal": _pattern(sentences.ORDINAL),
        "wordBefore": _pattern(sentences.WORD_BEFORE),
        "wordAfter": _pattern(sentences.WORD_AFTER, "uy"),
        "window": sentences.WINDOW,
        "votes": sentences.ENOUGH_VOTES,
        "votesIfUnknown": sentences.ENOUGH_IF_UNKNOWN,
        "quoted": [_pattern(one, "gu") for one in _QUOTED],
        "quotes": "".join(pair[1] for pair in _QUOTATIONS) + "'`",
        "kept": letter_case.KEPT,
        "rareCapitals": letter_case.RARE,
        "fewestCapitals": letter_case.SHORTEST,
        "seen": letter_case.SEEN,
        "word": _pattern(letter_case.WORD, "gu"),
        "beginnings": _pattern(letter_case.BEGINNINGS, "gu"),
        "byPlace": _pattern(constraints.BY_PLACE, "uy"),
        "ofSigns": constraints.OF_SIGNS,
        "signs": "".join(sorted(constraints.SIGNS)),
        "codeSigns": constraints.CODE_SIGNS,
        "codeRun": _pattern(constraints.CODE_RUN, "gu"),
        "tagName": _pattern(constraints.TAG_NAME, "uy"),
        "unpaired": sorted(constraints.UNPAIRED),
        "carriers": constraints.CARRIERS,
        "widest": WIDEST,
        "tries": TRIES,
        "sure": SURE,
        "nearly": NEARLY,
        "longestPeriod": repetition.LONGEST_PERIOD,
        "worthMentioning": repetition.WORTH_MENTIONING,
        "wordsInARow": repetition.WORDS_IN_A_ROW,
    }


def bundle_rules(bundle: Bundle) -> dict[str, Any]:
    """Return the rules of one bundle: its languages, and its statistics of copies and capitals."""
    decode = bundle.decode
    copies = bundle.copy_statistics
    return {
        "splitting": splitting_rules(bundle.source_tokenizer, bundle.languages, Translator.splits_sentences_of(bundle)),
        "longestSource": min(bundle.model.config.max_length, bundle.longest_source or bundle.model.config.max_length),
        "longestRepetition": bundle.longest_repetition,
        "copied": decode.copy_spans or constraints.copied_kinds(copies),
        "mustCopy": bool(decode.copy_spans),
        "checksCodes": Translator.checks_codes_of(bundle),
        "copies": {
            "alone": {kind: asdict(count) for kind, count in copies.alone.items()},
            "inside": {kind: asdict(count) for kind, count in copies.inside.items() if kind != spans.VALUES},
            "signs": Translator.known_signs_of(bundle),
        },
        "capitals": asdict(bundle.case_statistics),
        "copyUntranslatable": decode.copy_untranslatable,
        "recase": decode.recase,
        "retryRepetition": decode.retry_repetition,
        "replaceUnknown": decode.replace_unknown,
    }


def _pattern(pattern: str | re.Pattern[str], flags: str = "u") -> list[str]:
    return [to_javascript(pattern if isinstance(pattern, str) else pattern.pattern), flags]


def splitting_rules(tokenizer: Tokenizer, languages: tuple[str, str], is_split: bool) -> dict[str, Any]:
    """Return how texts are cut for a pair of languages: into sentences, or not at all."""
    code = primary_language(languages[0])
    main = sentences.SLOW.get(code, code) or "en"
    asked = (main, *sentences.VOTERS) if is_split else ()
    words = _words_in_question(tokenizer) if is_split else ()
    # Words with a sign → one bit for each language in which no sentence ends after them.
    exceptions: dict[str, int] = {}
    for bit, language in enumerate(asked):
        for sign in "." if bit else ".!":  # as in "Yahoo!"
            for word in _exceptions(words, sign, language):
                exceptions[word] = exceptions.get(word, 0) | 1 << bit
    exceptions = dict(sorted(exceptions.items()))
    # "Jan. Why" is two sentences in English, but "Jan. Smith" is not.
    weak = [
        [word for word, bits in exceptions.items() if bits >> bit & 1 and _count(language, f"{word} Why not") == 2]
        for bit, language in enumerate(asked)
    ]
    return {
        "languages": languages,
        "split": is_split,
        "isKnown": bool(code),
        "ordinals": code in sentences.ORDINALS or not code,
        "signs": [_end_signs(language) for language in asked],
        "goesOn": [_goes_on(language) for language in asked],
        "exceptions": exceptions,
        "slashes": [_parts_at_slash(exceptions, bit, language) for bit, language in enumerate(asked)],
        "weak": weak,
        "starters": [
            _before(words, f"{some[0]} ", 2, language) if some else []
            for some, language in zip(weak, asked, strict=True)
        ],
        "followers": [_before(words, "Xyzzyx. ", 1, language) for language in asked],  # German: "am 3. Mai"
    }


def _words_in_question(tokenizer: Tokenizer) -> tuple[str, ...]:
    """Return the words to ask about, sorted, so that the rules of a bundle are always the same."""
    pieces = (piece.strip("␣▁") for piece in tokenizer.pieces(range(len(tokenizer))))
    forms = _forms(piece for piece in pieces if piece.isalpha() and len(piece) <= 15)
    return tuple(sorted(_listed_words() | forms))


@cache
def _listed_words() -> frozenset[str]:
    """Return all letters, and the words in the library's own file."""
    letters = (chr(code) for code in range(0x41, 0x590))
    text = Path(library.__file__).read_bytes().decode(errors="replace")  # its lists have one word per line
    word = r"[^\W\d_]{1,15}(?:\.[^\W\d_]{1,9})*"
    listed = re.findall(rf"(?<=\n){word}|{word}(?=\n)", text)
    return _forms([*letters, *listed])


def _forms(words: Iterable[str]) -> frozenset[str]:
    return frozenset(form for word in words for form in (word, word.lower(), word.upper(), word.capitalize()))


@lru_cache(maxsize=64)
def _exceptions(words: tuple[str, ...], sign: str, language: str) -> list[str]:
    return [word + sign for word in words if _count(language, f"{word}{sign} Abcde") == 1]


def _parts_at_slash(exceptions: Mapping[str, int], bit: int, language: str) -> bool:
    """Return True if a word before a full stop only counts from its last slash on, as in English."""
    word = next((word for word, bits in exceptions.items() if bits >> bit & 1), "")
    return bool(word) and _count(language, f"xyzzy/{word} Abcde") == 1


@lru_cache(maxsize=64)
def _before(words: tuple[str, ...], beginning: str, sentences: int, language: str) -> list[str]:
    """Return the capitalized words after which, if `beginning` precedes them, a text has this many sentences."""
    return [word for word in words if word.istitle() and _count(language, f"{beginning}{word} abc") == sentences]


def _count(language: str, text: str) -> int:
    """Count the sentences that the library finds."""
    return len(library.segment(language, text))


@cache
def _end_signs(language: str) -> str:
    """List the signs that end a sentence, by themselves or several in a row."""
    signs = (chr(code) for code in range(0x11FFF) if unicodedata.category(chr(code)) == "Po")
    return "".join(sign for sign in signs if _count(language, f"Xyzzyx{sign} Abcde") == 2)


def _goes_on(language: str) -> str:
    """Return a pattern for text after a sign which shows that the sentence continues.

    In all languages this is a small letter directly after the sign. In some languages a blank may precede the letter.
    """
    return r"^[^\p{L}\p{N}_]*[0-9a-z]" if _count(language, "Xyzzyx. abcde") == 1 else "^[0-9a-z]"
