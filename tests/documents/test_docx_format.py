"""Word documents: texts change, everything else stays."""

from collections import Counter

import pytest
from lxml import etree

from allyouneed.errors import DocumentError
from archives import packed, unpacked
from document_checks import assert_identity, read, texts, translated
from fake_translator import FakeTranslator

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_KINDS = {"document": "document.main", "header1": "header", "comments": "comments"}
TYPES = "".join(
    f'<Override PartName="/word/{name}.xml" '
    f'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.{kind}+xml"/>'
    for name, kind in _KINDS.items()
).join(['<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">', "</Types>"])
BOLD, ITALIC = "<w:rPr><w:b/></w:rPr>", "<w:rPr><w:i/></w:rPr>"


def r(text: str, properties: str = "") -> str:
    return f'<w:r w:rsidR="00A1">{properties}<w:t xml:space="preserve">{text}</w:t></w:r>'


def field(kind: str) -> str:
    return f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>'


def docx(*paragraphs: str, **parts: str) -> bytes:
    content = "".join(f"<w:p><w:pPr><w:jc w:val='left'/></w:pPr>{paragraph}</w:p>" for paragraph in paragraphs)
    start = f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n<w:document xmlns:w="{W}" xmlns:x="x">'
    return packed(
        {
            "[Content_Types].xml": TYPES,
            "word/document.xml": f"{start}<w:body>{content}</w:body></w:document>",
            "word/header1.xml": f'<w:hdr xmlns:w="{W}"><w:p>{r("Head")}</w:p></w:hdr>',
            "word/comments.xml": f'<w:comments xmlns:w="{W}"><w:p>{r("not this")}</w:p></w:comments>',
            "word/media/a.png": b"\x89PNG",
            **parts,
        }
    )


DOCUMENT = docx(
    r("Click ") + "<w:proofErr/>" + r("Sa", BOLD) + r("ve", "<w:rPr><w:lang w:val='en'/><w:b/></w:rPr>") + r(" now."),
    r("One") + "<w:r><w:tab/></w:r>" + r("two") + "<w:r><w:br/></w:r>" + r("three"),
    "<w:hyperlink x:id='1'>" + r("all of it") + "</w:hyperlink>",
    r("a ") + "<w:hyperlink x:id='2'>" + r("link ") + r("here", ITALIC) + "</w:hyperlink>" + r(" and on"),
    r("page ")
    + field("begin")
    + "<w:r><w:instrText>PAGE x</w:instrText></w:r>"
    + field("separate")
    + r("seven")
    + field("end")
    + r(" of it"),
    r("date ") + field("begin") + "<w:r><w:instrText>DATE</w:instrText></w:r>" + field("end") + r(" today"),
    field("begin") + "<w:r><w:instrText>TOC</w:instrText></w:r>" + field("separate") + r("Contents"),
    r("goes on") + field("end") + r(" after"),
    r("gone ")
    + "<w:del><w:r><w:delText>old</w:delText></w:r></w:del>"
    + "<w:ins>"
    + r("new")
    + "</w:ins>"
    + r(" text"),
    r("a note")
    + "<w:r><w:rPr><w:vertAlign w:val='superscript'/></w:rPr><w:footnoteReference w:id='1'/></w:r>"
    + r(", b"),
    "<w:bookmarkStart w:id='0'/>" + r("Marked") + "<w:bookmarkEnd w:id='0'/>",
    "<w:sdt><w:sdtPr><w:tag w:val='t'/></w:sdtPr><w:sdtContent>"
    + r("a form")
    + "</w:sdtContent></w:sdt>"
    + r(" field"),
    "<w:r><w:pict><w:txbxContent><w:p>" + r("in a box") + "</w:p></w:txbxContent></w:pict></w:r>" + r("outside"),
    r("12.5 %"),
)


def elements(data: bytes) -> Counter[str]:
    """Count the elements of a document, except runs and elements in them without content."""
    ignored = {"r", "t", "rPr", "b", "i", "lang", "proofErr"}
    names = [etree.QName(one).localname for one in etree.fromstring(unpacked(data)["word/document.xml"]).iter()]
    return Counter(name for name in names if name not in ignored)


def test_what_is_translated() -> None:
    assert texts(DOCUMENT, "docx") == [
        "Click Save now.", "One", "two", "three", "all of it", "a link here and on", "page seven of it", "date  today",
        "Contents", "goes on", " after", "gone new text", "a note, b", "Marked", "a form field", "outside", "in a box",
        "Head",
    ]  # fmt: skip


def test_an_identity_model_gives_the_bytes_back() -> None:
    assert_identity(DOCUMENT, "docx")


