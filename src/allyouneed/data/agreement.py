"""Made-up English sentences with Italian translations, in which an ending depends on a distant word.

`the old woman who lives near the sea is tired` → `la vecchia donna che vive vicino al mare è stanca`. Italian has four
forms of *tired*. The right form agrees in gender and number with the first noun, not with the nearest. English nouns
have no gender, so the decoder has to find the noun.
"""

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Noun(NamedTuple):
    """A noun in both languages, singular and plural, and its gender in Italian: 0 is masculine, 1 feminine."""

    english: tuple[str, str]
    italian: tuple[str, str]
    gender: int


class Adjective(NamedTuple):
    """An English adjective and its Italian forms: masculine and feminine singular, then both plurals."""

    english: str
    italian: tuple[tuple[str, str], tuple[str, str]]


class Verb(NamedTuple):
    """The third person of a verb, singular and plural."""

    english: tuple[str, str]
    italian: tuple[str, str]


def _nouns(*lines: str) -> list[Noun]:
    rows = [line.split() for line in lines]
    return [Noun((one, many), (uno, molti), "mf".index(gender)) for one, many, uno, molti, gender in rows]


def _adjectives(*lines: str) -> list[Adjective]:
    rows = [line.split() for line in lines]
    return [Adjective(english, ((m, f), (ms, fs))) for english, m, f, ms, fs in rows]


def _verbs(*lines: str) -> list[Verb]:
    rows = [line.split() for line in lines]
    return [Verb((sees, see), (vede, vedono)) for sees, see, vede, vedono in rows]


# Only words before which the articles are il, la, i and le: lo, gli and l' would be another lesson.
PEOPLE = _nouns(
    "woman women donna donne f", "girl girls ragazza ragazze f", "lady ladies signora signore f",
    "sister sisters sorella sorelle f", "queen queens regina regine f", "grandmother grandmothers nonna nonne f",
    "boy boys ragazzo ragazzi m", "gentleman gentlemen signore signori m", "brother brothers fratello fratelli m",
    "king kings re re m", "grandfather grandfathers nonno nonni m", "doctor doctors dottore dottori m",
)  # fmt: skip
BUILDINGS = _nouns(
    "house houses casa case f", "church churches chiesa chiese f", "garden gardens giardino giardini m",
    "bridge bridges ponte ponti m",
)  # fmt: skip
THINGS = BUILDINGS + _nouns(
    "letter letters lettera lettere f", "door doors porta porte f", "chair chairs sedia sedie f",
    "lamp lamps lampada lampade f", "book books libro libri m", "picture pictures quadro quadri m",
    "table tables tavolo tavoli m", "bed beds letto letti m",
)  # fmt: skip
PLACES = BUILDINGS + _nouns(
    "sea seas mare mari m", "river rivers fiume fiumi m", "forest forests bosco boschi m",
    "market markets mercato mercati m", "station stations stazione stazioni f", "square squares piazza piazze f",
    "school schools scuola scuole f", "town towns città città f",
)  # fmt: skip
FIRST = _adjectives(  # before the noun in Italian as well
    "old vecchio vecchia vecchi vecchie", "young giovane giovane giovani giovani", "poor povero povera poveri povere",
    "little piccolo piccola piccoli piccole", "rich ricco ricca ricchi ricche",
)  # fmt: skip
LAST = _adjectives(  # after the noun in Italian
    "red rosso rossa rossi rosse", "white bianco bianca bianchi bianche", "black nero nera neri nere",
    "yellow giallo gialla gialli gialle",
)  # fmt: skip
MOODS = _adjectives(
    "tired stanco stanca stanchi stanche", "happy felice felice felici felici", "quiet quieto quieta quieti quiete",
    "ready pronto pronta pronti pronte", "alone solo sola soli sole", "sick malato malata malati malate",
)  # fmt: skip
LOOKS = _adjectives(
    "beautiful bello bella belli belle", "new nuovo nuova nuovi nuove", "clean pulito pulita puliti pulite",
    "broken rotto rotta rotti rotte", "expensive caro cara cari care", "dark scuro scura scuri scure",
)  # fmt: skip
STAYS = _verbs(
    "lives live vive vivono", "works work lavora lavorano", "sings sing canta cantano", "waits wait aspetta aspettano",
    "sleeps sleep dorme dormono",
)  # fmt: skip
TAKES = _verbs(
    "sees see vede vedono", "loves love ama amano", "draws draw disegna disegnano", "finds find trova trovano",
)  # fmt: skip
NEAR = {"near": "vicino", "behind": "dietro", "in front of": "davanti"}
ARTICLES = (("il", "la"), ("i", "le"))
TO_THE = ("al", "alla")


def sentence_pairs(rng: random.Random) -> Iterator[tuple[str, str]]:
    """Yield random pairs of sentences forever. A sentence has a noun, usually a clause about it, and a predicate."""
    while True:
        noun, number = rng.choice(rng.choice((PEOPLE, THINGS))), rng.randrange(2)
        predicate = rng.choice(MOODS if noun in PEOPLE else LOOKS)
        parts = [_noun_phrase(rng, noun, number)]
        if rng.random() < 0.8:
            parts.append(_relative_clause(rng, noun, number))
        parts.append((("is", "are")[number], ("è", "sono")[number]))
        parts.append((predicate.english, predicate.italian[number][noun.gender]))
        yield _joined(parts)


def _noun_phrase(rng: random.Random, noun: Noun, number: int) -> tuple[str, str]:
    is_person = noun in PEOPLE
    english, italian = [noun.english[number]], [noun.italian[number]]
    if rng.random() < 0.5:
        adjective = rng.choice(FIRST if is_person else LAST)
        english.insert(0, adjective.english)
        italian.insert(0 if is_person else 1, adjective.italian[number][noun.gender])
    return " ".join(["the", *english]), " ".join([ARTICLES[number][noun.gender], *italian])


def _relative_clause(rng: random.Random, noun: Noun, number: int) -> tuple[str, str]:
    """Draw a clause about a noun: where a person is, or what somebody does with the person or thing."""
    if noun in PEOPLE and rng.random() < 0.7:
        verb = rng.choice(STAYS)
        places = [_place(rng) for _ in range(rng.choice((1, 1, 2)))]
        return _joined([("who", "che"), (verb.english[number], verb.italian[number]), *places])
    verb, other = rng.choice(TAKES), rng.randrange(2)
    subject = _noun_phrase(rng, rng.choice(PEOPLE), other)
    return _joined([("that", "che"), subject, (verb.english[other], verb.italian[other])])


def _place(rng: random.Random) -> tuple[str, str]:
    english, italian = rng.choice(list(NEAR.items()))
    place = rng.choice(PLACES)
    return f"{english} the {place.english[0]}", f"{italian} {TO_THE[place.gender]} {place.italian[0]}"


def _joined(parts: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """Join the parts of a sentence in both languages."""
    english, italian = zip(*parts, strict=True)
    return " ".join(english), " ".join(italian)
