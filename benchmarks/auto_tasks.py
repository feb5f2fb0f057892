"""Tasks for benchmarks/auto.py: files of pairs that are there, and others that are made here.

roman      1994                  → MCMXCIV
greek      Θεσσαλονικη           → Thessalonike           invented words, transliterated letter by letter
spelling   the quikc borwn fox   → the quick brown fox    one letter in eight words wrong
parts      M8x1,25 bolt zinc 40  → BLT-M08-125-040-ZN     part numbers from orders
sorting    40 7 112              → 7 40 112               up to eight numbers
numbers    forty-two             → 42                     numbers up to 999,999 in words
backwards  qwerty                → ytrewq                 up to 14 letters
cipher     I hear you.           → L khdu brx.            sentences, every letter moved by three in the alphabet
spaces     Ihearyou.             → I hear you.            sentences without spaces
accents    J'ai ete la.          → J'ai été là.           sentences without their accents
typos      I haer you.           → I hear you.            sentences with a wrong letter in 15 % of the words
few-en-fr  I hear you.           → Je vous entends.       3,300 pairs of Tatoeba
"""

import gzip
import random
import string
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import inflect

Pairs = list[tuple[str, str]]


class Files(NamedTuple):
    """Where a task's pairs are in the folder of corpora, [source, target] or one file of both; `metric` fits it."""

    train: tuple[str, ...]
    valid: tuple[str, ...]
    test: tuple[str, ...]
    metric: str


def strings(name: str) -> Files:
    """Name the files of a task of the folder string-tasks, which has no validation pairs."""
    return Files((f"string-tasks/{name}.train.tsv.gz",), (), (f"string-tasks/{name}.test.tsv.gz",), "exact")


def languages(folder: str, source: str, target: str, *, valid: str = "valid", test: str = "test") -> Files:
    """Name the files of a translation task: aligned files of two languages."""
    train, validation, tests = (
        tuple(f"{folder}/{part}.{side}.gz" for side in (source, target)) for part in ("train", valid, test)
    )
    return Files(train, validation, tests, "bleu")


STORED = {
    "add": strings("add"),
    "sql": strings("sql"),
    "g2p": strings("g2p"),
    "multi30k": languages("multi30k-en-de/raw", "en", "de", valid="val", test="test_2016_flickr"),
    "tatoeba-en-it": languages("tatoeba-en-it", "en", "it"),
    "tatoeba-en-fr": languages("tatoeba-en-fr", "en", "fr"),
}


def read_pairs(files: tuple[Path, ...]) -> Pairs:
    """Read the pairs of two aligned files, or of one that is separated by tabs; compressed by gzip."""
    sides = [gzip.decompress(file.read_bytes()).decode().splitlines() for file in files]
    if len(sides) == 2:
        return list(zip(*sides, strict=True))
    return [(source, target) for source, target in (line.split("\t") for line in sides[0])]


def made_pairs(task: str, folder: Path | None) -> Pairs:
    """Make the pairs of a task that needs no files, all with different sources; always the same pairs."""
    if task in GENERATED:
        made = GENERATED[task](random.Random(task))
    else:
        assert folder, f"{task} is made from translations"
        made = FROM_TRANSLATIONS[task](read_pairs(tuple(folder / name for name in STORED["tatoeba-en-fr"].train)))
    pairs: dict[str, str] = {}
    for source, target in made:
        pairs.setdefault(source, target)
        if len(pairs) == MADE_COUNTS[task]:
            return list(pairs.items())
    raise AssertionError(f"{task} has only {len(pairs)} pairs")


def roman(choice: random.Random) -> Iterator[tuple[str, str]]:
    """Yield numbers up to 3,999 in Roman numerals."""
    values = {1000: "M", 900: "CM", 500: "D", 400: "CD", 100: "C", 90: "XC", 50: "L", 40: "XL"}
    values |= {10: "X", 9: "IX", 5: "V", 4: "IV", 1: "I"}
    for number in choice.sample(range(1, 4_000), 3_999):
        rest, numeral = number, ""
        for value, letters in values.items():
            numeral += rest // value * letters
            rest %= value
        yield str(number), numeral


def greek(choice: random.Random) -> Iterator[tuple[str, str]]:
    """Yield invented words of Greek letters and their transliteration (ISO 843, without accents)."""
    vowels = dict(zip("αεηιου", "aeiiou", strict=True))
    consonants = dict(zip("βγδζκλμνξπρστφ", "vgdzklmnxprstf", strict=True)) | {"θ": "th", "χ": "ch", "ψ": "ps"}
    while True:
        source = target = ""
        for _ in range(choice.randint(2, 5)):
            for letters in (consonants, vowels):
                letter = choice.choice(list(letters))
                source, target = source + letter, target + letters[letter]
        yield source.capitalize(), target.capitalize()


WORDS = """
time year people way day man thing woman life child world school state family student group country problem
hand part place case week company system program question work government number night point home water room
mother area money story fact month lot right study book eye job word business issue side kind head house
service friend father power hour game line end member law car city community name president team minute idea
body information back parent face others level office door health person art war history party result change
morning reason research girl guy moment air teacher force education the with from have this that they will
"""


