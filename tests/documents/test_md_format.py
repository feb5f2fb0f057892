"""Markdown: texts change, every other character stays."""

import re
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from allyouneed.apps.documents.document_translation import translate_document
from document_checks import assert_identity, read, texts, translated
from fake_translator import FakeTranslator

PAGE = """---
title: not this
---

# A *big* heading #

Run `git push` and [a **link**](http://x/(y) "title"), then ![a cat](a.png)
continued <b>here</b> at <http://a.b>.\\
Next line@@
and more \\*stars\\* &amp; all.

- item one
- [x] item two
  lazy

1. > quoted text
   > goes on@@
   > after a break

| head | b **c** |
|------|---------|
| 12   | cell    |

```
not this
```

    nor this

Setext [ref] and [text][ref][^1]
======

<div>
nor this
</div>

[ref]: http://x "Not this"
[^1]: A note.
""".replace("@@", "  ")


def markup(page: bytes) -> list[tuple[str, str, str]]:
    """List the tokens except texts, with the addresses of links and code."""
    return [
        (one.type, one.markup, one.content if one.type in ("code_inline", "html_inline") else str(one.attrs))
        for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(page.decode())
        for one in [token, *(token.children or [])]
        if one.type not in ("inline", "text", "softbreak")
    ]


def test_what_is_translated() -> None:
    assert texts(PAGE.encode(), "md") == [
        "A big heading",
        "Run git push and a link, then continued here at http://a.b.", "a cat",
        "Next line and more *stars* & all.",
        "item one", "item two lazy", "quoted text goes on", "after a break", "head", "b c", "cell",
        "Setext ref and text", "A note.",
    ]  # fmt: skip


def test_an_identity_model_gives_the_bytes_back() -> None:
    assert_identity(PAGE.encode(), "md")
    assert_identity(PAGE.replace("\n", "\r\n").encode(), "md")


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_capitals_change_texts_alone(line_end: str) -> None:
    page = PAGE.replace("\n", line_end)
    result = translated(page.encode(), "md").decode()
    assert markup(result.encode()) == markup(page.encode())
    assert result.startswith(page[: page.index("#")])
    assert "# A *BIG* HEADING #" in result
    assert 'RUN `git push` AND [A **LINK**](http://x/(y) "title"), THEN ![A CAT](a.png) CONTINUED <b>HERE</b>' in result
    assert f"AT <http://a.b>.\\{line_end}NEXT LINE  {line_end}AND MORE \\*STARS\\* & ALL." in result
    assert f"1. > QUOTED TEXT GOES ON  {line_end}   > AFTER A BREAK" in result
    assert "| HEAD | B **C** |" in result
    for kept in ("not this", "nor this", "[ref]: http://x", "- [x] ITEM TWO LAZY", "[TEXT][ref][^1]"):
        assert kept in result


def test_another_order_of_words_keeps_the_markup() -> None:
    page = PAGE.encode()
    assert Counter(markup(translated(page, "md", FakeTranslator(reverse=True)))) == Counter(markup(page))


def test_the_lines_of_units_are_known() -> None:
    assert [unit.key for unit in read(PAGE.encode(), "md").units][:3] == ["line 5", "line 7", "line 7"]


@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("*a*", "\\*a\\*"),
        ("_a_", "\\_a\\_"),
        ("a_b", "a_b"),
        ("[a]", "\\[a\\]"),
        ("`a`", "\\`a\\`"),
        ("<a>", "\\<a>"),
        ("&amp;", "\\&amp;"),
        ("#", "\\#"),
        ("-", "\\-"),
        ("1.", "1\\."),
        (">a", "\\>a"),
        ("a\\*", "a\\\\\\*"),
        ("~~a~~", "\\~\\~a\\~\\~"),
    ],
)
def test_a_translation_that_looks_like_markup_is_escaped(word: str, written: str) -> None:
    result = translated(b"word", "md", FakeTranslator(lambda _: word))
    assert result.decode() == written
    assert MarkdownIt("commonmark").enable("strikethrough").parse(result.decode())[1].children[0].type == "text"  # type: ignore[index]


