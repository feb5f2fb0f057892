"""Pairs as rows of tables."""

import base64
import json
import lzma
import os
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import polars
import pytest

from allyouneed.data.pairs import Fault, LeftOut, Pair
from allyouneed.data.readers import describe_columns, open_pairs, read_pairs
from allyouneed.data.tabular import iterate_pairs
from allyouneed.errors import DataError, MissingExtraError
from spreadsheets import Sheets, write_ods, write_xlsx


def rows(path: Path, content: str | bytes, columns: Sequence[str] = ()) -> list[Pair | Fault | LeftOut]:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(open_pairs(str(path), columns=columns))


DOG, CAT = Pair("a dog", "un cane"), Pair('a "cat"', "un gatto")


@pytest.mark.parametrize(
    ("name", "content", "columns"),
    [
        ("a.tsv", 'a dog\tun cane\na "cat"\tun gatto\n', ()),
        ("a.tsv", 'source\ttarget\na dog\tun cane\n\na "cat"\tun gatto', ()),
        ("a.tsv", 'en\tit\r\na dog\tun cane\r\na "cat"\tun gatto\r\n', ()),
        ("a.tsv", '1\ta dog\t2\tun cane\n3\ta "cat"\t4\tun gatto\n', ("2", "4")),
        ("a.tsv", 'id\ten\tid\tit\n1\ta dog\t2\tun cane\n3\ta "cat"\t4\tun gatto\n', ("2", "4")),
        ("a.tsv", 'it\tid\ten\nun cane\t1\ta dog\nun gatto\t2\ta "cat"\n', ("en", "it")),
        ("a.csv", 'a dog,un cane\n"a ""cat""",un gatto\n', ()),
        ("a.csv", '"a dog";"un cane"\n"a ""cat""";un gatto\n', ()),
        ("a.csv", 'source;target\na dog;un cane\n"a ""cat""";un gatto\n', ()),
        ("a.csv", 'sep=;\nsource;target\na dog;un cane\n"a ""cat""";un gatto\n', ()),
        ("a.csv", '"SEP=|"\na dog|un cane\n"a ""cat"""|un gatto\n', ()),
        ("a.csv", 'Target;Source\nun cane;a dog\nun gatto;"a ""cat"""\n', ()),
        ("a.tsv", 'tgt\tsrc\nun cane\ta dog\nun gatto\ta "cat"\n', ()),
        ("a.tsv", 'a dog\tun cane\n   \na "cat"\tun gatto\n \n', ()),
        ("a.csv", 'a dog,un cane\n  \n"a ""cat""",un gatto\n', ()),
        ("a.jsonl", '{"en":"a dog","it":"un cane"}\n \n{"it":"un gatto","en":"a \\"cat\\""}\n', ()),
        ("a.jsonl", '{"trg":"un cane","src":"a dog"}\n{"src":"a \\"cat\\"","trg":"un gatto"}\n', ()),
        (
            "a.jsonl",
            '{"translation":{"en":"a dog","it":"un cane"}}\n{"translation":{"it":"un gatto","en":"a \\"cat\\""}}\n',
            (),
        ),
        ("a.jsonl", '{"source":"a dog","target":"un cane"}\n{"id":1,"target":"un gatto","source":"a \\"cat\\""}\n', ()),
        ("a.jsonl", '{"q":"a dog","a":"un cane"}\n\n{"q":"a \\"cat\\"","a":"un gatto"}\n', ()),
        (
            "a.jsonl",
            '{"id":"1","translation":{"it":"un cane","en":"a dog"}}\n'
            '{"id":"2","translation":{"it":"un gatto","en":"a \\"cat\\""}}\n',
            ("en", "it"),
        ),
    ],
)
def test_tables_of_every_kind(tmp_path: Path, name: str, content: str, columns: Sequence[str]) -> None:
    assert rows(tmp_path / name, content, columns) == [DOG, CAT]


