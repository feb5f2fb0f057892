"""OpenDocument texts: texts change, everything else stays."""

import re
from collections import Counter

import pytest
from lxml import etree

from allyouneed.errors import DocumentError
from archives import packed, unpacked
from document_checks import assert_identity, read, texts, translated
from fake_translator import FakeTranslator

NAMESPACES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{kind}:1.0"'
    for name, kind in {"office": "office", "t": "text", "style": "style", "draw": "drawing", "fo": "xsl-fo"}.items()
)
STYLES = """<style:style style:name="B" style:family="text"><style:text-properties fo:font-weight="bold"/></style:style>
<style:style style:name="R" style:family="text"><style:text-properties lo:rsid="1"/></style:style>"""


def odt(*paragraphs: str, **parts: str) -> bytes:
    content = "".join(f'<t:p t:style-name="P1">{paragraph}</t:p>' for paragraph in paragraphs)
    head = f'<?xml version="1.0" encoding="UTF-8"?>\n<office:doc {NAMESPACES} xmlns:lo="http://openoffice.org/2009/office">'
    return packed(
        {
            "mimetype": "application/vnd.oasis.opendocument.text",
            "content.xml": f"{head}{STYLES}<office:text>{content}</office:text></office:doc>",
            "styles.xml": f"{head}<style:header><t:p>Head</t:p></style:header></office:doc>",
            "Pictures/a.png": b"\x89PNG",
            **parts,
        }
    )


DOCUMENT = odt(
    'Click <t:span t:style-name="B">Save</t:span>\n  <t:span t:style-name="R">right </t:span>now.',
    "One<t:tab/>two<t:line-break/>three<t:s t:c='2'/>four",
    "<t:a>all of it</t:a>",
    "a <t:a>link <t:span t:style-name='B'>here</t:span></t:a> and on",
    "page <t:page-number>7</t:page-number> of it",
    "a note<t:note><t:note-citation>1</t:note-citation><t:note-body><t:p>The note</t:p></t:note-body></t:note>, b",
    "remark<office:annotation><t:p>not this</t:p></office:annotation>ed",
    "<draw:frame><draw:text-box><t:p>in a box</t:p></draw:text-box></draw:frame>outside",
    "<t:bookmark-start t:name='x'/>Marked<t:bookmark-end t:name='x'/>",
    "12.5 %",
)


def elements(data: bytes) -> Counter[str]:
    return Counter(str(one.tag) for one in etree.fromstring(unpacked(data)["content.xml"]).iter())


def test_what_is_translated() -> None:
    assert texts(DOCUMENT, "odt") == [
        "Click Save right now.", "One", "two", "three four", "all of it", "a link here and on", "page 7 of it",
        "a note, b", "The note", "remarked", "outside", "in a box", "Marked", "Head",
    ]  # fmt: skip


def test_an_identity_model_gives_the_bytes_back() -> None:
    assert_identity(DOCUMENT, "odt")


@pytest.mark.parametrize("model", [FakeTranslator(str.upper), FakeTranslator(reverse=True)])
def test_the_structure_stays(model: FakeTranslator) -> None:
    result = translated(DOCUMENT, "odt", model)
    unseen = Counter({"{urn:oasis:names:tc:opendocument:xmlns:text:1.0}span": 1})
    assert elements(result) == elements(DOCUMENT) - unseen
    before, after = unpacked(DOCUMENT), unpacked(result)
    assert list(before) == list(after)
    assert {name for name in before if before[name] != after[name]} <= {"content.xml", "styles.xml"}
    words = sorted(word.casefold() for text in texts(DOCUMENT, "odt") for word in text.split())
    assert sorted(word.casefold() for text in texts(result, "odt") for word in text.split()) == words


@pytest.mark.parametrize(
    ("paragraph", "expected"),
    [
        ("a <t:span>b</t:span> c", "A <t:span>B</t:span> C"),
        ("<t:span>all</t:span>", "<t:span>ALL</t:span>"),
        ("<t:a>a<t:span>b</t:span></t:a>", "<t:a><t:span>AB</t:span></t:a>"),
        ("a<t:line-break/>b<t:tab/>c", "A<t:line-break/>B<t:tab/>C"),
        ("a <t:date>May 1</t:date>, b", "A <t:date>May 1</t:date>, B"),
        ("a<t:note><t:note-body><t:p>b</t:p></t:note-body></t:note> c",
         "A<t:note><t:note-body><t:p>B</t:p></t:note-body></t:note> C"),
    ],
)  # fmt: skip
def test_worked_cases(paragraph: str, expected: str) -> None:
    content = unpacked(translated(odt(paragraph), "odt"))["content.xml"].decode()
    assert content.partition('<t:p t:style-name="P1">')[2].rpartition("</t:p>")[0] == expected


