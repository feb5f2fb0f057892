"""Spreadsheets for tests: the smallest .xlsx and .ods files that programs open."""

import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from xml.sax.saxutils import escape

Cell = str | float | None
Sheets = Mapping[str, Iterable[Iterable[Cell]]]

_ROOT = "http://schemas.openxmlformats.org"
_MAIN = f'xmlns="{_ROOT}/spreadsheetml/2006/main" xmlns:r="{_ROOT}/officeDocument/2006/relationships"'
_ODF = "urn:oasis:names:tc:opendocument:xmlns"


def write_xlsx(path: Path, sheets: Sheets) -> Path:
    """Write an .xlsx file with these sheets; a text is in its cell, a number a number, None no cell."""
    numbered = list(enumerate(sheets.items(), start=1))
    content = "".join(
        f'<Override PartName="/xl/worksheets/sheet{n}.xml" '
        'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>'
        for n, _ in numbered
    )
    names = "".join(f'<sheet name="{escape(name)}" sheetId="{n}" r:id="rId{n}"/>' for n, (name, _) in numbered)
    relations = "".join(
        f'<Relationship Id="rId{n}" Type="{_ROOT}/officeDocument/2006/relationships/worksheet" '
        f'Target="worksheets/sheet{n}.xml"/>'
        for n, _ in numbered
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{_ROOT}/package/2006/content-types"><Default Extension="rels" '
            'ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override '
            'PartName="/xl/workbook.xml" '
            'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>'
            f"{content}</Types>",
        )
        archive.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{_ROOT}/package/2006/relationships"><Relationship Id="rId1" '
            f'Type="{_ROOT}/officeDocument/2006/relationships/officeDocument" '
            'Target="xl/workbook.xml"/></Relationships>',
        )
        archive.writestr("xl/workbook.xml", f"<workbook {_MAIN}><sheets>{names}</sheets></workbook>")
        archive.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{_ROOT}/package/2006/relationships">{relations}</Relationships>',
        )
        for n, (_, rows) in numbered:
            lines = "".join(
                f'<row r="{r}">{"".join(_xlsx_cell(c, r, cell) for c, cell in enumerate(row))}</row>'
                for r, row in enumerate(rows, start=1)
            )
            archive.writestr(
                f"xl/worksheets/sheet{n}.xml", f"<worksheet {_MAIN}><sheetData>{lines}</sheetData></worksheet>"
            )
    return path


def _xlsx_cell(column: int, row: int, cell: Cell) -> str:
    where = f'r="{chr(ord("A") + column)}{row}"'
    if cell is None:
        return ""
    if isinstance(cell, str):
        return f'<c {where} t="inlineStr"><is><t xml:space="preserve">{escape(cell)}</t></is></c>'
    return f"<c {where}><v>{cell}</v></c>"


def write_ods(path: Path, sheets: Sheets) -> Path:
    """Write an .ods file with these sheets, as `write_xlsx` does."""
    tables = "".join(
        f'<table:table table:name="{escape(name)}">'
        + "".join(f"<table:table-row>{''.join(map(_ods_cell, row))}</table:table-row>" for row in rows)
        + "</table:table>"
        for name, rows in sheets.items()
    )
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", kind)
        archive.writestr(
            "META-INF/manifest.xml",
            f'<manifest:manifest xmlns:manifest="{_ODF}:manifest:1.0"><manifest:file-entry '
            f'manifest:full-path="/" manifest:media-type="{kind}"/></manifest:manifest>',
        )
        archive.writestr(
            "content.xml",
            f'<office:document-content xmlns:office="{_ODF}:office:1.0" xmlns:table="{_ODF}:table:1.0" '
            f'xmlns:text="{_ODF}:text:1.0"><office:body><office:spreadsheet>{tables}</office:spreadsheet>'
            "</office:body></office:document-content>",
        )
    return path


def _ods_cell(cell: Cell) -> str:
    if cell is None:
        return "<table:table-cell/>"
    if isinstance(cell, str):
        return f'<table:table-cell office:value-type="string"><text:p>{escape(cell)}</text:p></table:table-cell>'
    return (
        f'<table:table-cell office:value-type="float" office:value="{cell}"><text:p>{cell}</text:p></table:table-cell>'
    )
