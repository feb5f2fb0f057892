"""JSON: string values are translated; every other byte stays."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allyouneed.apps.documents import document_format
from allyouneed.errors import DocumentError
from unit_models import answer, identity, read, texts, untouched

I18NEXT = """{
    "menu": { "title": "Open <b>file</b>", "items": ["Save", "Print"] },
    "files_one": "{{count}} file",\t"files_other": "{{count}} files",
    "n": 1.50, "ok": true, "empty": "", "sign": "\\u2026",
    "menu2": {"title": "Caf\\u00e9\\nSecond line"}
}\r\n"""


def test_every_string_value_is_a_unit_with_its_path() -> None:
    document = read("json", I18NEXT)
    assert [(unit.key, unit.text) for unit in document.units] == [
        ("menu.title", "Open file"), ("menu.items.0", "Save"), ("menu.items.1", "Print"),
        ("files_one", "{{count}} file"), ("files_other", "{{count}} files"),
        ("menu2.title", "Café\nSecond line"),
    ]  # fmt: skip
    assert identity(document) == untouched(document) == I18NEXT.encode()


def test_keys_choose_strings_by_a_pattern_of_their_path() -> None:
    assert texts(read("json", I18NEXT, keys=("menu*.title",))) == ["Open file", "Café\nSecond line"]
    assert texts(read("json", I18NEXT, keys=("menu.items.?", "files_one"))) == ["Save", "Print", "{{count}} file"]
    with pytest.raises(DocumentError, match=r"^file .*nothing\.\*$"):
        read("json", I18NEXT, keys=("nothing.*",))


def test_what_arb_files_say_about_messages_is_left_out() -> None:
    arb = '{"@@locale": "en", "hi": "Hi {name}", "@hi": {"description": "A greeting"}}'
    assert texts(read("json", arb)) == ["Hi {name}"]


def test_the_locale_of_an_arb_file_is_that_of_the_translation() -> None:
    arb = '{"@@locale": "en", "a": {"@@locale": "en"}, "hi": "Hi"}'
    written = answer(read("json", arb, target_language="pt-BR"), str.upper).decode()
    assert written == arb.replace('"en"', '"pt_BR"', 1).replace('"Hi"', '"HI"')
    assert answer(read("json", arb), str.upper).decode() == arb.replace('"Hi"', '"HI"')
    assert untouched(read("json", arb, target_language="pt-BR")) == arb.encode()
    assert texts(read("json", arb, keys=("*",))) == ["en", "Hi"]


def test_a_string_is_written_as_the_document_writes_strings() -> None:
    shout = str.upper
    assert answer(read("json", '["\\u00e9a", "b"]'), shout) == b'["\\u00c9A", "B"]'
    assert answer(read("json", '["éa"]'), shout) == '["ÉA"]'.encode()
    assert answer(read("json", '["a\\/b", "c", "d/"]'), lambda text: text + "/") == b'["a\\/b\\/", "c/", "d//"]'
    assert answer(read("json", '["a \\u003c b"]'), shout) == b'["A \\u003c B"]'


def test_keys_that_occur_twice_and_control_characters_are_kept() -> None:
    text = '{"a": "x", "a": "y\\u0001z", "\\"b": ["w"]}'
    assert answer(read("json", text), str.upper) == b'{"a": "X", "a": "Y\\u0001Z", "\\"b": ["W"]}'


def test_half_a_character_is_left_as_it_is() -> None:
    assert texts(read("json", '["\\ud800", "whole \\ud83d\\ude00"]')) == ["whole 😀"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "JSON"),
        ('{"a": "b"', "JSON: Expecting ',' .*position 10"),
        ("", "JSON: .*position 1"),
    ],
)
def test_what_is_no_json_is_refused(text: str, message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        read("json", text)


VALUES = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


@given(VALUES, st.booleans(), st.sampled_from([None, 2, "\t"]))
def test_any_document_comes_back_from_the_identity(value: object, ascii_only: bool, indent: int | str | None) -> None:
    document = read("json", json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "surrogatepass"))
    assert json.loads(identity(document)) == value


@given(VALUES)
def test_strings_are_those_that_a_walk_through_the_values_meets(value: object) -> None:
    def walk(value: object) -> list[str]:
        if isinstance(value, dict):
            return [text for key, inner in value.items() if not key.startswith("@") for text in walk(inner)]
        if isinstance(value, list):
            return [text for inner in value for text in walk(inner)]
        return [value] if isinstance(value, str) and any(map(str.isalpha, value)) else []

    changed = json.loads(answer(read("json", json.dumps(value)), lambda text: f"*{text}*"))
    assert len(walk(changed)) == len(walk(value))


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
    with pytest.raises(DocumentError, match="match title"):
        read("jsonl", LINES, keys=("title",))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"a": "b"', "JSON: Expecting ',' .*position 10"),
        ('{"a": 1} {"a": 2}', "JSON: .*position 10"),
        ("[" * 100_000, "JSON"),
    ],
)
def test_a_broken_line_is_refused_with_its_number(line: str, reason: str) -> None:
    with pytest.raises(DocumentError, match=f"line 3 .*{reason}"):
        read("jsonl", f'{{"a": "b"}}\n\n{line}\n"c"')
