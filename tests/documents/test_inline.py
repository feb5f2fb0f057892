"""Inline tags on a translation: whatever the alignment, each tag once and nested as in the source."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allyouneed.apps.documents.inline import TagNode, place_marks, place_sentence_marks, tag_tree
from allyouneed.apps.documents.unit import Mark, Marks, interleave, nesting_problem

Pair = tuple[str, Marks]


def parse(marked: str) -> Pair:
    """Read `a <1>word</1> and <2/>` as text and marks."""
    text, marks = "", []
    for part in re.split(r"(</?\d+/?>)", marked):
        if match := re.fullmatch(r"<(/?)(\d+)(/?)>", part):
            kind = "close" if match[1] else "point" if match[3] else "open"
            marks.append(Mark(len(text), int(match[2]), kind))  # type: ignore[arg-type]
        else:
            text += part
    return text, tuple(marks)


def show(text: str, marks: Marks) -> str:
    written = {"open": "<{}>", "close": "</{}>", "point": "<{}/>"}
    return "".join(
        part if isinstance(part, str) else written[part.kind].format(part.tag) for part in interleave(text, marks)
    )


def place_tags_in(marked: str, target: str, links: str) -> str:
    text, marks = parse(marked)
    pairs = [(int(i), int(j)) for i, j in (link.split("-") for link in links.split())]
    return show(target, place_marks(text, marks, target, pairs))


def identity(text: str) -> list[tuple[int, int]]:
    return [(i, i) for i in range(len(text.split()))]


def shape(nodes: list[TagNode]) -> list[tuple[int, bool, list[object]]]:
    """Return the tree of tags, whatever the order of neighbours."""
    return sorted((node.tag, node.is_point, shape(node.children)) for node in nodes)  # type: ignore[misc]


@st.composite
def marked_texts(draw: st.DrawFn) -> Pair:
    words = st.sampled_from(["a", "the", "(b)", "c.", "don't", "–", "word", "«d»,", "e-f"])
    blanks = st.sampled_from([" ", " ", "  ", "\n"])
    text = draw(st.sampled_from(["", " "]))
    for word in draw(st.lists(words, max_size=7)):
        text += word + draw(blanks)
    tags = iter(range(9))

    def build(low: int, high: int, depth: int) -> list[Mark]:
        marks: list[Mark] = []
        for _ in range(draw(st.integers(0, 2 if depth else 3))):
            if (tag := next(tags, None)) is None:
                break
            start = draw(st.integers(low, high))
            if draw(st.booleans()):
                end = draw(st.integers(start, high))
                inner = build(start, end, depth + 1) if depth < 3 else []
                marks += [Mark(start, tag, "open"), *inner, Mark(end, tag, "close")]
            else:
                end = start
                marks.append(Mark(start, tag, "point"))
            low = end
        return marks

    return text, tuple(build(0, len(text), 0))


@given(marked_texts(), marked_texts(), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12))
def test_any_alignment_gives_each_tag_once_and_nested_as_in_the_source(
    source: Pair, target: Pair, links: list[tuple[int, int]]
) -> None:
    marks = place_marks(*source, target[0], links)
    assert nesting_problem(target[0], marks) == ""
    assert shape(tag_tree(marks)) == shape(tag_tree(source[1]))


@given(marked_texts())
def test_a_text_aligned_with_itself_gets_its_marks_back(source: Pair) -> None:
    text, marks = source
    assert place_marks(text, marks, text, identity(text)) == marks


@given(marked_texts())
def test_another_case_of_every_word_changes_no_mark_between_words(source: Pair) -> None:
    text, marks = source
    inside_words = {cut for match in re.finditer(r"\S+", text) for cut in range(match.start() + 1, match.end())}
    if not inside_words & {mark.at for mark in marks}:
        assert place_marks(text, marks, text.upper(), identity(text)) == marks


@pytest.mark.parametrize(
    ("marked", "target", "links", "expected"),
    [
        ("Click <1>Save</1>.", "Auf Speichern klicken.", "0-0 1-1 0-2", "Auf <1>Speichern</1> klicken."),
        ("<1>Click Save.</1>", "Auf Speichern klicken.", "0-0 1-1 0-2", "<1>Auf Speichern klicken.</1>"),
        ("a <1>red</1> <2>house</2>", "una casa rossa", "0-0 1-2 2-1", "una <2>casa</2> <1>rossa</1>"),
        ("(<1>one</1>) two", "due (uno)", "0-1 1-0", "due (<1>uno</1>)"),
        ("<1>a <2>b</2></1> c", "Z X Y", "0-1 1-2 2-0", "Z <1>X <2>Y</2></1>"),
        ("one<1/> two", "uno due", "0-0 1-1", "uno<1/> due"),
        ("one <1/>two", "uno due", "0-0 1-1", "uno <1/>due"),
        ("First.<1/> Second.", "Prima frase. Seconda.", "0-0 0-1 1-2", "Prima frase.<1/> Seconda."),
        ("see <1>here</1>", "guarda", "0-0", "<1>guarda</1>"),
        ("see <1>here</1> now", "guarda ora", "0-0 2-1", "guarda <1>ora</1>"),
        ("<1>a</1> b <2>c</2>", "a c", "", "<1>a</1> <2>c</2>"),
    ],
)
def test_worked_cases(marked: str, target: str, links: str, expected: str) -> None:
    assert place_tags_in(marked, target, links) == expected


@given(
    marked_texts(), marked_texts(), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12), st.data()
)
def test_a_sentence_of_a_text_keeps_the_order_of_tags_that_run_over_its_ends(
    source: Pair, target: Pair, links: list[tuple[int, int]], data: st.DataObject
) -> None:
    """Cut a text in two, place the marks of each half on its translation, and join the halves."""
    text, marks = source
    number = data.draw(st.integers(0, len(marks)))
    at = data.draw(
        st.integers(marks[number - 1].at if number else 0, marks[number].at if number < len(marks) else len(text))
    )
    first = place_sentence_marks(text[:at], marks[:number], target[0], links)
    rest = [mark._replace(at=mark.at - at) for mark in marks[number:]]
    second = place_sentence_marks(text[at:], rest, target[0], links)
    both = [*first, *(mark._replace(at=mark.at + len(target[0])) for mark in second)]
    assert nesting_problem(target[0] * 2, both) == ""
    assert sorted((mark.tag, mark.kind) for mark in both) == sorted((mark.tag, mark.kind) for mark in marks)


def test_an_opaque_tag_takes_no_word_of_others() -> None:
    text, marks = parse("run <1>x()</1> now")
    assert place_marks(text, marks, "nun", [(2, 0)], {1}) == (Mark(0, 1, "open"), Mark(0, 1, "close"))
    assert show("a z b", place_marks("x y", parse("<1>x y</1>")[1], "a z b", [(0, 0), (1, 2)], {1})) == "<1>a</1> z b"


def test_a_tag_parted_by_the_word_order_keeps_its_longer_part() -> None:
    assert place_tags_in("<1>call up</1> him", "chiama lui su", "0-0 2-1 1-2") == "<1>chiama</1> lui su"


def test_an_unlinked_word_between_two_of_a_tag_belongs_to_it() -> None:
    assert place_tags_in("<1>red car</1> stops", "rote das Auto hält", "0-0 1-2 2-3") == "<1>rote das Auto</1> hält"