@pytest.mark.parametrize("name", ["t:{}-{} t:name='x'", "office:{}-{} office:name='x'", "t:{}-{} t:id='x'"])
def test_a_range_stays_around_its_words(name: str) -> None:
    start, end = (f"<{name}/>".format("bookmark", side) for side in ("start", "end"))
    data = odt(f"one {start}two three{end} four")
    assert_identity(data, "odt")
    content = unpacked(translated(data, "odt", FakeTranslator(reverse=True)))["content.xml"].decode()
    assert f"four {start}three two{end} one".replace("'", '"') in content


def test_a_line_break_ends_a_text() -> None:
    data = odt("Dear Tom,<t:line-break/>The file<t:line-break/><t:line-break/>the house", "a<t:line-break/>b")
    assert texts(data, "odt")[:-1] == ["Dear Tom,", "The file", "the house", "a", "b"]
    assert_identity(data, "odt")


def test_a_line_break_in_a_sentence_parts_words() -> None:
    assert texts(odt("One<t:line-break/>two"), "odt")[0] == "One two"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"{}", "test.odt .*zip archive"),
        (packed({"a": "b"}), "test.odt .*part mimetype"),
        (odt(mimetype="application/epub+zip"), "test.odt .*OpenDocument"),
        (odt(**{"META-INF/manifest.xml": "<manifest:encryption-data/>"}), "test.odt is encrypted"),
        (odt(**{"content.xml": "<a"}), "test.odt is not XML"),
        (odt("<t:span>" * 300 + "</t:span>" * 300), "test.odt .*XML: line 3: Excessive"),
        (DOCUMENT[:-50], "test.odt .*zip archive"),
    ],
)
def test_what_is_no_text_document_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(DocumentError, match=reason):
        read(data, "odt")


def test_a_paragraph_of_digits_stays_unless_numbers_are_translated() -> None:
    data, brackets = odt("12/5"), FakeTranslator(lambda word: f"({word})")
    assert b">12/5<" in unpacked(translated(data, "odt", brackets))["content.xml"]
    assert b"(12/5)" in unpacked(translated(data, "odt", brackets, numbers=True))["content.xml"]


FO = 'xmlns:f="urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0"'


def style(name: str, language: str) -> str:
    return (
        f'<style:style {FO} style:name="{name}"><style:text-properties f:language="{language}" f:country="XX"/>'
        "</style:style>"
    )


def test_languages_are_the_target_language_and_a_third_one_stays() -> None:
    styles = style("En", "en") + style("De", "de") + style("No", "none")
    data = odt(styles + 'the <t:span t:style-name="De">Fernweh</t:span> is <t:span t:style-name="En">one</t:span>')
    result = translated(data, "odt", target_language="pt-BR", source_language="en")
    assert "THE Fernweh IS ONE" in texts(result, "odt")
    left_out = read(data, "odt", target_language="pt-BR", source_language="en").left_out
    assert [one.text for one in left_out] == ["Fernweh"]
    content = unpacked(result)["content.xml"].decode()
    assert 'f:language="pt" f:country="BR"' in content
    assert 'f:language="de" f:country="XX"' in content
    assert 'f:language="none" f:country="XX"' in content
    hebrew = unpacked(translated(data, "odt", target_language="he"))["content.xml"].decode()
    assert 'style:language-complex="he"' in hebrew
    assert_identity(data, "odt")


@pytest.mark.parametrize(
    ("source", "target", "mode", "default"),
    [
        ("en", "ar", "rl-tb", "rl-tb"),
        ("fa", "en", "lr-tb", "lr-tb"),
        ("en", "it", "lr-tb", "page"),
        ("", "he", "rl-tb", "rl-tb"),
    ],
)
def test_styles_are_turned_into_the_direction_of_the_target_language(
    source: str, target: str, mode: str, default: str
) -> None:
    before = "rl-tb" if source == "fa" else "lr-tb"
    properties = "<style:paragraph-properties style:writing-mode='{}'/>"
    styles = (
        f"<office:doc {NAMESPACES}><style:default-style style:family='paragraph'>{properties.format('page')}"
        f"</style:default-style><style:style style:name='A'>{properties.format(before)}</style:style></office:doc>"
    )
    data = odt("one", **{"styles.xml": styles})
    result = unpacked(translated(data, "odt", source_language=source, target_language=target))["styles.xml"].decode()
    assert re.findall("writing-mode=.([a-z-]+)", result) == [default, mode]
