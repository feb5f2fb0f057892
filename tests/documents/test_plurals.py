"""Plural forms of gettext catalogues."""

import pytest

from allyouneed.apps.documents.plurals import parse_plural_forms, plural_rule


@pytest.mark.parametrize(
    ("language", "numbers", "forms"),
    [
        ("it", (0, 1, 2, 21), (1, 0, 1, 1)),
        ("fr", (0, 1, 2), (0, 0, 1)),
        ("ja", (0, 1, 2), (0, 0, 0)),
        ("ru", (1, 2, 5, 11, 21, 22, 25, 111), (0, 1, 2, 2, 0, 1, 2, 2)),
        ("pl", (1, 2, 5, 12, 21, 22), (0, 1, 2, 2, 2, 1)),
        ("cs", (1, 2, 5, 22), (0, 1, 2, 2)),
        ("sl", (1, 2, 3, 5, 101), (0, 1, 2, 3, 0)),
        ("ar", (0, 1, 2, 3, 11, 100, 103), (0, 1, 2, 3, 4, 5, 3)),
    ],
)
def test_the_form_of_a_number(language: str, numbers: tuple[int, ...], forms: tuple[int, ...]) -> None:
    plurals = parse_plural_forms(plural_rule(language) or "")
    assert plurals is not None
    assert tuple(map(plurals.form, numbers)) == forms


def test_a_region_has_the_rule_of_its_language_unless_it_has_its_own() -> None:
    assert plural_rule("de_AT") == plural_rule("de-CH") == plural_rule("de")
    assert plural_rule("pt_BR") == plural_rule("pt-br") == plural_rule("fr") != plural_rule("pt")
    assert plural_rule("tlh") is plural_rule("") is None


@pytest.mark.parametrize(
    "header",
    [
        "", "nplurals=INTEGER; plural=EXPRESSION;", "nplurals=2; plural=n>1 ? 2 : 0;", "nplurals=2; plural=1/n;",
        "nplurals=2; plural=(((n;", f"nplurals=2; plural={'(' * 400}n{')' * 90};", "nplurals=2; plural=n+" + "n+" * 999,
    ],
)  # fmt: skip
def test_what_is_no_rule_is_none(header: str) -> None:
    assert parse_plural_forms(header) is None


def test_the_numbers_of_a_form() -> None:
    plurals = parse_plural_forms(plural_rule("ru") or "")
    assert plurals is not None
    assert plurals.numbers(0)[:4] == [1, 21, 31, 41]