@pytest.mark.parametrize("model", [FakeTranslator(str.upper), FakeTranslator(reverse=True)])
def test_the_structure_stays(model: FakeTranslator) -> None:
    result = translated(DOCUMENT, "docx", model)
    assert elements(result) == elements(DOCUMENT)
    before, after = unpacked(DOCUMENT), unpacked(result)
    assert before.keys() == after.keys()
    changed = {name for name in before if before[name] != after[name]}
    assert changed <= {"word/document.xml", "word/header1.xml"}
    words = sorted(word.casefold() for text in texts(DOCUMENT, "docx") for word in text.split())
    assert sorted(word.casefold() for text in texts(result, "docx") for word in text.split()) == words


def body(data: bytes) -> str:
    xml = unpacked(data)["word/document.xml"].decode()
    for verbose, short in ((' xml:space="preserve"', ""), (' w:rsidR="00A1"', ""), ("w:", "")):
        xml = xml.replace(verbose, short)
    return xml.partition("<body>")[2].partition("</body>")[0].replace('<pPr><jc val="left"/></pPr>', "")


@pytest.mark.parametrize(
    ("paragraph", "expected"),
    [
        (r("a ") + r("b", BOLD), "<p><r><t>A </t></r><r><rPr><b/></rPr><t>B</t></r></p>"),
        (r("all", BOLD), "<p><r><rPr><b/></rPr><t>ALL</t></r></p>"),
        (
            "<w:hyperlink x:id='2'>" + r("go") + "</w:hyperlink>" + r(" on"),
            '<p><hyperlink x:id="2"><r><t>GO</t></r></hyperlink><r><t> ON</t></r></p>',
        ),
        (
            r("a") + "<w:r><w:br/></w:r>" + r("b") + "<w:r><w:br w:type='page'/></w:r>" + r("c"),
            '<p><r><t>A</t></r><r><br/></r><r><t>B</t></r><r><br type="page"/></r><r><t>C</t></r></p>',
        ),
        (
            r("x ") + field("begin") + "<w:r><w:instrText>REF</w:instrText></w:r>" + field("separate") + r("y")
            + field("end"),
            '<p><r><t>X </t></r><r><fldChar fldCharType="begin"/></r><r><instrText>REF</instrText></r>'
            '<r><fldChar fldCharType="separate"/></r><r><t>Y</t></r><r><fldChar fldCharType="end"/></r></p>',
        ),
        (r("non<w:noBreakHyphen/>stop").replace("<w:noBreakHyphen/>", "</w:t><w:noBreakHyphen/><w:t>"),
         "<p><r><t>NON‑STOP</t></r></p>"),
    ],
)  # fmt: skip
def test_worked_cases(paragraph: str, expected: str) -> None:
    assert body(translated(docx(paragraph), "docx")) == expected


def test_another_order_of_words_keeps_formats_with_their_words() -> None:
    data = docx(r("one ") + r("two", BOLD) + r(" three"))
    expected = "<p><r><t>three </t></r><r><rPr><b/></rPr><t>two</t></r><r><t> one</t></r></p>"
    assert body(translated(data, "docx", FakeTranslator(reverse=True))) == expected


@pytest.mark.parametrize("name", ["bookmark", "commentRange"])
def test_a_range_stays_around_its_words(name: str) -> None:
    start, end = (f"<w:{name}{side} w:id='3'/>" for side in ("Start", "End"))
    data = docx(r("one ") + start + r("two three") + end + r(" four"))
    assert_identity(data, "docx")
    written = body(translated(data, "docx", FakeTranslator(reverse=True)))
    tags = f'<{name}Start id="3"/>', f'<{name}End id="3"/>'
    assert written == f"<p><r><t>four </t></r>{tags[0]}<r><t>three two</t></r>{tags[1]}<r><t> one</t></r></p>"


def test_a_line_break_ends_a_text() -> None:
    data = docx(
        r("Dear Tom,") + BREAK + r("The file is open") + BREAK + BREAK + r("the house", BOLD), r("a") + BREAK + r("b")
    )
    assert texts(data, "docx")[:-1] == ["Dear Tom,", "The file is open", "the house", "a", "b"]
    assert_identity(data, "docx")
    assert body(translated(data, "docx", FakeTranslator(reverse=True))).count("<br/>") == 4


BREAK, BOOKMARK = "<w:r><w:br/></w:r>", "<w:bookmarkStart w:id='0'/>"


@pytest.mark.parametrize("points", [BREAK + BOOKMARK, BOOKMARK + BREAK])
def test_breaks_beside_other_points_part_words(points: str) -> None:
    data = docx(r("One") + points + r("two"))
    assert texts(data, "docx")[0] == "One two"
    assert_identity(data, "docx")
    written = points.replace("w:", "").replace("'", '"')
    assert body(translated(data, "docx")) == f"<p><r><t>ONE</t></r>{written}<r><t>TWO</t></r></p>"


