"""XLIFF 1.2 and 2.0: missing targets are filled in, with inline elements and a state; the rest is the same tree."""

import io
import re

import pytest
from lxml import etree
from translate.storage import xliff, xliff2

import document_checks
from allyouneed.apps.documents import read_document
from allyouneed.errors import DocumentError
from unit_models import answer, identity, read, texts, untouched

OLD = """\
<?xml version="1.0" encoding="UTF-8"?>
<!-- made by hand -->
<xliff version='1.2' xmlns="urn:oasis:names:tc:xliff:document:1.2">
  <file original="a.html" source-language="en" datatype="plaintext">
    <body>
      <trans-unit id="1">
        <source>Hello <g id="b">big <x id="i"/>world</g>!</source>
        <note>A greeting &amp; more</note>
      </trans-unit>
      <trans-unit id="2" approved="yes"><source>Done</source><target state="final">Fatto</target></trans-unit>
      <trans-unit id="3"><source>Draft</source><target state="needs-review-translation">Bozza</target></trans-unit>
      <trans-unit id="4" translate="no"><source>Keep</source></trans-unit>
      <group translate="no"><trans-unit id="5"><source>Keep</source></trans-unit>
        <trans-unit id="6" translate="yes"><source>Not this</source><target/></trans-unit></group>
      <trans-unit id="7"><source>New</source><target state="new">New</target></trans-unit>
      <trans-unit id="8">
        <source><bpt id="1">&lt;b&gt;</bpt>Bold<ept id="1">&lt;/b&gt;</ept> {n, plural, one {#} other {#}}</source>
      </trans-unit>
      <trans-unit id="9"><source><x id="1"/>: {0}</source></trans-unit>
      <trans-unit id="10"><source>API is <mrk mtype="protected">GET /a</mrk><ph id="2">code</ph></source></trans-unit>
    </body>
  </file>
</xliff>
"""
NEW = """\
<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en">
  <file id="f1">
    <unit id="1">
      <originalData><data id="d1">%d</data></originalData>
      <segment id="s1">
        <source>You have <pc id="1"><ph id="2" dataRef="d1"/> new</pc> files.</source>
      </segment>
      <ignorable><source> </source></ignorable>
      <segment id="s2" state="final"><source>Yes.</source><target>Si.</target></segment>
      <segment><source><sc id="3"/>Go <ec startRef="3"/>on.</source></segment>
    </unit>
    <unit id="2" translate="no"><segment id="n"><source>no</source></segment></unit>
    <unit id="3"><segment state="initial"><source>Copy</source><target>Copy</target></segment></unit>
    <unit id="4"><segment state="initial"><source>Old</source><target>Vecchio</target></segment></unit>
  </file>
</xliff>"""


def same_tree(one: bytes, other: bytes) -> bool:
    one, other = (etree.tostring(etree.fromstring(data), method="c14n") for data in (one, other))
    return one == other


def test_units_are_segments_without_a_translation() -> None:
    document = read("xliff", OLD)
    assert [(unit.key, unit.text) for unit in document.units if unit.translation is None] == [
        ("unit 1", "Hello big world!"), ("unit 6", "Not this"), ("unit 7", "New"),
        ("unit 8", "Bold {n, plural, one {#} other {#}}"), ("unit 10", "API is "),
    ]  # fmt: skip
    assert [unit.translation for unit in document.units if unit.translation is not None] == ["Fatto", "Bozza"]
    assert [mark.kind for mark in document.units[0].marks] == ["open", "point", "close"]
    assert [mark.kind for mark in document.units[5].marks] == ["open", "close"]
    assert [mark.kind for mark in document.units[6].marks] == ["point", "point"]
    assert texts(read("xliff", NEW)) == ["You have  new files.", "Go on.", "Copy"]


def test_untouched_documents_keep_their_bytes() -> None:
    assert untouched(read("xliff", OLD)) == OLD.encode()
    assert untouched(read("xliff", NEW)) == NEW.encode()


