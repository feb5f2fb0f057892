"""Spreadsheets: a column is translated in its place or into another; everything else in the file stays."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from lxml import etree

from allyouneed.apps.documents import read_document
from allyouneed.apps.documents.document_translation import translate_document
from allyouneed.data.spreadsheet import spreadsheet_rows
from allyouneed.errors import DocumentError
from document_checks import read, translated
from fake_translator import FakeTranslator
from spreadsheets import Sheets, write_xlsx

BOOK: Sheets = {
    "Phrases": [
        ["Words of 2026", None, None, None, None],
        ["No.", "English", "Italian", "Note", None],
        [1, "Open the <b>file</b>", None, "x", None],
        [2, "Close", "Chiudi", None, 4.5],
        [3, 42, None, None, None],
        [4, " two\nlines ", None, "y", None],
    ],
    "Other": [["English"], ["More"]],
    "Third": [["Deutsch"], ["Hund"]],
}
PHRASES = "xl/worksheets/sheet1.xml"
Change = Callable[[str], str]


def book(tmp_path: Path, sheet: Change = lambda text: text, strings: str = "") -> bytes:
    """Return the file of `BOOK`, its first sheet changed, with shared strings."""
    with zipfile.ZipFile(write_xlsx(tmp_path / "book.xlsx", BOOK)) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    parts[PHRASES] = sheet(parts[PHRASES])
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    parts |= {"xl/sharedStrings.xml": f'<sst xmlns="{main}">{strings}</sst>'} if strings else {}
    parts["docProps/app.xml"] = "<any>thing</any>"
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return file.getvalue()


def rows(data: bytes, tmp_path: Path, sheet: str = "Phrases") -> list[list[str]]:
    """Return the rows as another program reads them."""
    (tmp_path / "read.xlsx").write_bytes(data)
    return [list(row.cells) for row in spreadsheet_rows(tmp_path / "read.xlsx", sheet)]


def parts(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_a_column_is_filled_below_its_heading_and_all_else_stays(tmp_path: Path) -> None:
    data = book(tmp_path)
    written = translated(data, "xlsx", column="English", into="Italian")
    assert rows(written, tmp_path) == [
        ["Words of 2026", "", "", "", ""],
        ["No.", "English", "Italian", "Note", ""],
        ["1", "Open the <b>file</b>", "OPEN THE <b>FILE</b>", "x", ""],
        ["2", "Close", "Chiudi", "", "4.5"],
        ["3", "42", "42", "", ""],
        ["4", "two\nlines", "TWO\nLINES", "y", ""],
    ]
    assert rows(written, tmp_path, "Other") == [["English", "Italian"], ["More", "MORE"]]
    before, after = parts(data), parts(written)
    assert list(before) == list(after)
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {PHRASES, "xl/worksheets/sheet2.xml"}


def test_a_column_is_translated_in_its_own_cells(tmp_path: Path) -> None:
    written = rows(translated(book(tmp_path), "xlsx", column="English"), tmp_path)
    assert [row[1] for row in written] == ["", "English", "OPEN THE <b>FILE</b>", "CLOSE", "42", "TWO\nLINES"]


@pytest.mark.parametrize("column", ["B", "b", "2"])
def test_a_column_has_a_letter_or_a_number_in_the_first_sheet(tmp_path: Path, column: str) -> None:
    document = read(book(tmp_path), "xlsx", column=column)
    assert [unit.key for unit in document.units] == ["Phrases!B2", "Phrases!B3", "Phrases!B4", "Phrases!B6"]


def test_without_translations_the_bytes_stay(tmp_path: Path) -> None:
    document = read(book(tmp_path), "xlsx", column="English", into="New")
    assert document.write([None] * len(document.units)) == book(tmp_path)


def test_shared_strings_are_read_and_left_alone(tmp_path: Path) -> None:
    strings = "<si><t>shared</t></si><si><r><t>in </t></r><r><rPr><b/></rPr><t>bold</t></r><rPh><t>no</t></rPh></si>"

    def share(sheet: str) -> str:
        rows = '<row r="7"><c r="B7" t="s" s="3"><v>0</v></c></row><row r="8"><c r="B8" t="s"><v>1</v></c></row>'
        return sheet.replace("</sheetData>", f"{rows}</sheetData>")

    data = book(tmp_path, share, strings)
    for into, reasons in (("", ("formats within the cell are lost",)), ("Italian", ())):
        document = read(data, "xlsx", column="English", into=into)
        units = {unit.key: unit for unit in document.units}
        assert (units["Phrases!B7"].text, units["Phrases!B8"].text) == ("shared", "in bold")
        assert units["Phrases!B8"].reasons == reasons
        assert units["Phrases!B7"].reasons == ()
    written = parts(translated(data, "xlsx", column="English", into="Italian"))
    assert written["xl/sharedStrings.xml"] == parts(data)["xl/sharedStrings.xml"]
    (cell,) = etree.fromstring(written[PHRASES]).iterfind(".//{*}c[@r='C7']")
    assert cell.get("s") == "3", "a new cell looks like the one it translates"


def test_a_formula_is_never_replaced_and_may_be_translated_into_another_column(tmp_path: Path) -> None:
    formula = '<row r="7"><c r="B7" t="str"><f>A1&amp;"x"</f><v>computed</v></c></row>'
    data = book(tmp_path, lambda sheet: sheet.replace("</sheetData>", f"{formula}</sheetData>"))
    in_place = parts(translated(data, "xlsx", column="English"))[PHRASES].decode()
    assert "computed" in in_place
    assert "<f>" in in_place
    assert rows(translated(data, "xlsx", column="English", into="Italian"), tmp_path)[-1][2] == "COMPUTED"
    other_way = translated(data, "xlsx", column="Italian", into="English")
    assert rows(other_way, tmp_path)[-1][1] == "computed"


def test_cells_that_do_not_say_where_they_are_are_counted(tmp_path: Path) -> None:
    import re

    data = book(tmp_path, lambda sheet: re.sub(r' r="[A-Z]*\d+"', "", sheet.replace('<c r="D3"', '<c r="D3"')))
    assert read(data, "xlsx", column="English").units[0].key == "Phrases!B3"


def test_characters_that_xml_lacks_are_left_out(tmp_path: Path) -> None:
    model = FakeTranslator(lambda text: f"{text}\x07 & <")
    written = translate_document(read(book(tmp_path), "xlsx", column="English"), model).data
    assert "Close & <" in [row[1] for row in rows(written, tmp_path)]


@pytest.mark.parametrize("options", [{}, {"column": "Inglese"}, {"column": "ZZ"}])
def test_a_column_that_is_not_there_is_refused_with_one_that_is(tmp_path: Path, options: dict[str, str]) -> None:
    with pytest.raises(DocumentError) as refused:
        read(book(tmp_path), "xlsx", **options)
    name, column = refused.value.options
    assert (name, column) == ("--column", "English")


@pytest.mark.parametrize("data", [b"PK", b"", b"ID;Text\n"])
def test_what_is_no_spreadsheet_is_refused(data: bytes) -> None:
    with pytest.raises(DocumentError, match="zip archive"):
        read_document(data, "xlsx")


def test_a_document_of_another_office_program_is_refused(tmp_path: Path) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("word/document.xml", "<x/>")
    with pytest.raises(DocumentError, match="no workbook"):
        read_document(file.getvalue(), "xlsx")


@pytest.mark.parametrize(("reference", "why"), [("XFE1", "XFE1"), ("A9999999", "A9999999"), ("ZZZZ1", "ZZZZ1")])
def test_a_cell_that_no_sheet_has_is_refused(tmp_path: Path, reference: str, why: str) -> None:
    data = book(tmp_path, lambda sheet: sheet.replace("</sheetData>", f'<row><c r="{reference}"/></row></sheetData>'))
    with pytest.raises(DocumentError, match=why):
        read(data, "xlsx", column="English")


def test_the_last_cell_of_a_sheet_costs_nothing(tmp_path: Path) -> None:
    far = '<row r="1048576"><c r="XFD1048576" t="inlineStr"><is><t>far</t></is></c></row></sheetData>'
    data = book(tmp_path, lambda sheet: sheet.replace("</sheetData>", far))
    assert len(read(data, "xlsx", column="English").units) == 4
    assert_identity_of_units(data)


def test_cells_that_share_a_long_string_are_refused_before_they_take_memory(tmp_path: Path) -> None:
    rows = "".join(f'<row r="{n}"><c r="B{n}" t="s"><v>0</v></c></row>' for n in range(7, 5_000))
    data = book(
        tmp_path, lambda sheet: sheet.replace("</sheetData>", f"{rows}</sheetData>"), f"<si><t>{'a ' * 9_999}</t></si>"
    )
    with pytest.raises(DocumentError, match="the column"):
        read(data, "xlsx", column="English")


def assert_identity_of_units(data: bytes) -> None:
    document = read(data, "xlsx", column="English")
    assert document.write([None] * len(document.units)) == data
    assert translate_document(document, FakeTranslator()).data == data