def spelling(choice: random.Random) -> Iterator[tuple[str, str]]:
    """Yield common words in random order; in one of eight a letter is doubled, left out, replaced or exchanged."""
    while True:
        words = choice.choices(WORDS.split(), k=choice.randint(2, 5))
        yield " ".join(misspelled(word, choice) if choice.random() < 1 / 8 else word for word in words), " ".join(words)


def misspelled(word: str, choice: random.Random) -> str:
    """Make one mistake in a word."""
    at = choice.randrange(len(word) - 1)
    head, letter, following, tail = word[:at], word[at], word[at + 1], word[at + 2 :]
    wrong = (letter * 2 + following, following, choice.choice(string.ascii_lowercase) + following, following + letter)
    return head + choice.choice(wrong) + tail


def parts(choice: random.Random) -> Iterator[tuple[str, str]]:
    """Yield orders of bolts, nuts and washers, and their part numbers."""
    kinds, finishes = {"bolt": "BLT", "nut": "NUT", "washer": "WSH"}, {"zinc": "ZN", "plain": "PL", "black": "BK"}
    while True:
        kind, finish = choice.choice(list(kinds)), choice.choice(list(finishes))
        size, pitch, length = (
            choice.randint(2, 39),
            choice.choice(("0,5", "0,75", "1,0", "1,25")),
            choice.randint(4, 250),
        )
        words = [f"M{size}x{pitch}", kind, finish, f"{length}"]
        if choice.random() < 0.5:
            words[1], words[2] = words[2], words[1]
        number = f"{kinds[kind]}-M{size:02}-{pitch.replace(',', '').ljust(3, '0')}-{length:03}-{finishes[finish]}"
        yield " ".join(words), number


def sorting(choice: random.Random) -> Iterator[tuple[str, str]]:
    """Yield two to eight numbers up to 999, in order of size."""
    while True:
        numbers = choice.choices(range(1_000), k=choice.randint(2, 8))
        yield " ".join(map(str, numbers)), " ".join(map(str, sorted(numbers)))


def numbers(choice: random.Random) -> Iterator[tuple[str, str]]:
    """Yield English words for numbers up to 999,999, of all lengths, and the digits."""
    in_words = inflect.engine().number_to_words
    while True:
        number = choice.randrange(10 ** choice.randint(2, 6))
        yield str(in_words(f"{number}")), f"{number}"


def backwards(choice: random.Random) -> Iterator[tuple[str, str]]:
    """Yield strings of 2 to 14 letters and their reverse."""
    while True:
        text = "".join(choice.choices(string.ascii_lowercase, k=choice.randint(2, 14)))
        yield text, text[::-1]


def cipher(translations: Pairs) -> Iterator[tuple[str, str]]:
    """Yield sentences, and the same with every letter moved by three in the alphabet (Caesar)."""
    lower, upper = string.ascii_lowercase, string.ascii_uppercase
    moved = str.maketrans(lower + upper, lower[3:] + lower[:3] + upper[3:] + upper[:3])
    for sentence, _ in translations:
        yield sentence, sentence.translate(moved)


def spaces(translations: Pairs) -> Iterator[tuple[str, str]]:
    """Yield sentences without their spaces, and with them."""
    for sentence, _ in translations:
        yield sentence.replace(" ", ""), sentence


def accents(translations: Pairs) -> Iterator[tuple[str, str]]:
    """Yield French sentences without their accents, and with them."""
    for _, sentence in translations:
        letters = unicodedata.normalize("NFD", sentence)
        yield "".join(letter for letter in letters if not unicodedata.combining(letter)), sentence


def typos(translations: Pairs) -> Iterator[tuple[str, str]]:
    """Yield sentences with one wrong letter in 15 % of the words of three and more letters, and without."""
    choice = random.Random("typos")
    for sentence, _ in translations:
        words = sentence.split()
        wrong = (misspelled(word, choice) if len(word) > 2 and choice.random() < 0.15 else word for word in words)
        yield " ".join(wrong), sentence


GENERATED: dict[str, Callable[[random.Random], Iterator[tuple[str, str]]]] = {
    "roman": roman, "greek": greek, "spelling": spelling, "parts": parts, "sorting": sorting, "numbers": numbers,
    "backwards": backwards,
}  # fmt: skip
FROM_TRANSLATIONS: dict[str, Callable[[Pairs], Iterator[tuple[str, str]]]] = {
    "cipher": cipher, "spaces": spaces, "accents": accents, "typos": typos, "few-en-fr": iter,
}  # fmt: skip
MADE_COUNTS = {  # the last tenth is the test
    "roman": 3_900, "greek": 12_000, "spelling": 12_000, "parts": 12_000, "sorting": 20_000, "numbers": 12_000,
    "backwards": 20_000, "cipher": 20_000, "spaces": 40_000, "accents": 40_000, "typos": 40_000,
    "few-en-fr": 3_300,
}  # fmt: skip