def test_the_identity_copies_sources_into_targets_and_changes_nothing_else() -> None:
    state = 'state="translated" state-qualifier="mt-suggestion"'
    expected = OLD.replace('<target state="new">', f"<target {state}>").replace(
        "<target/>", f"<target {state}>Not this</target>"
    )
    for number in (1, 8, 9, 10):
        pattern = rf'(id="{number}">)(\s*)<source>(.*)</source>'
        expected = re.sub(pattern, rf"\1\2<source>\3</source>\2<target {state}>\3</target>", expected)
    assert same_tree(identity(read("xliff", OLD)), expected.encode())
    expected = re.sub(r"<segment( id=\"s1\")?>(\s*)(<source>(.*)</source>)",
                      r'<segment\1 state="translated">\2\3\2<target>\4</target>', NEW)  # fmt: skip
    expected = expected.replace('state="initial"><source>Copy', 'state="translated"><source>Copy')
    assert same_tree(identity(read("xliff", NEW)), expected.encode())


def test_a_segment_of_version_2_without_a_state_is_new() -> None:
    data = NEW.replace(' state="initial"', "")
    assert texts(read("xliff", data)) == ["You have  new files.", "Go on.", "Copy"]
    old = read("xliff", OLD.replace(' state="new"', ""))  # version 1.2 has no such default
    assert [unit.translation for unit in old.units if unit.text == "New"] == ["New"]


def test_the_states_of_what_to_review() -> None:
    written = answer(read("xliff", OLD), str.upper, {"New": "?"}).decode()
    assert '<target state="needs-review-translation" state-qualifier="mt-suggestion">NEW</target>' in written
    written = answer(read("xliff", NEW), str.upper, {"Go on.": "?"}).decode()
    assert 'state="initial"><source><sc id="3"/>Go <ec startRef="3"/>on.</source><target><sc id="3"/>GO ON.' in written
    assert 'state="final"><source>Yes.</source><target>Si.</target>' in written


def test_other_programs_read_the_same_units() -> None:
    written = answer(read("xliff", OLD), str.upper, {"New": "?"})
    units = {unit.getid().rpartition("\x04")[2]: unit for unit in xliff.xlifffile(io.BytesIO(written)).units}
    assert len(units) == 10
    assert (units["1"].target, units["7"].target, units["2"].target) == ("HELLO BIG WORLD!", "NEW", "Fatto")
    assert units["7"].isreview()
    assert not units["1"].isreview()
    assert not units["4"].target
    two = xliff2.Xliff2File(io.BytesIO(answer(read("xliff", NEW), str.upper)))
    targets = [unit.target for unit in two.units if unit.target]
    assert targets == ["YOU HAVE NEW FILES.", "Si.", "GO ON.", "COPY", "Vecchio"]


def test_a_missing_target_language_is_named() -> None:
    assert b'target-language="it"' in identity(read("xliff", OLD, target_language="it"))
    assert b'trgLang="it"' in identity(read("xliff", NEW, target_language="it"))
    assert b'trgLang="de"' in identity(
        read("xliff", NEW.replace("srcLang", 'trgLang="de" srcLang'), target_language="it")
    )


def test_segments_of_one_unit_are_translated_by_themselves() -> None:
    text = (
        '<xliff version="1.2"><file><body><trans-unit id="1"><source>One. Two.</source><seg-source>'
        '<mrk mtype="seg" mid="0">One <g id="1">a</g>.</mrk> <mrk mtype="seg" mid="1">Two.</mrk></seg-source>'
        "TARGET</trans-unit></body></file></xliff>"
    )
    target = '<target><mrk mtype="seg" mid="0">Uno.</mrk> <mrk mtype="seg" mid="1"/></target>'
    document = read("xliff", text.replace("TARGET", ""))
    assert texts(document) == ["One a.", "Two."]
    written = answer(document, str.upper, {"One a.": "?"}).decode()
    assert (
        '<target state="needs-review-translation" state-qualifier="mt-suggestion"><mrk mtype="seg" mid="0">'
        '<g id="1">ONE A.</g></mrk> <mrk mtype="seg" mid="1">TWO.</mrk></target>'
    ) in written
    again = read("xliff", text.replace("TARGET", target))
    assert texts(again) == ["Two."]
    assert (
        '<mrk mtype="seg" mid="0">Uno.</mrk> <mrk mtype="seg" mid="1">TWO.</mrk>' in answer(again, str.upper).decode()
    )


