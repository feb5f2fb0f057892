"""JSON Lines: the string values of every line are translated; every other byte stays."""

import pytest

from allyouneed.apps.documents import document_format
from allyouneed.errors import DocumentError
from unit_models import answer, identity, read, texts, untouched

LINES = '\ufeff{"id": 1, "text": "A dog", "tags": ["x"]}\r\n\n  \n"plain"\n{"text":"Caf\\u00e9", "n": 1.50}'


def test_every_line_is_read_as_json_and_named_by_its_number() -> None:
    document = read("jsonl", LINES)
    assert document_format("texts.JSONL") == document_format("a.ndjson") == "jsonl"
    assert [(unit.key, unit.text) for unit in document.units] == [
        ("line 1: text", "A dog"), ("line 1: tags.0", "x"), ("line 4", "plain"), ("line 5: text", "Café"),
    ]  # fmt: skip
    assert identity(document) == untouched(document) == LINES.encode()
    assert texts(read("jsonl", "")) == texts(read("jsonl", "\n\n")) == []


def test_keys_choose_strings_of_every_line() -> None:
    document = read("jsonl", LINES, keys=("text",))
    assert texts(document) == ["A dog", "Café"]
    assert answer(document, str.upper).decode() == LINES.replace("A dog", "A DOG").replace("Caf\\u00e9", "CAF\\u00c9")
    with pytest.raises(DocumentError, match="has no string whose keys match title"):
        read("jsonl", LINES, keys=("title",))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"a": "b"', "is not JSON: Expecting ',' delimiter at position 10"),
        ('{"a": 1} {"a": 2}', "is not JSON: Extra data at position 10"),
        ("[" * 100_000, "is not JSON that can be read: it is nested too deeply"),
    ],
)
def test_a_broken_line_is_refused_with_its_number(line: str, reason: str) -> None:
    with pytest.raises(DocumentError, match=f"has a line 3 that {reason}"):
        read("jsonl", f'{{"a": "b"}}\n\n{line}\n"c"')
