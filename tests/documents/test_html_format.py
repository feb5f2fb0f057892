"""HTML: texts and read attributes are translated, and no other byte changes."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree, html

from allyouneed.apps.documents import DocumentOptions, UnitTranslation, read_document
from allyouneed.apps.documents.document_translation import translate_document
from allyouneed.errors import DocumentError
from document_checks import assert_identity, read, texts, translated
from fake_translator import FakeTranslator

PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>A &amp; B</title>
<meta name="description" content='The "best" page'><meta name="viewport" content="width=device-width">
<style>p > b { color: red }</style><script>if (a < b && c) document.write("<p>no</p>")</script></head>
<body class=main><!-- a comment --><h1>One   <em>fine</em>
  heading</h1>
<p>Click <b>Save</b>, then <a href="/x?a=1&b=2" title="Next page">go on</a>.<br/>A second line<img src=a alt="A cat">
<p>Run <code>git push</code> now &mdash; or <kbd>Ctrl</kbd>&nbsp;s.
<ul><li>First<li>Second <i>one</ul>
<pre>not   this</pre><textarea>nor this</textarea>
<p translate="no">Nor <b>this</b>.</p><span class="x notranslate">nor that</span>
<div><p>deep <b>bold</p><p>more</b> text</p></div>
<input type=submit value="Send it"><input value="not it" placeholder=Name>
<table><tr><td>cell<td>42</table>
</body></html>
"""


def tags(page: bytes) -> list[tuple[str, list[str]]]:
    return [(str(element.tag), sorted(map(str, element.attrib))) for element in html.document_fromstring(page).iter()]


def test_what_is_translated() -> None:
    assert texts(PAGE.encode(), "html") == [
        "A & B", 'The "best" page', "One fine heading", "Click Save, then go on.", "Next page",
        "A second line", "A cat", "Run git push now — or Ctrl\xa0s.", "First", "Second", "one",
        "deep", "bold", "more", "text", "Send it",
        "Name", "cell",
    ]  # fmt: skip


def test_an_identity_model_gives_the_bytes_back() -> None:
    assert_identity(PAGE.encode(), "html")


def test_capitals_change_texts_alone() -> None:
    page = translated(PAGE.encode(), "html").decode()
    assert tags(page.encode()) == tags(PAGE.encode())
    assert '<p>CLICK <b>SAVE</b>, THEN <a href="/x?a=1&b=2" title="NEXT PAGE">GO ON</a>.<br/>A SECOND' in page
    assert "<p>RUN <code>git push</code> NOW — OR <kbd>Ctrl</kbd>&nbsp;S." in page
    assert '<title>A &amp; B</title>\n<meta name="description" content="THE &quot;BEST&quot; PAGE">' in page
    for kept in re.findall(r"<(?:style|script|pre|textarea|p translate)[^\n]*|<!-- .* -->", PAGE):
        assert kept in page


def test_another_order_of_words_keeps_each_tag() -> None:
    page = translated(PAGE.encode(), "html", FakeTranslator(reverse=True))
    assert Counter(map(str, tags(page))) == Counter(map(str, tags(PAGE.encode())))
    assert b"<em>fine</em> One" in page
    assert b"<code>git push</code> Run" in page


def test_the_language_of_the_page_is_that_of_the_translation() -> None:
    assert b'<html lang="it">' in translated(PAGE.encode(), "html", target_language="it")