def test_a_pipe_in_a_cell_is_escaped() -> None:
    result = translated(b"| a |\n|---|\n| b |\n", "md", FakeTranslator(lambda _: "x|y"))
    assert result == b"| x\\|y |\n|---|\n| x\\|y |\n"


def test_a_text_whose_markup_would_break_is_left_as_it_is() -> None:
    result = translate_document(read(b"a **b** c\n\nd", "md"), FakeTranslator(lambda word: "D" * (word == "d")))
    assert result.data == b"a **b** c\n\nD"
    assert (result.translated, result.refused) == (1, 1)
    (item,) = result.review
    assert item[:3] == ("line 1", "a b c", None)
    assert "markup" in item.reasons[0]


def test_a_text_that_is_left_out_is_named() -> None:
    page = b"A zero\0sign is another one to the parser.\n\nThe rest is translated.\n"
    result = translate_document(read(page, "md"), FakeTranslator(str.upper))
    assert [item.key for item in result.review] == ["line 1"]
    assert (result.refused, result.data) == (1, page.replace(b"The rest is translated", b"THE REST IS TRANSLATED"))


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("---\n\nFirst.\n\n---\n\nSecond.", ["First.", "Second."]),
        ("---\nFirst.\n\n---\n", ["First."]),
        ("---\ntitle: no\n\nmore: no\n---\nSecond.", ["Second."]),
        ("---\r\n# no\r\n'a-b' : no\r\n...\r\nSecond.", ["Second."]),
        ("+++\ntitle = 'no'\n+++\nSecond.", ["Second."]),
        ("+++\n[no]\n+++\nSecond.", ["Second."]),
    ],
)
def test_front_matter_begins_with_a_key_or_a_comment(page: str, expected: list[str]) -> None:
    assert texts(page.encode(), "md") == expected


WORDS = st.sampled_from(
    ["word", "*a*", "**b** c", "`x`", "[l](u)", "![i](s)", "<b>", "</b>", "\n", "\n\n", "- ", "> ", "# ", "  \n", "\\",
     "| a | b |\n|---|---|\n", "&amp;", "_", "*", "1. ", "[r]: u\n", "***", "~~s~~", "<http://a.b>"],
)  # fmt: skip


@given(st.lists(WORDS, max_size=12).map(" ".join))
@example("*a* ![i](s) *a*")
def test_any_page_survives(page: str) -> None:
    assert_identity(page.encode(), "md")
    assert markup(translated(page.encode(), "md")) == markup(page.encode())


