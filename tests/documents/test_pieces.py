"""What of a document is translated: texts with a letter, and with `numbers` those with a digit."""

import pytest

from allyouneed.apps.documents import FORMATS
from allyouneed.errors import DocumentError
from document_checks import assert_identity, read, translated
from fake_translator import FakeTranslator

COLUMN = {"column": "1"}


@pytest.mark.parametrize(
    ("kind", "options", "before", "after"),
    [
        ("txt", {}, "1990-05-12\n...\n%d\n", "(1990-05-12)\n...\n%d\n"),
        ("html", {}, "<p>12/5<p>...<p><b>7</b>", "<p>(12/5)<p>...<p><b>(7)</b>"),
        ("md", {}, "# 12/5\n\n...\n", "# (12/5)\n\n...\n"),
        ("json", {}, '{"a": "12/5", "b": "...", "c": 5, "d": "%d"}', '{"a": "(12/5)", "b": "...", "c": 5, "d": "%d"}'),
        ("csv", COLUMN, "12/5\n...\n", "(12/5)\n...\n"),
        ("tsv", COLUMN, "12/5\t1\n...\t2\n", "(12/5)\t1\n...\t2\n"),
    ],
)
def test_numbers_stay_or_are_translated(kind: str, options: dict[str, str], before: str, after: str) -> None:
    data, brackets = before.encode(), FakeTranslator(lambda word: f"({word})")
    assert translated(data, kind, brackets, **options) == data
    assert translated(data, kind, brackets, **options, numbers=True).decode() == after
    if not options:
        assert_identity(data, kind)


def test_formats_whose_numbers_are_the_same_in_every_language_have_no_such_option() -> None:
    refused = set()
    for kind in FORMATS:
        try:
            read(b"", kind, numbers=True)
        except DocumentError as error:
            refused |= {kind} if "--numbers" in str(error) else set()
    assert refused == {"po", "xliff", "srt", "vtt"}
