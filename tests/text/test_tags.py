import json
import random
from itertools import pairwise

import pytest

from allyouneed.errors import DataError
from allyouneed.text.tags import find_tags
from allyouneed.text.tokenizer import Tokenizer

WORDS = ["".join(random.Random(seed).choices("abcdefgh", k=6)) for seed in range(60)]
TAGS = ["V;PST", "V;PRS;3", "N;PL", "N;SG"]


def beside(fields: list[str], *, first: bool = False) -> list[str]:
    pairs = [(word, fields[number % len(fields)]) for number, word in enumerate(WORDS)]
    return [f"{field} {word}" if first else f"{word} {field}" for word, field in pairs]


@pytest.mark.parametrize(
    ("texts", "tags"),
    [
        (beside(TAGS), [" N", " V", ";3", ";PL", ";PRS", ";PST", ";SG"]),
        (beside(["Number=Plur|Case=Nom", "Number=Sing|Case=Gen"], first=True),
         [" Number", "=Gen", "=Nom", "=Plur", "=Sing", "|Case"]),
        (beside(["V PST", "N PL", "V PRS"]), [" N", " PL", " PRS", " PST", " V"]),
        (beside(["+PL", "+SG"]), [" +PL", " +SG"]),
    ],
    ids=["unimorph", "universal dependencies", "in fields of their own", "one tag"],
)  # fmt: skip
def test_fields_of_tags_are_found_at_both_ends(texts: list[str], tags: list[str]) -> None:
    assert find_tags(texts) == tags


@pytest.mark.parametrize(
    "texts",
    [
        WORDS,
        [f"{first} {second}" for first, second in pairwise(WORDS)],
        [f"{word} {word[:2]}={number}" for number, word in enumerate(WORDS)],  # values, each of which is another
        [f"take the {word} of {word}" for word in WORDS],  # the first words are few, but words
        [f"{word} V;PST" if number % 2 else word for number, word in enumerate(WORDS)],
        [f"{number % 7 + 10} {number % 5 + 10} {number % 3 + 10}" for number in range(60)],
        [],
    ],
    ids=["words", "two words", "open values", "words that recur", "half of the texts", "numbers", "nothing"],
)
def test_words_are_no_tags(texts: list[str]) -> None:
    assert find_tags(texts) == []


def test_a_text_is_split_into_the_longest_tags_and_characters() -> None:
    tags = [";P", ";PL", "|A.B", " (x)"]
    tokenizer = Tokenizer.from_json(Tokenizer.characters("ab", tags=tags, unknown=True).to_json())
    pieces = tokenizer.pieces(tokenizer.encode("ab (x);PL;PX|A.B|AxB")[1:-1])
    assert pieces == ["a", "b", "␣(x)", ";PL", ";P", "<unk>", "|A.B", *["<unk>"] * 4]


@pytest.mark.parametrize(
    "pattern", ["(a+)+|[\\s\\S]", "a|b", "a|[\\s\\S]|b", "a*|[\\s\\S]", "\\d|[\\s\\S]", "|[\\s\\S]", "[a]|[\\s\\S]"]
)
def test_only_a_pattern_of_plain_tags_is_read(pattern: str) -> None:
    table = json.loads(Tokenizer.characters("ab", tags=[";PL"], unknown=True).to_json())
    Tokenizer.from_json(json.dumps(table))
    table["pre_tokenizer"]["pattern"] = {"Regex": pattern}
    with pytest.raises(DataError, match="pattern"):
        Tokenizer.from_json(json.dumps(table))