def test_the_lines_of_units_are_known() -> None:
    assert [unit.key for unit in read(PAGE.encode(), "html").units][:3] == ["line 2", "line 3", "line 5"]


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("a<b>b</b>c", "<b>ABC</b>"),
        ("<p>the `<code>x</code>s` of <code>y</code></p>", "<p>THE `<code>x</code>s` OF <code>y</code></p>"),
        ("(<code>x</code>) is <code>y</code>, z", "(<code>x</code>) IS <code>y</code>, Z"),
        (f"run <code>{'x' * 99}</code>, then", f"RUN <code>{'x' * 99}</code>, THEN"),
        ("one<br>two", "ONE<br>TWO"),
        ("First line<br><br>Second <br><!-- c -->third", "FIRST LINE<br><br>SECOND <br><!-- c -->THIRD"),
        ("<b>all <i>of</i> it</b>", "<b>ALL <i>OF</i> IT</b>"),
        ("a < b & c", "A &lt; B &amp; C"),
        ("<a><div>x</div>y</a>", "<a><div>X</div>Y</a>"),
        ("<p class=notranslate>no<p>yes", "<p class=notranslate>no<p>YES"),
        ("<div translate=no><div>no</div>no</div>yes", "<div translate=no><div>no</div>no</div>YES"),
        ("<li translate=no>no<ul><li>no<li>no</ul> no</li>yes<li>it",
         "<li translate=no>no<ul><li>no<li>no</ul> no</li>YES<li>IT"),
        ("<td translate=no>a<table><tr><td>b<tr><td>c</table>d</td>x<th>y",
         "<td translate=no>a<table><tr><td>b<tr><td>c</table>d</td>X<th>Y"),
        ("<td translate=no>no<th>yes", "<td translate=no>no<th>YES"),
        ("<dd translate=no>no<dl><dt>a<dd>b</dl>c<dt>yes", "<dd translate=no>no<dl><dt>a<dd>b</dl>c<dt>YES"),
        ("<p translate=no>no<h2>Heading</h2><p>After", "<p translate=no>no<h2>HEADING</h2><p>AFTER"),
        ("<p translate=no>no<hr>yes", "<p translate=no>no<hr>YES"),
        ("see <a href=http://x.org/>the site</a> now", "SEE <a href=http://x.org/>THE SITE</a> NOW"),
        ("<i translate=no class=a/>no</i> yes <i translate=no class=a /> yes",
         "<i translate=no class=a/>no</i> YES <i translate=no class=a /> YES"),
        ("x <svg><title>no</title></svg> y", "X <svg><title>no</title></svg> Y"),
        ("yes <!-- no -- > no", "YES <!-- no -- > no"),
        ("yes<a title='no", "YES<a title='no"),
        ("<title>a <b> c</title>x", "<title>A &lt;B&gt; C</title>X"),
        ("<script>a</scripty>b</script>c", "<script>a</scripty>b</script>C"),
    ],
)  # fmt: skip
def test_worked_cases(page: str, expected: str) -> None:
    assert translated(page.encode(), "html").decode() == expected


@pytest.mark.parametrize("points", ["<br>", "<br><!-- c -->", "<img src=a><br>"])
def test_breaks_beside_other_points_part_words(points: str) -> None:
    assert texts(f"<p>First line{points}goes on".encode(), "html") == ["First line goes on"]


@pytest.mark.parametrize(
    "data",
    [
        "\ufeff<p>ä</p>".encode(),
        "\ufeff<p>ä</p>".encode("utf-16-le"),
        '<meta charset="iso-8859-1"><p>ä</p>'.encode("latin-1"),
        '<?xml version="1.0" encoding="shift_jis"?><p>日本</p>'.encode("shift_jis"),
        "<META HTTP-EQUIV=Content-Type CONTENT='text/html; CHARSET=iso-8859-1'><p>ä</p>".encode("latin-1"),
        "<meta charset=Shift_JIS><p>① 髙</p>".encode("cp932"),
        "<meta charset=gb2312><p>朱镕基</p>".encode("gbk"),
        "<meta charset=euc-kr><p>똠방각하</p>".encode("cp949"),
        "<meta charset=iso-8859-9><p>“ş”</p>".encode("cp1254"),
        "<meta charset=shift_jis><p>日本</p>".encode("shift_jis") + b"<i>\x87\x90</i>",  # two codes have this sign
    ],
)
def test_the_encoding_of_a_page_stays(data: bytes) -> None:
    assert_identity(data, "html")
    assert len(texts(data, "html")) == 1