@pytest.mark.parametrize(
    ("name", "content", "line", "reason"),
    [
        ("a.tsv", "a\tb\na b\nc\td\n", 2, "has 1 column, not 2"),
        ("a.tsv", b"a\tb\na\xff\tb\nc\td\n", 2, "is not UTF-8: byte 0xff at position 2 "),
        ("a.csv", "a,b\na,b,c\nc,d\n", 2, "has 3 columns, not 2"),
        ("a.csv", 'a,b\n"a"x,b\nc,d\n', 2, "is not CSV: ',' expected after '\"'"),
        ("a.csv", b"a,b\n\xff,b\nc,d\n", 2, "is not UTF-8"),
        ("a.csv", 'a,b\n"a,b\nc,d\n', 2, "is not CSV: .* 16 lines"),
        ("a.csv", 'a,b\na,b,"c\n"\nc,d\n', 2, "has 3 columns, not 2"),
        ("a.jsonl", '{"a":"a","b":"b"}\n{"a":"a",\n{"a":"c","b":"d"}\n', 2, "is not JSON: "),
        ("a.jsonl", '{"a":"a","b":"b"}\n' + "[" * 100_000 + '\n{"a":"c","b":"d"}\n', 2, "too deeply"),
        ("a.jsonl", '{"a":"a","b":"b"}\n["a","b"]\n{"a":"c","b":"d"}\n', 2, " \\['a', 'b'\\]"),
        ("a.jsonl", '{"a":"a","b":"b"}\n{"a":"a","b":null}\n{"a":"c","b":"d"}\n', 2, 'has None under "b"'),
        ("a.jsonl", '{"a":"a","b":"b"}\n{"a":"a"}\n{"a":"c","b":"d"}\n', 2, 'has no "b"'),
        ("a.jsonl", '{"a":"a","b":"b"}\n{"b":"a","c":"b"}\n{"b":"d","a":"c"}\n', 2, 'has no "a"'),
        ("a.jsonl", '{"a":"a","b":"b"}\n{"a":"\\ud800","b":"b"}\n{"a":"c","b":"d"}\n', 2, "half a "),
    ],
)
def test_a_malformed_line_is_told_by_line_and_reason(
    tmp_path: Path, name: str, content: str | bytes, line: int, reason: str
) -> None:
    first, fault, last = rows(tmp_path / name, content)
    assert (first, last) == (Pair("a", "b"), Pair("c", "d"))
    assert isinstance(fault, Fault)
    assert fault.line == line
    assert re.search(reason, fault.reason)


def test_a_stray_quotation_mark_costs_its_own_line_alone(tmp_path: Path) -> None:
    content = [f"a{n},b{n}\n" for n in range(600)]
    content[100] = '"a,b\n'
    content[400] = '"two, with\na blank line\n\nbetween",b\n'
    result = rows(tmp_path / "a.csv", "".join(content))
    assert [row.line for row in result if isinstance(row, Fault)] == [101]
    assert len(result) == 600
    assert result[400] == Pair("two, with\na blank line\n\nbetween", "b")


@pytest.mark.parametrize(
    ("row", "pair"),
    [
        ('"First line\nHello, world\nlast",Prima', Pair("First line\nHello, world\nlast", "Prima")),
        ('Prima,"Dear Sir, hello\nHello, world\nlast, one"', Pair("Prima", "Dear Sir, hello\nHello, world\nlast, one")),
    ],
)
def test_lines_of_a_cell_that_look_like_rows_are_none(tmp_path: Path, row: str, pair: Pair) -> None:
    assert rows(tmp_path / "a.csv", f"source,target\n{row}\nc,d\n") == [pair, Pair("c", "d")]


def test_a_row_of_other_columns_counts_the_lines_it_takes(tmp_path: Path) -> None:
    assert rows(tmp_path / "a.csv", 'a,b\na,"b\nb\nb",c\n')[1] == Fault(2, "has 3 columns, not 2", lines=3)


def test_a_third_known_name_leaves_open_which_two_are_meant(tmp_path: Path) -> None:
    """`source` may also say where a pair comes from."""
    (fault,) = rows(tmp_path / "a.jsonl", '{"src":"Hallo","tgt":"Hello","source":"web"}\n')
    assert isinstance(fault, Fault)
    assert re.search(" src, tgt, source; .* src,tgt$", fault.reason)


