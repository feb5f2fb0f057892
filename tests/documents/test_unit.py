"""Units and their marks."""

import pytest

from allyouneed.apps.documents import (
    DocumentOptions,
    Mark,
    TranslationUnit,
    document_format,
    interleave,
    read_document,
)
from allyouneed.errors import DocumentError


@pytest.mark.parametrize(
    ("marks", "problem"),
    [
        ((Mark(0, 1, "open"),), "not closed"),
        ((Mark(0, 1, "open"), Mark(1, 2, "open"), Mark(1, 1, "close"), Mark(2, 2, "close")), "closes no tag"),
        ((Mark(9, 1, "point"),), "outside the text"),
        ((Mark(2, 1, "point"), Mark(1, 2, "point")), "out of order"),
        ((Mark(1, 1, "point"), Mark(2, 1, "point")), "twice"),
    ],
)
def test_marks_that_are_not_nested_are_refused(marks: tuple[Mark, ...], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        TranslationUnit(text="abc", marks=marks)


def test_parts_and_marks_come_in_their_order() -> None:
    marks = (Mark(0, 1, "open"), Mark(3, 1, "close"), Mark(3, 2, "point"))
    assert list(interleave("abc d", marks)) == [marks[0], "abc", marks[1], marks[2], " d"]


def test_an_unknown_format_is_refused_with_the_known_ones() -> None:
    with pytest.raises(DocumentError, match="'pdf' is no format of documents; known are"):
        read_document(b"", "pdf", DocumentOptions())
    assert document_format("manual.pdf") is None