def test_an_encoding_that_is_named_counts_more_than_that_of_the_page() -> None:
    data = "<meta charset=utf-16><p>ä</p>".encode("latin-1")
    document = read_document(data, "html", DocumentOptions(encoding="latin-1"))
    assert [unit.text for unit in document.units] == ["ä"]
    assert document.write([UnitTranslation("ö")]) == data.replace(b"\xe4", b"\xf6")


def test_what_an_encoding_lacks_becomes_a_reference() -> None:
    data = '<meta charset="latin-1"><p>a</p>'.encode("latin-1")
    assert translated(data, "html", FakeTranslator(lambda _: "ä日")).endswith(b"<p>\xe4&#26085;</p>")


def test_a_text_with_broken_bytes_is_left_as_it_is() -> None:
    data = b"<p>a \xff b</p>\n<p>c</p><p>\xff</p>"
    result = translate_document(read(data, "html"), FakeTranslator(str.upper))
    assert result.data == b"<p>a \xff b</p>\n<p>C</p><p>\xff</p>"
    assert (result.units, result.translated, result.refused) == (2, 1, 1)
    (item,) = result.review
    assert item[:3] == ("line 1", "a \ufffd b", None)
    assert "encoding" in item.reasons[0]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'<meta charset="klingon">', "test.html .*encoding 'klingon'"),
        (b"\xff\xfe<", "test.html .*utf-16-le; convert .*UTF-8$"),
        (b"<p>\0</p>", "test.html .*line 1"),
    ],
)
def test_what_is_no_text_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(DocumentError, match=reason):
        read(data, "html")


@pytest.mark.parametrize(
    ("encoding", "reason"),
    [
        ("foo", "test.html .*'foo'"),
        ("utf-16", "test.html .*utf-16; conv"),
    ],
)
def test_an_encoding_that_is_given_and_is_wrong_is_not_said_to_be_declared(encoding: str, reason: str) -> None:
    with pytest.raises(DocumentError, match=reason):
        read(b"<p>a</p>\xff", "html", encoding=encoding)


FRAGMENTS = st.sampled_from(
    ["<b>", "</b>", "<i>", "</i>", "<p>", "</p>", "<br>", "<code>", "</code>", "<!--", "-->", "<", "&amp;", "&", "\n",
     " ", "word", "two words", "<a title='x y'>", "</a>", "<script>", "</script>", "é", "<img alt=x>", "<", ">", '"'],
)  # fmt: skip


@given(st.lists(FRAGMENTS, max_size=30).map("".join))
def test_any_page_survives(page: str) -> None:
    assert_identity(page.encode(), "html")
    for model in (FakeTranslator(str.upper), FakeTranslator(reverse=True)):
        result = translated(page.encode(), "html", model).decode()
        for tag in ("<b>", "</b>", "<i>", "</i>", "<p>", "</p>", "<code>", "</code>", "<br>", "<script>"):
            assert result.count(tag) == page.count(tag)


@pytest.mark.parametrize(
    "part", ["<a ", "<!--", "</", "<b>", "<a b='", '<a b=">" ', "</b>", "<script>", "<![CDATA[", "&", "<"]
)
def test_a_hostile_page_takes_no_quadratic_time(part: str) -> None:
    assert_identity(part.encode() * 20_000, "html")
    assert_identity(f"<p>{part}a".encode() * 2_000, "html")


def test_a_very_long_word_beside_code_takes_no_quadratic_time() -> None:
    assert_identity(b"<p>" + b"a" * 200_000 + b" <code>x</code>", "html")


def test_deep_nesting_and_very_many_tags_in_a_paragraph_are_translated() -> None:
    for page in ("<b>a " * 3_000 + "</b>" * 3_000, "x <b>" + "a<br>" * 3_000 + "</b> y"):
        assert translated(page.encode(), "html").decode() == page.replace("a", "A").replace("x", "X").replace("y", "Y")


