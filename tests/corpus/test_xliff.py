from pathlib import Path

import pytest

from allyouneed.corpus.pair import Fault, Pair
from allyouneed.corpus.readers import open_pairs
from allyouneed.corpus.xliff import read_xliff
from allyouneed.errors import DataError

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
    with pytest.raises(DataError, match=r"a.xlf, line 3 is not XML: "):
        list(read_xliff(written(tmp_path / "a.xlf", OLD, old("a", "A"), "<trans-unit></source>")))
    (tmp_path / "secret").write_text("secret")
    defined = f'<!DOCTYPE xliff [<!ENTITY s SYSTEM "file://{tmp_path}/secret">]>\n{OLD}'
    fault, pair = read_xliff(written(tmp_path / "a.xlf", defined, old("a", "&s;"), old("b", "B")))
    assert fault == Fault(3, "has the entity &s;, which is not expanded; write what it stands for")
    assert pair == Pair("b", "B")