def test_a_cell_of_csv_may_be_as_long_as_a_line(tmp_path: Path) -> None:
    assert rows(tmp_path / "a.csv", f'"{"x" * 1_000_000}",b\n') == [Pair("x" * 1_000_000, "b")]


@pytest.mark.parametrize(
    ("content", "columns", "why"),
    [
        (
            "a\tb\tc\n",
            (),
            "line 1 .*3 columns; .*a, b, c. .*a,b",
        ),
        ("tgt\ttarget\n", (), "line 1 .*twice; .*1,2"),
        ("a\t\nb\t\n", (), "line 1: .*column A "),
        ("a b\n", (), "line 1 .*column"),
        ("a\tb\n", ("en", "it"), 'column "en"; .*a, b'),
        ("a\tb\n", ("1", "3"), 'no column "3"'),
        ("a\tb\n", ("A", "C"), 'no column "C"'),
    ],
)
def test_columns_that_are_not_there_are_refused(tmp_path: Path, content: str, columns: Sequence[str], why: str) -> None:
    with pytest.raises(DataError, match=why):
        rows(tmp_path / "a.tsv", content, columns)


def test_a_column_of_translations_as_opus_books_has_it(tmp_path: Path) -> None:
    rows = [{"en": "a dog", "it": "un cane"}, {"en": "a cat", "it": None}]
    polars.DataFrame({"id": ["1", "2"], "translation": rows}).write_parquet(tmp_path / "a.parquet")
    expected = [Pair("a dog", "un cane"), Fault(2, 'has None under "it"; a string is needed')]
    assert list(open_pairs("a.parquet", folder=str(tmp_path), columns=("en", "it"))) == expected
    assert list(open_pairs("a.parquet", folder=str(tmp_path))) == expected


def test_two_columns_by_name(tmp_path: Path) -> None:
    frame = polars.DataFrame({"id": [1], "question": ["a dog"], "answer": ["un cane"]})
    frame.write_parquet(tmp_path / "a.parquet")
    assert list(open_pairs("a.parquet", folder=str(tmp_path), columns=("answer", "question"))) == [
        Pair("un cane", "a dog")
    ]


@pytest.mark.parametrize(
    ("row", "columns"),
    [
        ({"source": "a dog", "translation": "un cane"}, ()),
        ({"a": "a dog", "target": "un cane"}, ()),
        ({"id": "1", "target": "un cane", "source": "a dog"}, ("source", "target")),
        ({"id": "1", "target": "un cane", "source": "a dog"}, ()),
        ({"id": "1", "tgt": "un cane", "src": "a dog"}, ()),
        ({"source": "x", "target": "y", "translation": {"en": "a dog", "it": "un cane"}}, ("en", "it")),
    ],
)
def test_the_pair_is_that_of_the_same_row_as_a_json_object(
    tmp_path: Path, row: dict[str, object], columns: tuple[str, ...]
) -> None:
    polars.DataFrame([row]).write_parquet(tmp_path / "a.parquet")
    (tmp_path / "a.jsonl").write_text(json.dumps(row))
    for name in ("a.parquet", "a.jsonl"):
        assert list(open_pairs(name, folder=str(tmp_path), columns=columns)) == [Pair("a dog", "un cane")]


def test_columns_that_are_not_named_are_all_listed(tmp_path: Path) -> None:
    polars.DataFrame({"key": ["a.b"], "text": ["a dog"], "source": ["web"]}).write_parquet(tmp_path / "a.parquet")
    (fault,) = open_pairs("a.parquet", folder=str(tmp_path))
    assert isinstance(fault, Fault)
    assert re.search(" key, text, source; .* text,source", fault.reason)