def test_a_character_that_xml_lacks_is_left_out() -> None:
    assert body(translated(docx(r("a")), "docx", FakeTranslator(lambda _: "b\x0cc"))) == "<p><r><t>bc</t></r></p>"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"{}", "test.docx .*zip archive"),
        (packed({"a": "b"}), r"test.docx .*\[Content_Types\].xml"),
        (packed({"[Content_Types].xml": "<Types/>"}), "test.docx .*Word document"),
        (packed({"[Content_Types].xml": TYPES}), "test.docx .*word/document.xml"),
        (docx(**{"word/document.xml": "<w:p"}), "test.docx is not XML"),
        (docx(**{"word/document.xml": "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"}), "document type"),
        (docx("<w:ins>" * 300 + "</w:ins>" * 300), "test.docx .*XML: line 2: Excessive"),
        (DOCUMENT[:-50], "test.docx .*zip archive"),
    ],
)
def test_what_is_no_word_document_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(DocumentError, match=reason):
        read(data, "docx")


def test_a_paragraph_of_digits_stays_unless_numbers_are_translated() -> None:
    data, brackets = docx(r("12/5")), FakeTranslator(lambda word: f"({word})")
    assert body(translated(data, "docx", brackets)) == body(data)
    assert body(translated(data, "docx", brackets, numbers=True)) == "<p><r><t>(12/5)</t></r></p>"


def lang(code: str) -> str:
    return f"<w:rPr><w:lang w:val='{code}'/></w:rPr>"


STYLES = (
    f"<w:styles xmlns:w='{W}'><w:docDefaults><w:rPrDefault>{lang('en-US')}</w:rPrDefault></w:docDefaults></w:styles>"
)


def languages(data: bytes, part: str = "word/document.xml") -> list[dict[str, str]]:
    marks = etree.fromstring(unpacked(data)[part]).iter(f"{{{W}}}lang")
    return [{str(etree.QName(name).localname): str(value) for name, value in mark.items()} for mark in marks]


def test_the_language_of_translated_runs_is_the_target_language() -> None:
    data = docx(
        r("one ", lang("en-GB")) + r("two", lang("it-IT")), r("x", lang("x-none")), **{"word/styles.xml": STYLES}
    )
    result = translated(data, "docx", target_language="it", source_language="en")
    assert {mark["val"] for mark in languages(result)} == {"it"}
    assert languages(result, "word/styles.xml") == [{"val": "it"}]
    arabic = translated(data, "docx", target_language="ar")
    assert languages(arabic, "word/styles.xml") == [{"val": "ar", "bidi": "ar"}]
    assert languages(translated(data, "docx", target_language="ja"), "word/styles.xml")[0]["eastAsia"] == "ja"
    assert unpacked(translated(data, "docx"))["word/styles.xml"] == STYLES.encode()
    assert_identity(data, "docx")


def test_paragraphs_are_turned_into_the_direction_of_the_target_language() -> None:
    def paragraphs(properties: str, source: str, target: str) -> str:
        start, runs = f"<w:p><w:pPr>{properties}</w:pPr>", r("one", "<w:rPr><w:rtl/><w:b/></w:rPr>")
        header = f'<w:hdr xmlns:w="{W}">{start}{runs}</w:p><w:p>{r("two")}</w:p></w:hdr>'
        result = translated(
            docx(**{"word/header1.xml": header}), "docx", source_language=source, target_language=target
        )
        return unpacked(result)["word/header1.xml"].decode()

    arabic = paragraphs("<w:pStyle w:val='A'/><w:jc w:val='left'/>", "en", "ar")
    assert '<w:pStyle w:val="A"/><w:bidi/><w:jc' in arabic
    assert arabic.count("<w:bidi/>") == 2
    english = paragraphs("<w:bidi/>", "he", "en")
    assert english.count('<w:bidi w:val="0"/>') == english.count("bidi") == 2
    assert "w:rtl" not in english
    assert "<w:b/>" in english
    assert "w:bidi" not in paragraphs("", "en", "it")
    assert paragraphs("<w:bidi/>", "he", "ar").count("bidi") == 1


def test_words_of_a_third_language_stay() -> None:
    data = docx(
        r("the old word ") + r("Fernweh ", lang("de-DE")) + r("is one"), r("Das Haus", lang("de")), r("a", lang("en"))
    )
    model = FakeTranslator(str.upper)
    result = translated(data, "docx", model, target_language="it", source_language="en")
    assert texts(result, "docx")[:2] == ["THE OLD WORD Fernweh IS ONE", "Das Haus"]
    assert "the old word Fernweh is one" in model.texts
    assert "Das Haus" not in model.texts
    assert sorted(mark["val"] for mark in languages(result)) == ["de", "de-DE", "it"]
    left_out = read(data, "docx", target_language="it", source_language="en").left_out
    assert [(one.key, one.text.strip()) for one in left_out] == [
        ("paragraph 1", "Fernweh"),
        ("paragraph 2", "Das Haus"),
    ]
