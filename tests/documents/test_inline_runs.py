"""Runs of text with tags become units, and are written with the blanks that words and breaks need."""

from itertools import count

import pytest

from allyouneed.apps.documents import UnitTranslation
from allyouneed.apps.documents.inline import place_marks
from allyouneed.apps.documents.inline_runs import MAX_RUN_TAGS, InlineRun, inline_runs
from allyouneed.apps.documents.pieces import Piece, opaque_point

TEXT = Piece("text", "word ")
BOLD = Piece("open", name="b", source="<b>")
END = Piece("close", name="b", source="</b>")
BREAK = Piece("point", source="<br>", stands_for="break")


def text(content: str) -> Piece:
    return Piece("text", content, source=content)


def run(*pieces: Piece) -> InlineRun:
    (one,) = inline_runs(pieces, collapse=True)
    return one


def written(one: InlineRun, target: str, *links: tuple[int, int]) -> str:
    unit = one.unit
    pairs = links or zip(count(), range(len(target.split())))
    marks = place_marks(unit.text, unit.marks, target, pairs, unit.opaque)
    pieces = one.translated(UnitTranslation(target, marks))
    return "".join(piece.text if piece.kind == "text" else piece.source for piece in pieces)


def test_tags_around_all_of_a_text_are_no_part_of_the_unit() -> None:
    assert run(BREAK, BOLD, text("A"), BREAK, text("b"), END, BREAK).unit.text == "A b"
    assert len(run(BOLD, text("a"), END, text("b")).unit.marks) == 2


def test_a_tag_without_its_partner_ends_the_unit() -> None:
    assert [one.unit.text for one in inline_runs([text("a"), BOLD, text("b"), END, text("c"), END, text("d")],
                                                 collapse=True)] == ["abc", "d"]  # fmt: skip


def test_texts_without_letters_are_no_units() -> None:
    assert list(inline_runs([text("12 %"), Piece("boundary"), text(" "), Piece("boundary")], collapse=True)) == []


def test_blanks_in_a_row_are_one_also_across_tags() -> None:
    assert run(text("a \n"), BOLD, text(" b "), END, text(" c")).unit.text == "a b c"


CODE = opaque_point("x()", "<x>")


def test_a_break_beside_code_parts_the_words_that_the_model_reads() -> None:
    assert run(text("Run "), CODE, BREAK, text("now")).unit.text == "Run x() now"
    assert run(text("Run "), CODE, BREAK, CODE, text(" now")).unit.text == "Run x() x() now"


START, STOP = (Piece("point", source=source, range="bookmark 1") for source in "[]")
OTHER_START, OTHER_STOP = (Piece("point", source=source, range="bookmark 2") for source in "{}")


@pytest.mark.parametrize(
    ("pieces", "target", "links", "expected"),
    [
        ([text("one "), START, text("two"), STOP, text(" three")], "C B A", [(0, 2), (1, 1), (2, 0)], "C [B] A"),
        ([text("one "), START, text("two three"), STOP], "C B A", [(0, 2), (1, 1), (2, 0)], "[C B] A"),
        ([START, text("one two"), STOP, text(" three")], "C B A", [(0, 2), (1, 1), (2, 0)], "C [B A]"),
        ([text("a"), START, text(" b "), BOLD, text("c"), STOP, text(" d"), END], "D C B A",
         [(0, 3), (1, 2), (2, 1), (3, 0)], None),
        ([text("a"), START, text(" b "), OTHER_START, text("c"), STOP, text(" d"), OTHER_STOP, text(" e")], "E D C B A",
         [(0, 4), (1, 3), (2, 2), (3, 1), (4, 0)], None),
        ([START, text("a"), Piece("boundary"), text("b"), STOP], "C", [(0, 0)], "C"),
    ],
)  # fmt: skip
def test_a_range_begins_before_it_ends(
    pieces: list[Piece], target: str, links: list[tuple[int, int]], expected: str | None
) -> None:
    result = written(next(inline_runs(pieces, collapse=True)), target, *links)
    assert result == expected or (expected is None and "[" in result and "]" in result)
    assert all(result.find(start) <= result.find(end) for start, end in ("[]", "{}"))


