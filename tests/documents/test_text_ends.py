"""Line breaks and tags without a blank between them: which words are one text, in every format with markup."""

import re
from collections import Counter

import pytest

from allyouneed.apps.documents.document_translation import translate_document
from fake_translator import FakeTranslator
from unit_models import read, texts

FORMS = {
    "html": ("<p>{}</p>", {}),
    "md": ("{}\n", {}),
    "json": ('["{}"]', {}),
    "po": ('msgid "{}"\nmsgstr ""\n', {}),
    "xliff": (
        '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file source-language="en"><body>'
        '<trans-unit id="1"><source>{}</source></trans-unit></body></file></xliff>',
        {"<a>": '<g id="1">', "</a>": "</g>", "<strong>": '<g id="2">', "</strong>": "</g>",
         "<br>": '<x ctype="lb" id="3"/>',
         "<em>": '<g id="4">', "</em>": "</g>", "<span>": '<g id="5">', "</span>": "</g>"},
    ),
}  # fmt: skip


def read_lines(kind: str, markup: str) -> list[str]:
    """Return the texts that a model reads of some markup."""
    form, elements = FORMS[kind]
    for name, element in elements.items():
        markup = markup.replace(name, element)
    model = FakeTranslator(str.upper)
    written = translate_document(read(kind, form.replace("{}", markup)), model).data.decode()
    before, after = (Counter(re.findall(r"<[^<>/]*", one)) for one in (markup, written))
    assert before <= after
    return [text.removeprefix("- ") for text in model.texts]


@pytest.mark.parametrize("kind", FORMS)
@pytest.mark.parametrize(
    ("markup", "lines"),
    [
        ("<a>Home</a><a>The files</a><a>Close</a>", ["Home", "The files", "Close"]),
        ("<a>home</a><a>files</a>", ["home", "files"]),
        ("See <a>Home</a><a>Files</a> now", ["See Home", "Files now"]),
        ("<a><span>Home</span></a><a><span>Files</span></a>", ["Home", "Files"]),
        ("<strong>Note</strong>The file is open.", ["Note", "The file is open."]),
        ("<strong>Note:</strong>The file is open.", ["Note:", "The file is open."]),
        ("The file is here<a>Download it</a>", ["The file is here", "Download it"]),
        ("<span>Name</span><span>The house</span>", ["Name", "The house"]),
        ("<span>name</span><span>the house</span>", ["name", "the house"]),
        ("<strong>Name</strong><em>House</em>", ["Name", "House"]),
        ("<strong>un</strong>do it", ["undo it"]),
        ("<strong>H</strong>yper<strong>T</strong>ext", ["HyperText"]),
        ("I use Java<strong>Script</strong> daily", ["I use JavaScript daily"]),
        ("Dear Tom,<br><br>The file is open now<br><br>The house is big",
         ["Dear Tom,", "The file is open now", "The house is big"]),
        ("Tom Smith<br>House 5<br>Rome", ["Tom Smith", "House 5", "Rome"]),
        ("- the file<br>- the house", ["the file", "the house"]),
        ("the file<br>the house<br>the man", ["the file", "the house", "the man"]),
        ("The best way<br>to travel", ["The best way to travel"]),
        ("<strong>Dear Tom,<br>The file</strong> is open", ["Dear Tom,", "The file is open"]),
    ],
)  # fmt: skip
def test_a_model_reads_each_text_by_itself(kind: str, markup: str, lines: list[str]) -> None:
    if kind == "md" and markup.startswith("- "):
        markup = "\\" + markup  # no list
    if lines == ["Dear Tom,", "The file is open"] and kind in ("html", "md"):
        lines = ["Dear Tom,", "The file", "is open"]  # the bold text is the text of two lines there
    assert sorted(read_lines(kind, markup)) == sorted(lines)


@pytest.mark.parametrize(
    "markup", ["<span>r</span><span>ed</span>", "under<b>stand</b>", "<b>H</b><i>T</i>", "x<sub>1</sub>"]
)
def test_parts_of_words_are_not_parted(markup: str) -> None:
    assert len(texts(read("html", markup))) == 1


@pytest.mark.parametrize("kind", FORMS)
def test_words_that_may_be_one_or_two_are_to_be_reviewed(kind: str) -> None:
    form, _ = FORMS[kind]
    for markup, is_doubtful in (("Click <b>Save</b>Then go", True), ("<b>H</b>yper<b>T</b>ext", False)):
        markup = markup.replace("<", "&lt;").replace(">", "&gt;") if kind == "xliff" else markup
        review = translate_document(read(kind, form.replace("{}", markup)), FakeTranslator()).review
        assert any("touch at" in reason for item in review for reason in item.reasons) == is_doubtful


@pytest.mark.parametrize("kind", ["html", "md"])
def test_marks_of_notes_and_powers_are_no_part_of_a_word(kind: str) -> None:
    page = "<p>The house<sup><a href=1>[1]</a></sup> has 9 m<sup>2</sup>.<sup>2</sup> It is the 2<sup>nd</sup></p>"
    page = page if kind == "html" else page[3:-4]
    assert texts(read(kind, page)) == ["The house has 9 m. It is the 2nd"]
    written = translate_document(read(kind, page), FakeTranslator(str.upper)).data.decode()
    assert "THE HOUSE<sup><a href=1>[1]</a></sup> HAS 9 M<sup>2</sup>.<sup>2</sup> IT IS THE <sup>2ND</sup>" in written


def test_each_element_keeps_its_own_words_whatever_the_order() -> None:
    page = "<nav><a href=1>Home</a><a href=2>The files</a></nav><p><strong>Note</strong>The file<br>Is it open"
    written = translate_document(read("html", page), FakeTranslator(str.upper, reverse=True)).data.decode()
    assert written == (
        "<nav><a href=1>HOME</a><a href=2>FILES THE</a></nav><p><strong>NOTE</strong>FILE THE<br>OPEN IT IS"
    )


def test_a_line_break_in_markdown_ends_a_text() -> None:
    assert texts(read("md", "Dear Tom,  \nThe file\\\nIs it open\n")) == ["Dear Tom,", "The file", "Is it open"]
    assert texts(read("md", "[Home](/h)[The files](/f)**Note**The file\n")) == ["Home", "The files", "Note", "The file"]
