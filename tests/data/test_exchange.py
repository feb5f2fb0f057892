"""Pairs in TMX, XLIFF and gettext files."""

from pathlib import Path

import pytest

from allyouneed.data.exchange import read_po, read_tmx, read_xliff
from allyouneed.data.pairs import Fault, Pair
from allyouneed.data.readers import open_pairs
from allyouneed.errors import DataError

HEAD = '<?xml version="1.0"?>\n{}<tmx version="1.4">\n<header srclang="en"/>\n<body>\n'


def unit(**texts: str) -> str:
    return "<tu>" + "".join(f'<tuv xml:lang="{key}"><seg>{text}</seg></tuv>' for key, text in texts.items()) + "</tu>\n"


def memory(path: Path, *units: str, before: str = "") -> Path:
    path.write_text(HEAD.format(before) + "".join(units) + "</body></tmx>")
    return path


def test_units_are_pairs_and_inline_codes_stay_in_the_text(tmp_path: Path) -> None:
    path = memory(
        tmp_path / "a.tmx",
        unit(it="un cane", en="a dog"),
        unit(en='a <bpt i="1">&lt;b&gt;</bpt>big<ept i="1">&lt;/b&gt;</ept> <hi>cat</hi>', it="un gatto"),
    )
    assert list(read_tmx(path)) == [Pair("a dog", "un cane"), Pair("a <b>big</b> cat", "un gatto")]
    assert list(read_tmx(path, ("IT", "en"))) == [Pair("un cane", "a dog"), Pair("un gatto", "a <b>big</b> cat")]


def test_a_language_is_found_with_its_country_and_one_that_lacks_is_a_fault(tmp_path: Path) -> None:
    path = memory(tmp_path / "a.tmx", '<tu><tuv xml:lang="en-US"><seg>a dog</seg></tuv></tu>\n', unit(en="a", it="b"))
    assert list(read_tmx(path, ("en", "it"))) == [Fault(5, 'has no "it"; it has en-US'), Pair("a", "b")]


def test_codes_that_vary_are_read_by_language(tmp_path: Path) -> None:
    def memory_with(*codes: tuple[str, ...]) -> Path:
        return memory(tmp_path / "a.tmx", *(unit(**{code: f"{code} text" for code in some}) for some in codes))

    path = memory_with(("en-US", "it-IT"), ("it", "EN-GB"), ("en", "it_CH"), ("en-GB", "en-US", "it"), ("de", "it"))
    *pairs, fault = read_tmx(path)
    sources, targets = ["en-US", "EN-GB", "en", "en-US"], ["it-IT", "it", "it_CH", "it"]
    assert pairs == [Pair(f"{one} text", f"{two} text") for one, two in zip(sources, targets, strict=True)]
    reason = 'has no "en"; it has de, it; name the languages as columns, such as en,it'
    assert isinstance(fault, Fault)
    assert fault.reason.startswith(reason)
    assert list(read_tmx(path, ("en-US", "it")))[1] == Fault(6, 'has no "en-US"; it has it, EN-GB')
    assert list(read_tmx(memory_with(("en-GB", "en-US", "it")))) == [Pair("en-GB text", "it text")]
    assert list(read_tmx(memory_with(("pt-PT", "pt-BR"), ("pt-BR", "pt-PT")))) == 2 * [Pair("pt-PT text", "pt-BR text")]


def test_three_languages_need_a_choice(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"line 5 .*en,it"):
        list(read_tmx(memory(tmp_path / "a.tmx", unit(en="a", it="b", de="c"))))


def test_what_is_no_xml_is_refused_by_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.tmx, line 6 "):
        list(read_tmx(memory(tmp_path / "a.tmx", unit(en="a", it="b"), "<tu></tuv>\n")))