def test_a_range_inside_ranges_that_cross_is_a_tag() -> None:
    one = run(text("x "), START, text("a "), OTHER_START, text("b "), STOP, text("c"), OTHER_STOP, text(" y"))
    assert [mark.kind for mark in one.unit.marks] == ["point", "open", "point", "close"]


IMAGE = Piece("point", source="<img>", stands_for="word")
COMMENT = Piece("point", source="<!-- -->")


@pytest.mark.parametrize(
    "points",
    [[BREAK, IMAGE], [IMAGE, BREAK], [IMAGE, BREAK, IMAGE], [BREAK, COMMENT], [COMMENT, BREAK],
     [text(" "), IMAGE, text(" "), BREAK, text(" ")], [BREAK, BOLD, IMAGE, END]],
)  # fmt: skip
def test_points_in_a_row_with_a_break_are_one_break(points: list[Piece]) -> None:
    one = run(text("First line"), *points, text("second"))
    assert one.unit.text == "First line second"
    tags = "".join(piece.source for piece in points)
    assert written(one, "Prima riga Altra").replace(" ", "") == f"Primariga{tags}Altra".replace(" ", "")
    assert run(text("Run"), *points, CODE).unit.text == "Run x()"


def test_a_break_beside_a_comment_gets_no_blank_that_the_source_does_not_have() -> None:
    assert written(run(text("A"), BREAK, COMMENT, text("b")), "Z Y") == "Z<br><!-- -->Y"


@pytest.mark.parametrize(
    ("pieces", "target", "links", "expected"),
    [
        ([text("run "), CODE, text(" now")], "nun run x()", [(2, 0), (0, 1), (1, 2)], "nun run <x>"),
        ([text("run "), CODE, text(".")], "X(), dann.", [(0, 1), (1, 0)], "<x>, dann."),
        ([text("run "), CODE, text(" now")], "nun", [(2, 0)], "<x> nun"),
        ([text("A"), BREAK, text("b")], "Z Y", [(0, 0), (1, 1)], "Z<br>Y"),
        ([text("A "), BREAK, text("\nb")], "Z Y", [(0, 0), (1, 1)], "Z <br> Y"),
        ([BOLD, text("a"), END, text(" "), IMAGE, text(" "), BOLD, text("b"), END], "Z Y", [(0, 0), (1, 1)],
         "<b>Z</b> <img> <b>Y</b>"),
        ([text("the "), CODE, text("s of")], "i X di", [(0, 0), (1, 1), (2, 2)], "i <x>s di"),
    ],
)  # fmt: skip
def test_worked_cases(pieces: list[Piece], target: str, links: list[tuple[int, int]], expected: str) -> None:
    assert written(run(*pieces), target, *links) == expected


def test_code_at_an_end_of_a_sentence_is_a_part_of_it() -> None:
    assert run(CODE, text(" returns "), CODE).unit.text == "x() returns x()"
    assert list(inline_runs([CODE], collapse=True)) == []


def test_long_code_is_not_read_by_the_model() -> None:
    assert run(text("run "), opaque_point("x" * 99, "<x>"), text(" now")).unit.text == "run now"


def test_a_run_with_very_many_tags_is_cut_between_tags() -> None:
    runs = list(inline_runs([BOLD, text("a "), END] * (MAX_RUN_TAGS + 1), collapse=True))
    assert [len(one.tags) for one in runs] == [MAX_RUN_TAGS, 0]


def test_a_tag_with_very_many_tags_inside_is_no_part_of_a_unit() -> None:
    runs = list(inline_runs([text("x "), BOLD, *([text("a "), BREAK] * 999), END, text(" y")], collapse=True))
    assert runs[0].unit.text.strip() == "x"
    assert runs[-1].unit.text.strip() == "y"
    assert all(len(one.tags) <= MAX_RUN_TAGS for one in runs)
    nested = list(inline_runs([*([BOLD, text("a ")] * 5_000), *([END] * 5_000)], collapse=True))
    assert sum(one.unit.text.count("a") for one in nested) == 5_000