XHTML = (
    b'<?xml version="1.0"?>\n<html xmlns="http://www.w3.org/1999/xhtml"><head><script src="a"/><title/></head>%s</html>'
)


def test_a_page_of_xml_stays_one() -> None:
    """A tag that is empty has no content, and there is no entity for a blank that does not break."""
    page = XHTML % "<body><p>Hello\xa0world</p></body>".encode()
    written = translated(page, "html")
    assert written == XHTML % b"<body><p>HELLO&#160;WORLD</p></body>"
    etree.fromstring(written)
    assert translated(b"<p>Hello&nbsp;world</p>", "html") == b"<p>HELLO&nbsp;WORLD</p>"


def test_the_reading_of_a_word_is_a_text_of_its_own() -> None:
    page = b"<p>The <ruby>house<rp>(</rp><rt>ca<b>sa</b><rp>)</rp></ruby> and <ruby>a<rt>ka<rt>na</ruby> here.</p>"
    assert texts(page, "html") == ["The house and a here.", "casa", "ka", "na"]
    assert_identity(page, "html")
    assert translated(page, "html") == (
        b"<p>THE <ruby>HOUSE<rp>(</rp><rt><b>CASA</b><rp>)</rp></ruby> AND <ruby>A<rt>KA<rt>NA</ruby> HERE.</p>"
    )
    assert translated(b"<ruby>house<rt title='so'>casa</rt></ruby>", "html") == (
        b'<ruby>HOUSE<rt title="SO">CASA</rt></ruby>'
    )


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<p>Press <my-key>Control</my-key> now", ["Press Control now"]),
        ("<p><x-a>Press <x-b>Control</x-b> now</x-a>", ["Press Control now"]),
        ("<p>See <my-icon name='a'></my-icon> or <my-icon/> there", ["See or there"]),
        ("<p>Text of <o:p></o:p>it", ["Text of it"]),
        ("<p>Text</p><my-card><h2>Title</h2><p>More</p></my-card>", ["Text", "Title", "More"]),
        ("<p>Text</p><my-tab>One</my-tab> <my-tab>Two</my-tab>", ["Text", "One", "Two"]),
        ("<div>Text <my-card>here <p>More</p></my-card> end</div>", ["Text", "here", "More", "end"]),
        ("<li>of <fb:like>this <i>and</i> that</fb:like>.", ["of this and that."]),
    ],
)
def test_an_element_of_a_program_is_inline_where_text_is_beside_it(page: str, expected: list[str]) -> None:
    assert texts(page.encode(), "html") == expected
    assert_identity(page.encode(), "html")


def test_an_empty_element_of_a_program_keeps_its_blanks() -> None:
    assert translated(b"<p>See <my-icon></my-icon> or <my-icon/> there", "html") == (
        b"<p>SEE <my-icon></my-icon> OR <my-icon/> THERE"
    )