def test_a_star_or_a_bracket_in_a_name_stands_for_itself(tmp_path: Path) -> None:
    for name, word in (("a[bc]*.parquet", "right"), ("ab.parquet", "wrong"), ("a[bc]d.parquet", "wrong")):
        polars.DataFrame({"source": [word], "target": [word]}).write_parquet(tmp_path / name)
    assert list(open_pairs("a[bc]*.parquet", folder=str(tmp_path))) == [Pair("right", "right")]


def test_what_is_no_parquet_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_text("no parquet")
    with pytest.raises(DataError, match=r"a\.parquet"):
        list(open_pairs("a.parquet", folder=str(tmp_path)))


def test_a_hub_that_cannot_be_reached_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(where: str) -> None:
        raise polars.exceptions.ComputeError("error sending request\n\nThis error occurred …")

    monkeypatch.setattr("allyouneed.data.tabular._scan", unreachable)
    with pytest.raises(DataError, match="^hf://datasets/owner/name .*sending request$"):
        list(open_pairs("hf://datasets/owner/name"))


def test_without_polars_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "polars", None)
    with pytest.raises(MissingExtraError, match=r"hf://.*'allyouneed\[data\]'"):
        list(open_pairs("hf://datasets/owner/name"))


PAIRS = [("a dog", "ein Hund"), ("a cat", "eine Katze")]


class PandasFrame:
    """As much of a pandas frame as is needed; pandas is not installed."""

    columns = ("en", "id", "de")

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def itertuples(self, *, index: bool, name: str | None) -> Iterator[tuple[object, ...]]:
        assert (index, name) == (False, None)
        return ((source, number, target) for number, (source, target) in enumerate(PAIRS))