def test_an_entity_without_a_document_type_is_refused_by_line(tmp_path: Path) -> None:
    path = memory(tmp_path / "a.tmx", unit(en="a", it="b"), unit(en="a&nbsp;b", it="c"))
    with pytest.raises(DataError, match=r"a\.tmx, line 6 .*'nbsp'.*DOCTYPE tmx"):
        list(read_tmx(path))
    path.write_text(path.read_text().replace("<tmx ", '<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx '))
    assert list(read_tmx(path)) == [Pair("a", "b"), Pair("a\xa0b", "c")]
    path.write_text("")
    with pytest.raises(DataError, match=r"a\.tmx, line 1 "):
        list(read_tmx(path))


def test_entities_are_never_expanded(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    bombs = f'<!DOCTYPE tmx [<!ENTITY a "bomb"><!ENTITY s SYSTEM "file://{tmp_path}/secret">]>\n'
    path = memory(tmp_path / "a.tmx", unit(en="a &a;", it="b"), unit(en="c", it="&s;"), before=bombs)
    first, second = read_tmx(path, ("en", "it"))
    assert isinstance(first, Fault)
    assert isinstance(second, Fault)
    assert (first.line, "&a;" in first.reason, second.line, "&s;" in second.reason) == (6, True, 7, True)


def test_of_entities_the_named_characters_of_html_are_read(tmp_path: Path) -> None:
    units = (
        unit(en="Caf&eacute; &amp; bar", it="<hi>Caff&egrave;</hi>"),
        unit(en="a&tmx;", it="b"),
        unit(en="c", it="d"),
    )
    path = memory(tmp_path / "a.tmx", *units, before='<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n')
    first, second, third = read_tmx(path)
    assert (first, third) == (Pair("Café & bar", "Caffè"), Pair("c", "d"))
    assert isinstance(second, Fault)
    assert (second.line, "&tmx;" in second.reason) == (7, True)
    defined = '<!DOCTYPE tmx SYSTEM "tmx14.dtd" [<!ENTITY eacute "bomb">]>\n'
    (fault,) = read_tmx(memory(tmp_path / "a.tmx", unit(en="Caf&eacute;", it="b"), before=defined))
    assert isinstance(fault, Fault)


def test_a_language_that_is_there_as_it_is_named_comes_before_one_with_a_country(tmp_path: Path) -> None:
    path = memory(tmp_path / "a.tmx", *(unit(**{"pt-BR": "a", "en": "b", "PT": "c"}),))
    assert list(read_tmx(path, ("en", "pt"))) == [Pair("b", "c")]


def test_every_inline_code_of_the_format_leaves_what_it_holds(tmp_path: Path) -> None:
    text = "<it>(</it><ut>)</ut><ph>{1}</ph><hi>a</hi><ph>&lt;img alt=<sub>dog</sub>&gt;</ph><!-- no -->."
    path = memory(tmp_path / "a.tmx", unit(en=text, it="{1}"))
    assert list(read_tmx(path)) == [Pair("(){1}a<img alt=dog>.", "{1}")]


@pytest.mark.parametrize(
    "text", ["<hi>" * 100_000 + "</hi>" * 100_000, f'<ph x="{"1" * 11_000_000}"/>', "a" * 11_000_000]
)
def test_depth_and_length_without_measure_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(DataError, match=r"a\.tmx, line \d+ .*(depth|limit|Huge).*\Z"):
        list(read_tmx(memory(tmp_path / "a.tmx", unit(en=text, it="b"))))


@pytest.mark.parametrize(
    ("head", "units"),
    [
        ('<tmx xmlns="http://www.lisa.org/tmx14"><header srclang="en"/><body>', unit(it="ciao", en="hello")),
        ('<tmx><header srclang="en-US"/><body>', unit(it="ciao", en="hello")),
        ('<tmx><header srclang="en"/><body>', unit(it="", en="hello").replace("</tu>", "") + unit(it="ciao")[4:]),
        ('<tmx><header srclang="en"/><body>', unit(it="ciao", en="hello").replace("</tu>", "") + unit(it="")[4:]),
        ('<tmx><header srclang="en"/><body>', unit(it="ciao", en="hello").replace("</tu>", "") + unit(it="salve")[4:]),
    ],
    ids=[
        "a namespace",
        "a source language with its country",
        "an empty one first",
        "an empty one last",
        "two variants",
    ],
)
def test_units_of_other_programs_are_the_same_pairs(tmp_path: Path, head: str, units: str) -> None:
    (tmp_path / "a.tmx").write_text(f"{head}{units}</body></tmx>")
    assert list(read_tmx(tmp_path / "a.tmx")) == [Pair("hello", "ciao")]


OLD = '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file><body>\n{}</body></file></xliff>'
NEW = '<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en"><file id="f">\n{}</file></xliff>'


def old(source: str, target: str | None, unit: str = "", state: str = "") -> str:
    element = "" if target is None else f"<target {state}>{target}</target>"
    return f"<trans-unit {unit}><source>{source}</source>{element}</trans-unit>\n"


def new(source: str, target: str, state: str = "") -> str:
    return f"<segment {state}><source>{source}</source><target>{target}</target></segment>\n"


def written(path: Path, frame: str, *units: str) -> Path:
    path.write_text(frame.format("".join(units)))
    return path


def test_a_target_counts_by_its_state_in_the_first_version(tmp_path: Path) -> None:
    units = {
        old("a", "A", 'approved="yes"', 'state="needs-translation"'): "A",
        old("b", "B", "", 'state="final"'): "B",
        old("c", "C", "", 'state="translated"'): "C",
        old("d", "D"): "D",
        old("e", "E", "", 'state="needs-review-translation"'): "",
        old("f", "F", "", 'state="new"'): "",
        old("g", "G", 'approved="no"'): "",
        old("h", None): "",
    }
    pairs = [Pair(letter, target) for letter, target in zip("abcdefgh", units.values(), strict=True)]
    assert list(read_xliff(written(tmp_path / "a.xlf", OLD, *units))) == pairs
    assert list(open_pairs(str(tmp_path / "a.xlf"))) == pairs


def test_a_target_counts_by_the_state_of_its_segment_in_the_second_version(tmp_path: Path) -> None:
    segments = (
        new("a", "A", 'state="final"'), new("b", "B", 'state="reviewed"'), new("c", "C", 'state="translated"'),
        new("d", "D"), new("e", "E", 'state="initial"'),
    )  # fmt: skip
    path = written(tmp_path / "a.xliff", NEW, "<unit>", *segments, "<ignorable><source> </source></ignorable></unit>")
    assert list(open_pairs(str(path))) == [
        Pair("a", "A"),
        Pair("b", "B"),
        Pair("c", "C"),
        Pair("d", "D"),
        Pair("e", ""),
    ]


def test_inline_codes_stay_in_the_text_and_what_is_beside_the_target_does_not_count(tmp_path: Path) -> None:
    source = 'a <bpt id="1">&lt;b&gt;</bpt><g id="2">big</g><ept id="1">&lt;/b&gt;</ept> <x id="3"/>cat'
    unit = old(source, "<mrk>un gatto</mrk>").replace(
        "</trans-unit>", "<alt-trans><target>x</target></alt-trans></trans-unit>"
    )
    seg = old("One. Two.", '<mrk mtype="seg" mid="1">Uno.</mrk> <mrk mtype="seg" mid="2">Due.</mrk>')
    assert list(read_xliff(written(tmp_path / "a.xlf", OLD, unit, seg))) == [
        Pair("a <b>big</b> cat", "un gatto"), Pair("One. Two.", "Uno. Due."),
    ]  # fmt: skip


def test_what_is_not_to_be_translated_is_left_out(tmp_path: Path) -> None:
    kept = '<group translate="no">', old("a", "A"), old("b", "B", 'translate="yes"'), "</group>"
    path = written(tmp_path / "a.xlf", OLD, *kept, old("c", "C", 'translate="no"'), old("d", "D"))
    assert list(read_xliff(path)) == [Pair("b", "B"), Pair("d", "D")]


def test_what_is_no_xml_is_refused_by_line_and_an_entity_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.xlf, line 3 "):
        list(read_xliff(written(tmp_path / "a.xlf", OLD, old("a", "A"), "<trans-unit></source>")))
    (tmp_path / "secret").write_text("secret")
    defined = f'<!DOCTYPE xliff [<!ENTITY s SYSTEM "file://{tmp_path}/secret">]>\n{OLD}'
    fault, pair = read_xliff(written(tmp_path / "a.xlf", defined, old("a", "&s;"), old("b", "B")))
    assert isinstance(fault, Fault)
    assert (fault.line, "&s;" in fault.reason) == (3, True)
    assert pair == Pair("b", "B")


CATALOGUE = """\
msgid ""
msgstr "Content-Type: text/plain; charset=UTF-8\\n"

msgid "a dog"
msgstr "un cane"

#, fuzzy
msgid "a cat"
msgstr "un cane?"

msgid "%d bird"
msgid_plural "%d birds"
msgstr[0] "%d uccello"
msgstr[1] "%d uccelli"

msgctxt "month"
msgid "May"
msgstr "maggio"

msgctxt "verb"
#| msgid "may?"
msgid "May"
msgstr "potere"

#, fuzzy
#~ msgid "older"
#~ msgstr "più vecchio"

msgid "\\"all\\" \\\\"
msgstr ""
  "\\"tutto\\" \\\\"

#~ msgid "old"
#~ msgstr "vecchio"
"""


def test_messages_are_pairs_and_fuzzy_ones_are_not_translated(tmp_path: Path) -> None:
    (tmp_path / "it.po").write_text(CATALOGUE)
    assert list(read_po(tmp_path / "it.po")) == [
        Pair("a dog", "un cane"),
        Pair("a cat", ""),
        Pair("%d bird", "%d uccello"),
        Pair("%d birds", "%d uccelli"),
        Pair("May", "maggio"),
        Pair("May", "potere"),
        Pair('"all" \\', '"tutto" \\'),
    ]


@pytest.mark.parametrize(("forms", "last"), [(["uno"], "uno"), (["один", "два", "пять"], "пять")])
def test_of_plurals_the_first_form_and_the_last_make_pairs(tmp_path: Path, forms: list[str], last: str) -> None:
    translated = "".join(f'msgstr[{number}] "{form}"\n' for number, form in enumerate(forms))
    (tmp_path / "a.po").write_text(f'msgid "one"\nmsgid_plural "many"\n{translated}')
    assert list(read_po(tmp_path / "a.po")) == [Pair("one", forms[0]), Pair("many", last)]


def test_a_fuzzy_plural_is_not_translated_either(tmp_path: Path) -> None:
    (tmp_path / "a.po").write_text('#, fuzzy\nmsgid "one"\nmsgid_plural "many"\nmsgstr[0] "uno"\nmsgstr[1] "molti"\n')
    assert list(read_po(tmp_path / "a.po")) == [Pair("one", ""), Pair("many", "")]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b'msgid "a"\nmsgstr "b"\nnonsense\n', "it.po .*line 3"),
        (b'msgid "a"\nmsgstr "\xff"\n', "it.po, line 2 .*UTF-8: byte 0xff .*9"),
        (b'msgid "a\nmsgstr "b"\n', "it.po .*line 1"),
        (b'msgid "a"\nmsgstr ""\n"b\n', "it.po .*line 3"),
        (b'msgid "a"\nmsgstr[0] "b\\"\n', "it.po .*line 2"),
        (b'msgid "a \n', "it.po .*line 1"),
        (b'msgid "say "a""\nmsgstr "b"\n', "line 1"),
    ],
)
def test_what_is_no_catalogue_is_refused_by_line(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "it.po").write_bytes(content)
    with pytest.raises(DataError, match=why):
        list(read_po(tmp_path / "it.po"))
