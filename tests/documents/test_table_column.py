"""CSV and TSV: one column is translated, in its place or into another; all other bytes stay."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allyouneed.apps.documents.table_column import TableStyle
from allyouneed.errors import DocumentError
from unit_models import answer, identity, read, texts, untouched

TABLE = (
    'id,"en",it,note\r\n1,Hello,,"a, ""b"""\r\n2,"Open <b>it</b>, now",Apri,\r\n'
    '3,"First line\nSecond ""line""",,x\r\n\r\n4\r\n5,42,,\r\n'
)


def test_a_column_is_translated_in_its_own_cells() -> None:
    document = read("csv", TABLE, column="en")
    assert texts(document) == ["Hello", "Open it, now", 'First line\nSecond "line"']
    assert [unit.key for unit in document.units] == ["line 2", "line 3", "line 4"]
    assert identity(document) == untouched(document) == TABLE.encode()


def test_translations_go_into_an_existing_column_where_it_is_empty() -> None:
    document = read("csv", TABLE, column="en", into="it")
    assert [unit.translation for unit in document.units] == [None, "Apri", None]
    written = answer(document, lambda text: f"{text}, yes").decode()
    assert written == TABLE.replace("1,Hello,,", '1,Hello,"Hello, yes",').replace(
        '""line""",,', '""line""","First line\nSecond ""line"", yes",'
    ).replace("5,42,,", "5,42,42,")


def test_a_new_column_is_the_last() -> None:
    written = answer(read("csv", TABLE, column="en", into="de"), str.upper).decode()
    rows = list(csv.reader(io.StringIO(written, newline="")))
    column = [row[4:] for row in rows]
    assert column == [["de"], ["HELLO"], ["<b>OPEN IT, NOW</b>"], ['FIRST LINE\nSECOND "LINE"'], [], [], ["42"]]
    assert [row[:4] for row in rows][:4] == list(csv.reader(io.StringIO(TABLE, newline="")))[:4]


def test_columns_of_a_table_without_names_have_numbers() -> None:
    table = "eins;zwei\ndrei;vier"
    assert answer(read("csv", table, column="2"), str.upper) == b"eins;ZWEI\ndrei;VIER"
    assert answer(read("csv", table, column="1", into="2"), str.upper) == table.encode()  # both are full
    assert answer(read("csv", table, column="1", into="3"), str.upper) == b"eins;zwei;EINS\ndrei;vier;DREI"


@pytest.mark.parametrize("declared", ["sep=;\r\n", '"SEP=;"\n'])
def test_a_first_line_for_excel_names_the_delimiter(declared: str) -> None:
    document = read("csv", f"{declared}id;en,de\n1;eins\n", column="en,de")
    assert answer(document, str.upper).decode() == f"{declared}id;en,de\n1;EINS\n"


def test_tabs_leave_quotation_marks_alone_and_line_ends_become_blanks() -> None:
    table = 'en\tit\nsay "a"\t\n"b\tc\n'
    written = answer(read("tsv", table, column="en", into="it"), lambda text: f"{text}\t1\n2")
    assert written == b'en\tit\nsay "a"\tsay "a" 1 2\n"b\tc\n'


def test_blank_lines_stay_and_wide_rows_are_no_hindrance_without_a_new_column() -> None:
    assert answer(read("csv", "en\nx\n\ny\n", column="en", into="it"), str.upper) == b"en,it\nx,X\n\ny,Y\n"
    assert answer(read("csv", "a,b\n\nx,,c\n", column="a", into="b"), str.upper) == b"a,b\n\nx,X,c\n"


def test_short_rows_are_filled_up_to_a_new_column() -> None:
    assert answer(read("csv", "en,b,c\nx\n,\n", column="en", into="it"), str.upper) == b"en,b,c,it\nx,,,X\n,,,\n"


CELLS = st.lists(st.lists(st.text('ab",\n é', max_size=6), min_size=2, max_size=2), min_size=1, max_size=5)