@pytest.mark.parametrize(
    ("pairs", "columns"),
    [
        (PAIRS, ()),
        ((list(pair) for pair in PAIRS), ()),
        ([{"source": source, "target": target, "id": 3} for source, target in PAIRS], ()),
        ([{"translation": {"en": source, "de": target}} for source, target in PAIRS], ()),
        ([{"en": "a dog", "de": "ein Hund"}, {"de": "eine Katze", "en": "a cat"}], ()),
        ([{"de": target, "en": source, "id": 3} for source, target in PAIRS], ("en", "de")),
        (polars.DataFrame(PAIRS, schema=["en", "de"], orient="row"), ()),
        (polars.LazyFrame(PAIRS, schema=["en", "de"], orient="row").select("de", "en"), ("en", "de")),
        (PandasFrame(), ("en", "de")),
    ],
    ids=["list", "generator", "rows", "two languages", "any order", "named columns", "polars", "lazy polars", "pandas"],
)  # fmt: skip
def test_pairs_in_memory_have_many_forms(pairs: Any, columns: tuple[str, ...]) -> None:
    assert list(iterate_pairs(pairs, columns=columns)) == PAIRS


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ("pairs.tsv", "train .*got 'pairs.tsv'"),
        (3, "an iterable"),
        ({"train": PAIRS, "test": PAIRS}, "a mapping"),
        ([*PAIRS, "ab"], "row 3 .*got 'ab'"),
        ([("a", "b", "c")], "row 1"),
        ([("a", 3)], 'row 1 .*"target"'),
        ([("a", "\ud800")], "row 1 .*character"),
        (
            [{"a": "x", "b": "y", "c": "z"}],
            "row 1 .*keys a, b, c; .*a,b",
        ),
    ],
)
def test_what_is_no_pair_is_refused_by_its_number(pairs: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(iterate_pairs(pairs, name="train"))


OLD = (
    "XQAAgAD//////////wBoM74chjB3YPSkhCpADBx2J4LykYbciMonuuGgt8YEE2ebzZi5aTUVKpnhA9PF6MzR9Es/2agi8WDZsMfuL9VCPqWjii"
    "J3gVURcBs0+g/7o8pmAMdhzSuooJE4MAmMyx2LHt/RRxgNdOPw2CePlShjpq1MCupbOpyv1fADRrXGN2BamBRKgseXll+/aH7mOHCqDQ/5O7ce"
    "yRSnh0ms8Kfx+NBb8E7ORl3oQVapvo+LxRmfynzfmFBuEI36C5g2MU3xDETtXChDHzMyav71eTMflWxA9iu5ElX9rRgHWvZ2eLxe63H/LF2YyH"
    "rB6GfXHvPFWL9QDwam7k5lFjkXXTGse/iF4vjaT53wKWRinoL3G8dEknbGaigPoRKkFVfzXg7nTeo3AUAiCJO992MX6JWIAfXBodi++AbVkLTw"
    "DBU8F2qDRl/M0+HmJ/ZRFZ9aFMMJIuPeibVtk03URY2QsaCyQT3R53yBb+wEITPrwazXrdJ+P/ea/ViOj+LuI6cnN8nsqsfaG5XOBSjM8mF9QP"
    "QlrN24M1wVvcZs0vjS3bFQEq1xzlfSYrKN86JSIzmz/rv2zz6NYj8eHQrjt14mR47g6DPX0Qg2opJ+FkJ7ahJnOaeJtN0/7YlT7wEYINMI6YBm"
    "t9Ebn9fglSzwiV5WipAUiUo7sLNmYR49KFyTinkhHslkCmESy+WPG4f0jCyw/JmyvN90hsGkxuIoZrr/rmIeP6op1jBFroTBMflkVwA="
)
SHEETS: Sheets = {
    "Phrases": [
        ["ID", "Date", "English", "Italian", "Status", None],
        [1, 45000.5, "a dog", "un cane", "ok", None],
        [None] * 6,
        [2, 45001, 7, "sette\nvolte", None, None],
    ],
    "Words & more": [["source", "target"], ["cat", "gatto"]],
}


@pytest.mark.parametrize(("ending", "write"), [(".xlsx", write_xlsx), (".ods", write_ods)])
def test_the_first_sheet_or_a_named_one(tmp_path: Path, ending: str, write: Callable[[Path, Sheets], Path]) -> None:
    path = str(write(tmp_path / f"a{ending}", SHEETS))
    assert list(open_pairs(path)) == [Pair("a dog", "un cane"), Pair("7", "sette\nvolte")]
    assert list(open_pairs(path, sheet="Words & more")) == [Pair("cat", "gatto")]
    assert re.search('"English" .*source .*"Italian" .*target', describe_columns(path))


def test_a_spreadsheet_of_old(tmp_path: Path) -> None:
    path = tmp_path / "a.xls"
    path.write_bytes(lzma.decompress(base64.b64decode(OLD)))
    assert read_pairs(str(path)) == [Pair("a dog", "un cane")]


def test_a_sheet_that_is_not_there_is_refused_with_one_that_is(tmp_path: Path) -> None:
    path = write_xlsx(tmp_path / "a.xlsx", SHEETS)
    with pytest.raises(DataError, match=r'a\.xlsx .*"Word".*Words & more') as refused:
        list(open_pairs(str(path), sheet="Word"))
    assert refused.value.options == ("--sheet", "Words & more")


def test_a_spreadsheet_without_its_library_names_it_and_not_a_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("allyouneed.data.spreadsheet.is_installed", lambda library: library != "python_calamine")
    path = write_xlsx(tmp_path / "a.xlsx", SHEETS)
    with pytest.raises(DataError, match=r"a\.xlsx .* pip install python-calamine$"):
        next(iter(open_pairs(str(path))))


@pytest.mark.parametrize("name", ["a.xlsx", "a.xls", "a.ods"])
def test_what_is_no_spreadsheet_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("English,Italian\n")
    with pytest.raises(DataError, match=rf"{name} .*\.xlsx"):
        list(open_pairs(str(tmp_path / name)))


OFFICE: Sheets = {
    "Words": [
        ["Price list 2026", None, None, None],
        [None] * 4,
        ["Project:", "Kitchen", None, None],
        ["No.", "Deutsch", "Italienisch", "Status"],
        [1, "der Hund", "il cane", "ok"],
        [2, "die Katze", "il gatto", None],
        ["Total", 2, 2, None],
    ]
}


@pytest.mark.parametrize("columns", [(), ("Deutsch", "Italienisch"), ("B", "C"), ("2", "3"), ("b", "c")])
@pytest.mark.parametrize("ending", [".xlsx", ".ods", ".csv"])
def test_titles_above_the_heading_and_totals_are_left_out_and_said(
    tmp_path: Path, ending: str, columns: Sequence[str]
) -> None:
    path = tmp_path / f"a{ending}"
    if ending == ".csv":
        rows = [",".join("" if cell is None else str(cell) for cell in row) for row in OFFICE["Words"]]
        path.write_text("\n".join(rows))
    else:
        (write_xlsx if ending == ".xlsx" else write_ods)(path, OFFICE)
    *pairs, total = open_pairs(str(path), columns=columns)
    assert pairs == [Pair("der Hund", "il cane"), Pair("die Katze", "il gatto")]
    assert isinstance(total, LeftOut)
    assert "Total" in total.message("a")
    described = describe_columns(str(path), columns=columns)
    assert "line 4" in described
    assert "Price list 2026, Project:, Kitchen" in described
    assert read_pairs(str(path), columns=columns) == pairs


@pytest.mark.parametrize(
    "last", [("Total", "Totale"), ("7", "sette"), ("2", "due"), ("the sum of 3", "la somma di 3"), ("1990", "im Jahr")]
)
def test_a_last_pair_is_no_total(tmp_path: Path, last: tuple[str, str]) -> None:
    content = "".join(f"{source}\t{target}\n" for source, target in [DOG, DOG, CAT, DOG, CAT, last])
    assert rows(tmp_path / "a.tsv", content)[-1] == Pair(*last)
    numbers = "".join(f"{year}\t{year}\n" for year in range(1990, 2010))
    assert len(rows(tmp_path / "numbers.tsv", numbers)) == 20


@pytest.mark.parametrize("ending", [".csv", ".tsv"])
def test_windows_1252_is_read_and_said(tmp_path: Path, ending: str) -> None:
    content = "Englisch,Türkisch – früher,Französisch\nyou,,où\n“a”,,été\n".replace(
        ",", "," if ending == ".csv" else "\t"
    )
    path = tmp_path / f"a{ending}"
    assert rows(path, content.encode("cp1252")) == [Pair("you", "où"), Pair("“a”", "été")]
    assert "Windows-1252" in describe_columns(str(path))
    assert rows(path, content.encode()) == [Pair("you", "où"), Pair("“a”", "été")]
    assert "Windows" not in describe_columns(str(path))


@pytest.mark.parametrize("text", ["zażółć gęślą", "привет", "καλημέρα"])
def test_another_code_page_is_refused_by_its_first_line(tmp_path: Path, text: str) -> None:
    encoding = {"z": "cp1250", "п": "cp1251", "κ": "cp1253"}[text[0]]
    content = f"id,{text},more\n1,a,b\n2,c,d\n".encode(encoding)
    with pytest.raises(DataError, match="line 1 "):
        rows(tmp_path / "a.csv", content)


@pytest.mark.parametrize(
    ("heading", "text", "page"),
    [
        ("English;Polski", "zażółć gęślą jaźń", "1250"),
        ("Tschechisch;Deutsch", "příliš žluťoučký kůň", "1250"),
        ("English;Русский", "привет", "1251"),
        ("en;el", "καλημέρα", "1253"),
        ("Türkçe;İngilizce", "ığüş", "1254"),
    ],
)
def test_the_languages_of_the_heading_say_in_which_code_page_a_table_is(
    tmp_path: Path, heading: str, text: str, page: str
) -> None:
    path = tmp_path / "a.csv"
    (row,) = rows(path, f"{heading}\n{text};{text}\n".encode(f"cp{page}"))
    assert row == Pair(text, text)
    assert f"Windows-{page}" in describe_columns(str(path))


def test_a_line_in_utf_8_is_never_taken_for_windows_1252(tmp_path: Path) -> None:
    content = "".join(f"caffè {n}\tcoffee\n" for n in range(200_000)).encode("cp1252") + "tè\ttea\n".encode()
    assert rows(tmp_path / "a.tsv", content)[-1] == Pair("tè", "tea")


def in_sheet(path: Path, cells: str, **parts: str) -> Path:
    """Write a spreadsheet whose sheet has these further cells, and which has further parts."""
    write_xlsx(path, SHEETS)
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name).decode() for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    content[sheet] = content[sheet].replace("</sheetData>", f"{cells}</sheetData>")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in (content | parts).items():
            archive.writestr(name, text)
    return path