@pytest.mark.parametrize(
    ("page", "source", "expected"),
    [
        ('<html lang="en"><p>The word <i lang="de">Fernweh</i> is', "",
         '<html lang="it"><p>THE WORD <i lang="de">Fernweh</i> IS'),
        ('<html lang="en"><p lang="en-GB">a colour', "en", '<html lang="it"><p lang="it">A COLOUR'),
        ('<html lang="en"><blockquote lang="fr-CA" title="mon titre">le <b>chat</b></blockquote><p>a', "",
         '<html lang="it"><blockquote lang="fr-CA" title="mon titre">le <b>chat</b></blockquote><p>A'),
        ('<html lang=en><div lang=fr><p>le chat<p lang=en title=b>a cat<p>et</div>one', "",
         '<html lang="it"><div lang=fr><p>le chat<p lang="it" title="B">A CAT<p>et</div>ONE'),
        ('<html lang=en><ul><li lang=de>das<li>the<li lang=es>el</ul>', "",
         '<html lang="it"><ul><li lang=de>das<li>THE<li lang=es>el</ul>'),
        ('<html lang="de"><p>the house<p lang="de">a mouse', "en", '<html lang="it"><p>THE HOUSE<p lang="it">A MOUSE'),
        ('<html lang="it"><p>the house<p lang="it">la casa', "en", '<html lang="it"><p>THE HOUSE<p lang="it">la casa'),
        ('<p lang="de">das Haus</p>', "de", '<p lang="it">DAS HAUS</p>'),
        ('<div lang="de">das Haus <i lang="en">a</i></div>', "", '<div lang="it">DAS HAUS <i lang="en">a</i></div>'),
        ('<p>one two <b lang="fr">trois</b></p>', "", '<p>ONE TWO <b lang="fr">trois</b></p>'),
        ('<html xml:lang="en"><p xml:lang="fr">le</p><p>a', "", '<html xml:lang="it"><p xml:lang="fr">le</p><p>A'),
        ('<html lang="en"><p lang="">a<p lang="zxx">x = y<p lang="und">b', "",
         '<html lang="it"><p lang="it">A<p lang="zxx">x = y<p lang="it">B'),
        ('<html lang=en><meta http-equiv="Content-Language" content="en">a', "",
         '<html lang="it"><meta http-equiv="Content-Language" content="it">A'),
        ('<html lang=en><p>b</p><span lang=fr>le</p> a', "", '<html lang="it"><p>B</p><span lang=fr>le</p> a'),
        ('<html lang=en><p><span lang=fr>le</p>a', "", '<html lang="it"><p><span lang=fr>le</p>A'),
    ],
)  # fmt: skip
def test_what_is_marked_as_another_language_stays(page: str, source: str, expected: str) -> None:
    result = translated(page.encode(), "html", target_language="it", source_language=source)
    assert result.decode() == expected
    assert_identity(page.encode(), "html")


@pytest.mark.parametrize(
    ("page", "target", "expected"),
    [
        ('<html lang="en">a', "ar", '<html dir="rtl" lang="ar">A'),
        ('<html lang="en" dir="ltr"><p dir="ltr">a<p dir=auto>b<p><bdo dir=ltr>c</bdo>', "he",
         '<html lang="he" dir="rtl"><p dir="rtl">A<p dir=auto>B<p><bdo dir=ltr>C</bdo>'),
        ('<html lang="ar" dir="rtl"><p dir=rtl>a<p lang=fa dir=rtl>x', "en",
         '<html lang="en" dir="ltr"><p dir="ltr">A<p lang=fa dir=rtl>x'),
        ('<html lang="en"><p lang=ar dir=rtl>x<p>a', "it", '<html lang="it"><p lang=ar dir=rtl>x<p>A'),
        ('<html lang="en">a', "az-Arab", '<html dir="rtl" lang="az-Arab">A'),
        ('<html lang="en">a', "uk-Latn", '<html lang="uk-Latn">A'),
        ("<p>a", "ar", "<p>A"),
    ],
)  # fmt: skip
def test_the_direction_is_that_of_the_target_language(page: str, target: str, expected: str) -> None:
    assert translated(page.encode(), "html", target_language=target).decode() == expected


@pytest.mark.parametrize(
    "part", ["<i lang=fr>", "<p lang=fr>", "<li lang=fr>a", "<div><p>", "</div>", "<table><td lang=fr>"]
)
def test_deep_pages_with_languages_are_read_in_linear_time(part: str) -> None:
    assert_identity(part.encode() * 4_000, "html")


def test_each_label_of_a_form_is_a_text() -> None:
    page = "<p><label>A name</label><input><label>B <b>mail</b></label> <input></p><label><input> I agree</label>"
    assert texts(page.encode(), "html") == ["A name", "B mail", "I agree"]