@given(CELLS, st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]), st.sampled_from(["\n", "\r\n"]))
def test_cells_are_those_that_pythons_csv_module_reads(cells: list[list[str]], quoting: int, newline: str) -> None:
    file = io.StringIO(newline="")
    csv.writer(file, quoting=quoting, lineterminator=newline).writerows(cells)  # type: ignore[arg-type]
    text = file.getvalue()
    style = TableStyle(",", quoted=True)
    assert [[style.read(text[start:end]) for start, end in row] for row in style.rows(text)] == cells
    document = read("csv", text, column="1")
    assert identity(document) == untouched(document) == text.encode()
    written = answer(document, lambda text: f'{text},"')
    for before, after in zip(cells, csv.reader(io.StringIO(written.decode(), newline="")), strict=True):
        assert after[1] == before[1]


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("a,b\n", {}, "a, b; .*--column"),
        ("a,b\n", {"column": "c"}, 'column "c"; .*a, b'),
        ("a,b\n", {"column": "3"}, "2 columns, .*1"),
        ("a,b\n", {"column": "1", "into": "4"}, "2 columns, .*1"),
        ("a,b\n", {"column": "1", "into": "it"}, "--into"),
        ("", {"column": "a"}, 'column "a"'),
        ("a,b\n1,2\n1,2,3\n", {"column": "a", "into": "it"}, "3 cells .*line 3, .*2"),
        ("a,b\n1,2,3\n", {"column": "1", "into": "3"}, "3 cells .*line 2, .*2"),
        ('a\nb\n"c\nd', {"column": "a"}, "line 3"),
        ('a\n"b"c\n', {"column": "a"}, "line 2"),
    ],
)
def test_what_cannot_be_translated_is_refused(content: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        read("csv", content, **options)


def test_a_heading_below_titles_is_found() -> None:
    table = "Price list,,\n,,\nNo.,English,Italian\n1,Hello,\n2,Bye,Ciao\n"
    written = answer(read("csv", table, column="English", into="Italian"), str.upper)
    assert written.decode() == table.replace("1,Hello,", "1,Hello,HELLO")
    written = answer(read("csv", table, column="English", into="German"), str.upper)
    assert written.decode().splitlines()[2:] == ["No.,English,Italian,German", "1,Hello,,HELLO", "2,Bye,Ciao,BYE"]
    assert answer(read("csv", table, column="b"), str.upper).decode() == table.replace("English", "ENGLISH").replace(
        "Hello", "HELLO"
    ).replace("Bye", "BYE")


@pytest.mark.parametrize(
    "options", [{}, {"column": "Inglese"}, {"column": "9"}, {"column": "B", "into": "it"}, {"column": "2", "into": "7"}]
)
def test_a_refusal_proposes_a_column_that_works(options: dict[str, str]) -> None:
    table = "Key,Text,Note\nk.1,A dog runs fast,\nk.2,A cat sleeps,x\n"
    with pytest.raises(DocumentError) as refused:
        read("csv", table, **options)
    name, value = refused.value.options
    assert texts(read("csv", table, **options | {name[2:]: value}))[-2:] == ["A dog runs fast", "A cat sleeps"]


@pytest.mark.slow
def test_huge_tables_and_cells_are_read_at_once() -> None:
    for text in ("a," * 200_000, "a\n" * 100_000, '"' + '""' * 200_000 + '"', '"' * 300_000 + "\n"):
        assert untouched(read("csv", text, column="1")) == text.encode()
    with pytest.raises(DocumentError, match="line 1"):
        read("csv", '"' + "a,\n" * 200_000, column="1")


def test_a_comma_in_quotation_marks_parts_no_cells() -> None:
    data = b'"Name, first";"Text"\n"x";"Hello"\n'
    assert texts(read("csv", data, column="Text")) == ["Hello"]