TEXT = 't="inlineStr"><is><t>far out</t></is></c>'


@pytest.mark.parametrize(
    "cells",
    [
        f'<row r="99999999999"><c r="ZZZZZZ99999999999" {TEXT}</row>',
        f'<row r="4294967295"><c r="A4294967295" {TEXT}</row>',
        "".join(f'<row r="{n}"><c r="{letter}{n}" {TEXT}</row>' for n, letter in ((400_000, "BZZ"), (800_000, "MZZ"))),
        f'<row r="9"><c r="XFE9" {TEXT}</row>',
        f"<row>{f'<c {TEXT}' * 500}</row>" * 4_000,
    ],
)
def test_a_sheet_that_would_take_all_memory_is_refused(tmp_path: Path, cells: str) -> None:
    with pytest.raises(DataError, match=r"a\.xlsx"):
        list(open_pairs(str(in_sheet(tmp_path / "a.xlsx", cells))))


@pytest.mark.parametrize("cell", ["XFD1048576", "XFD900000"])
def test_a_cell_far_out_is_read_around_and_said(tmp_path: Path, cell: str) -> None:
    number = int(cell.lstrip("ABDFX"))
    path = in_sheet(tmp_path / "a.xlsx", f'<row r="{number}"><c r="{cell}" {TEXT}</row>')
    pairs = [row for row in open_pairs(str(path)) if isinstance(row, Pair)]
    assert pairs == [Pair("a dog", "un cane"), Pair("7", "sette\nvolte")]


