import pytest

from allyouneed.text.dates import date_pairs
from allyouneed.text.spans import CopyHabits, find_spans, untranslatable


def test_spans_of_every_kind_are_found_in_their_order() -> None:
    text = "See https://a.b/c?d=1, mail x@y.org: <b>{name}</b> has %s of 3.50."
    assert find_spans(text) == [
        ("urls", "https://a.b/c?d=1"), ("emails", "x@y.org"), ("tags", "<b>"), ("placeholders", "{name}"),
        ("tags", "</b>"), ("placeholders", "%s"), ("numbers", "3.50"),
    ]  # fmt: skip
    assert find_spans(text, ["numbers"]) == [("numbers", "1"), ("numbers", "3.50")]
    assert find_spans(text, []) == []


@pytest.mark.parametrize(
    ("text", "kind"),
    [("👍", "signs"), ("...", "signs"), ("42 %", "numbers"), ("1845-01-05", "numbers"), ("https://a.b", "urls"),
     ("a@b.org", "emails"), ("see https://a.b", None), ("A1", None), ("", None), (" ", None)],
)  # fmt: skip
def test_what_has_nothing_to_translate(text: str, kind: str | None) -> None:
    assert untranslatable(text) == kind


def test_a_corpus_of_dates_copies_nothing() -> None:
    habits = CopyHabits.of(date_pairs("train", count=200))
    assert not habits.copies("1845-01-05")
    assert not habits.copies("👍")


def test_a_corpus_that_copies_teaches_to_copy() -> None:
    habits = CopyHabits.of([("room 101, please", "Zimmer 101 bitte")] * 20)
    assert habits.copies("7")
    assert habits.copies("👍")  # never seen: judged by all kinds together
    assert not habits.copies("please")
    assert not CopyHabits().copies("7")


def test_what_stands_alone_tells_more_than_what_stands_inside() -> None:
    habits = CopyHabits.of([("in 1999", "nel 1999")] * 50 + [("7", "sette")] * 20)
    assert not habits.copies("8")