def test_codes_that_cross_an_element_are_points() -> None:
    text = (
        '<xliff version="1.2"><file><body><trans-unit id="1"><source><bx id="1"/>a <g id="2">b <ex id="1"/>c</g>'
        "</source></trans-unit></body></file></xliff>"
    )
    document = read("xliff", text)
    assert [mark.kind for mark in document.units[0].marks] == ["point", "open", "point", "close"]
    assert '<target state="translated" state-qualifier="mt-suggestion"><bx id="1"/>a <g id="2">b <ex id="1"/>c</g>' in (
        identity(document).decode()
    )


def test_tags_written_in_the_text_are_marks() -> None:
    first = '&lt;p&gt;One<x id="1"/> &lt;b class="a"&gt;two<g id="2"> &lt;/b&gt;a&lt;br/&gt;b</g>&lt;/p&gt; if 1 &lt; 2'
    document = read(
        "xliff",
        f'<xliff version="1.2"><file><body><trans-unit id="1"><source>{first}</source></trans-unit>'
        '<trans-unit id="2"><source><![CDATA[<i>Three</i> & four]]></source></trans-unit></body></file></xliff>',
    )
    assert texts(document) == ["One two a b if 1 < 2", "Three & four"]
    kinds = ["open", "point", "point", "open", "point", "point", "close", "close"]
    assert [mark.kind for mark in document.units[0].marks] == kinds
    written = identity(document).decode()
    assert f">{first}</target>" in written
    assert ">&lt;i&gt;Three&lt;/i&gt; &amp; four</target>" in written


def test_windows_line_ends_utf_16_and_the_last_line_are_kept() -> None:
    data = OLD.replace("\n", "\r\n").encode()
    assert identity(read("xliff", data)).replace(b"\r\n", b"\n") == identity(read("xliff", OLD))
    assert b"\n" not in identity(read("xliff", data)).replace(b"\r\n", b"")
    wide = OLD.replace("UTF-8", "UTF-16").encode("utf-16")
    assert same_tree(identity(read("xliff", wide)), identity(read("xliff", OLD)))
    assert identity(read("xliff", NEW)).endswith(b"</xliff>")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is not XML"),
        ("<xliff>", "XML: line 1"),
        ("<html/>", "XLIFF 1.2 .*2.0: .*<html version=None>"),
        ('<xliff version="9"/>', "is not XLIFF"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><xliff version="1.2">&a;</xliff>', "document type"),
        ('<xliff version="1.2">' + "<g>" * 9000, "is not XML"),
        (
            '<xliff version="1.2"><trans-unit><source/><seg-source>'
            + '<mrk mtype="seg"/>' * 1001
            + "</seg-source></trans-unit></xliff>",
            "1,001 segments; .*1,000",
        ),
    ],
)
def test_what_is_no_xliff_is_refused(content: str, message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        read("xliff", content)


def test_what_is_marked_as_another_language_stays_and_targets_are_marked_with_theirs() -> None:
    unit = '<trans-unit id="{}"{}><source{}>{}</source></trans-unit>'
    marked = 'xml:lang="{}"'.format
    body = [
        unit.format(1, "", f" {marked('en-US')}", f'the <g id="1" {marked("de")}>Haus</g> is'),
        unit.format(2, "", f" {marked('fr')}", "le chat"),
        unit.format(3, f" {marked('de')}", "", "das Haus"),
    ]
    text = f'<xliff version="1.2"><file source-language="en">{"".join(body)}</file></xliff>'
    assert [unit.text for unit in read_document(text.encode(), "xliff").units] == ["the  is"]
    written = document_checks.translated(text.encode(), "xliff", target_language="it").decode()
    assert f'>THE <g id="1" {marked("de")}>Haus</g> IS</target>' in re.sub(" +", " ", written)
    assert written.count("<target") == 1
    segment = f'<seg-source {marked("en")}><mrk mtype="seg" mid="1">a cat</mrk></seg-source></trans-unit>'
    text = text.replace("</trans-unit>", segment, 1)
    assert (
        f"<target {marked('it')}" in document_checks.translated(text.encode(), "xliff", target_language="it").decode()
    )