def test_a_cell_that_makes_the_sheet_too_large_is_a_fault_of_its_row(tmp_path: Path) -> None:
    path = in_sheet(tmp_path / "a.xlsx", f'<row r="1048576"><c r="XFD1048576" {TEXT}</row>')
    (fault,) = (row for row in open_pairs(str(path)) if isinstance(row, Fault))
    assert fault.line == 1048576
    assert "XFD1048576" in str(fault)


def test_a_format_far_out_is_no_cell(tmp_path: Path) -> None:
    path = in_sheet(tmp_path / "a.xlsx", '<row r="1048576"><c r="XFD1048576" s="1"/></row>')
    assert read_pairs(str(path)) == [Pair("a dog", "un cane"), Pair("7", "sette\nvolte")]


@pytest.mark.parametrize("ends", ["os.abort()", "os._exit(1)", "list(range(10**9))", "[0 for _ in iter(int, 1)]"])
def test_whatever_ends_the_library_is_one_line(tmp_path: Path, ends: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A panic, an abort, no more memory, or no more time."""
    (tmp_path / "python_calamine.py").write_text(
        "import os, resource\nclass CalamineError(Exception): ...\nclass CalamineWorkbook:\n    @staticmethod\n"
        f"    def from_path(_):\n        resource.setrlimit(resource.RLIMIT_CPU, (1, 1))\n        {ends}\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    path = write_xlsx(tmp_path / "a.xlsx", SHEETS)
    with pytest.raises(DataError, match=r"a\.xlsx"):
        list(open_pairs(str(path)))


def test_rows_that_nobody_reads_leave_no_process(tmp_path: Path) -> None:
    rows = open_pairs(str(write_xlsx(tmp_path / "a.xlsx", {"S": [["en", "it"], *[["dog", "cane"]] * 50_000]})))
    next(rows)
    rows.close()  # type: ignore[attr-defined]
    assert not child_processes()


def child_processes() -> list[str]:
    tasks = Path(f"/proc/{os.getpid()}/task")
    return [child for task in tasks.iterdir() for child in (task / "children").read_text().split()]