HOSTILE = [
    "[", "*a ", "> ", "`", "![[", "<a ", "- ", "|a", "[a](<", "\\", "1. ", "$a ", "$$ ", "\\(a", "{{< x\n", "{% a\n",
    "<A b={", "<A b='c", "import {\n", "\\begin{a}\n", ": a\n", "!!! a\n", "^[", "[^a]", "::: a\n", "{", "![x][",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("part", HOSTILE)
def test_a_hostile_page_takes_no_quadratic_time(part: str) -> None:
    assert_identity(part.encode() * 4_000, "md")


@pytest.mark.parametrize("page", ["A `x`  \n`y`", "Word *a*   \n `x`", "Word  \n`x`", "Word  \n**`x`** a"])
def test_a_line_break_before_code_parts_words(page: str) -> None:
    assert " ".join(texts(page.encode(), "md")).split() == re.findall(r"\w+", page)
    assert re.sub(r"[* ]", "", translated(page.encode(), "md").decode()) == re.sub(
        r"[* ]", "", re.sub(r"(?<!`)\b\w+\b(?!`)", lambda word: word[0].upper(), page)
    )


def test_cells_with_an_escaped_bar_are_translated() -> None:
    page = b"```sh\nrm Save\n```\n\n| key | action |\n|---|---|\n| a \\| b `\\|` | Save |\n| Save | a |\n"
    head, rows = page.split(b"\n\n")
    assert translated(page, "md") == head + b"\n\n" + rows.upper()


@pytest.mark.parametrize(
    ("page", "straight", "reverse"),
    [
        (
            "see the [user manual] now",
            "SEE THE [USER MANUAL][user manual] NOW",
            "NOW [MANUAL USER][user manual] THE SEE",
        ),
        ("see [user\nmanual][]", "SEE [USER MANUAL][user manual]", "[MANUAL USER][user manual] SEE"),
        (
            "the [*b* `c`] is ![b `c`][]",
            "THE [*B* `c`][*b* `c`] IS ![B `c`][b `c`]",
            "IS [`c` *B*][*b* `c`] THE ![`c` B][b `c`]",
        ),
        ("[user manual]", "[USER MANUAL][user manual]", "[MANUAL USER][user manual]"),
        ("![user manual]", "![USER MANUAL][user manual]", "![MANUAL USER][user manual]"),
        ("[![b][]][user manual]", "[![B][b]][user manual]", "[![B][b]][user manual]"),
        ("[![b] c][b]", "[![B][b] C][b]", "[![B][b] C][b]"),
        ("![b\n*c*](d) ![12]", "![B *C*](d) ![12]", "![*C* B](d) ![12]"),
        ("[12] is [B]", "[12] IS [B]", "[B] IS [12]"),
    ],
)
def test_what_is_named_by_its_text_keeps_its_name(page: str, straight: str, reverse: str) -> None:
    names = ["user manual", "*b* `c`", "b `c`", "b", "12"]
    definitions = "".join(f"\n[{name}]: u/{number}" for number, name in enumerate(names))
    page = f"{page}\n{definitions}"
    assert_identity(page.encode(), "md")
    assert translated(page.encode(), "md").decode() == f"{straight}\n{definitions}"
    result = translated(page.encode(), "md", FakeTranslator(str.upper, reverse=True)).decode()
    assert result == f"{reverse}\n{definitions}"


def test_no_sentence_ends_inside_code() -> None:
    model = FakeTranslator(str.upper)
    assert translated(b"Call `x. Y` once. Then {{ a. B }} it.", "md", model) == b"CALL `x. Y` ONCE. THEN {{ a. B }} IT."
    assert model.texts == ["Call x. Y once.", "Then {{ a. B }} it."]


def test_the_reading_of_a_word_is_no_part_of_the_text() -> None:
    page = b"The <ruby>house<rp>(</rp><rt>casa</rt><rp>)</rp></ruby> is here"
    assert texts(page, "md") == ["The house is here"]
    assert translated(page, "md") == b"THE <ruby>HOUSE<rp>(</rp><rt>casa</rt><rp>)</rp></ruby> IS HERE"


def test_elements_in_another_language_stay() -> None:
    page = 'The word <i lang="de">Fern**weh**</i> is <span lang="en-GB">one</span>.\n'
    result = translated(page.encode(), "md", source_language="en", target_language="it").decode()
    assert result == 'THE WORD <i lang="de">Fern**weh**</i> IS <span lang="en-GB">ONE</span>.\n'
    assert texts(page.encode(), "md")[0].startswith("The word Fernweh is")
    assert_identity(page.encode(), "md")


@pytest.mark.parametrize(
    ("front", "expected"),
    [
        ("---\nlang: en\ndir: ltr\ntitle: lang\n---", "---\nlang: ar\ndir: rtl\ntitle: lang\n---"),
        ("---\r\nlang: 'en-GB'\r\n---", "---\r\nlang: 'ar'\r\n---"),
        ('+++\nlanguage = "en"\n+++', '+++\nlanguage = "ar"\n+++'),
    ],
)
def test_front_matter_says_the_language_of_the_translation(front: str, expected: str) -> None:
    text = "\n\nlang: en\n\n---\nlang: en\n---\n"
    written = translated(f"{front}{text}".encode(), "md", target_language="ar").decode()
    assert written == f"{expected}{text.upper()}"
    assert translated(f"{front}\n\n12\n".encode(), "md", target_language="ar").decode().startswith(front)
