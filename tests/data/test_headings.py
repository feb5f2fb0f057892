import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from allyouneed.data.headings import NumberedCells, PairColumns
from allyouneed.data.headings import find_columns as find_in_rows
from allyouneed.errors import DataError


def find_columns(first: Sequence[str], columns: Sequence[str], path: Path, *rows: Sequence[str]) -> PairColumns:
    return find_in_rows([NumberedCells(n, [*row]) for n, row in enumerate([first, *rows], start=1)], columns, path)


@pytest.mark.parametrize(
    ("first", "names"),
    [
        (["ID", "Date", "English", "Italian", "Status", "Comment"], ("English", "Italian")),
        (["id", "en", "it"], ("en", "it")),
        (["No", "italiano", "Deutsch", ""], ("italiano", "Deutsch")),
        (["Englisch", "Deutsch", "Notiz"], ("Englisch", "Deutsch")),
        (["de_DE", "en-GB", "key"], ("de_DE", "en-GB")),
        (["Français", "ENGLISH"], ("Français", "ENGLISH")),
        (["日本語", "EN", "備考"], ("日本語", "EN")),
        (["Nr", "Question", "Answer", "Source"], ("Question", "Answer")),
        (["Target text", "Source text", "State"], ("Source text", "Target text")),
        (["prompt", "completion"], ("prompt", "completion")),
        (["no", "id"], ("no", "id")),
    ],
)
def test_a_heading_names_the_two_columns(first: Sequence[str], names: tuple[str, str]) -> None:
    columns = find_columns(first, (), Path("a.csv"))
    assert columns.names == names
    assert re.search(f'"{names[0]}" .*source .*"{names[1]}" .*target', columns.describe())


def test_columns_that_are_left_out_are_said() -> None:
    assert find_columns(["ID", "English", "Italian", ""], (), Path("a")).describe().endswith("; not used: ID")


@pytest.mark.parametrize("first", [["French", "francese"], ["a dog", "un cane"], ["Italian", "italiano"]])
def test_a_pair_is_no_heading(first: Sequence[str]) -> None:
    assert find_columns(first, (), Path("a.csv")) == PairColumns(0, 1)


@pytest.mark.parametrize(
    ("first", "example"),
    [
        (["ID", "English", "Italian", "French"], "English,Italian"),
        (["Key", "Text", "Übersetzung"], "Key,Text"),
        (["ID", "English, US", "Text"], "1,2"),
        (["1", "a dog", "un cane"], "1,2"),
    ],
)
def test_a_heading_that_leaves_it_open_is_refused_with_an_example_that_works(first: list[str], example: str) -> None:
    with pytest.raises(DataError, match="Name two") as refused:
        find_columns(first, (), Path("a.csv"))
    assert refused.value.options == ("--columns", example)
    find_columns(first, example.split(","), Path("a.csv"))


def test_columns_are_found_with_other_capitals() -> None:
    assert find_columns(["ID", "English", "Italian"], ("english", "ITALIAN"), Path("a")).names == ("English", "Italian")


@pytest.mark.parametrize(
    ("line", "mended"),
    [("ciao hello", "ciao\thello"), ("una casa    a house", "una casa\ta house"), ("one side of two files", None)],
)
def test_columns_with_blanks_between_get_a_command_that_parts_them(
    line: str, mended: str | None, tmp_path: Path
) -> None:
    (tmp_path / "my words.txt").write_text(f"{line}\n")
    with pytest.raises(DataError, match="line 1 ") as refused:
        find_columns([line], (), Path("my words.txt"))
    _, is_there, command = str(refused.value).rpartition("the columns: ")
    assert bool(is_there) == (mended is not None)
    if mended:
        subprocess.run(command, shell=True, cwd=tmp_path, check=True)
        assert (tmp_path / "tabs-my words.tsv").read_text() == f"{mended}\n"


TEXTS = [
    ["A-1", "nav", "Open the window", "Das Fenster öffnen", "https://example.org/open/the/long/way", ""],
    ["A-2", "nav", "Close the window, please", "Bitte das Fenster schließen", "https://example.org/close", "note"],
    ["A-3", "menu", "A dog sleeps", "Ein Hund schläft", "https://example.org/dog", ""],
]


@pytest.mark.parametrize(
    ("heading", "name", "example"),
    [
        (["ID", "Category", "Text", "Übersetzung", "Link", "Note"], "a.xlsx", "Text,Übersetzung"),
        (["ID", "Category", "Text", "Text", "Link", "Note"], "a.xlsx", "C,D"),
        (["ID", "Category", "Text", "Text", "Link", "Note"], "a.csv", "3,4"),
        (["ID", "Category", "Text, long", "Text", "Link", "Note"], "a.ods", "C,D"),
    ],
)
def test_the_longest_and_most_varied_texts_are_proposed(heading: list[str], name: str, example: str) -> None:
    table = [heading, *TEXTS]
    with pytest.raises(DataError) as refused:
        find_columns(table[0], (), Path(name), *table[1:])
    assert refused.value.options == ("--columns", example)
    assert find_columns(table[0], example.split(","), Path(name), *table[1:])[:2] == (2, 3)


def test_a_command_that_failed_is_not_proposed_again() -> None:
    table = [["Words of 2026"], ["", ""], ["ID", "Category", "Text", "Übersetzung", "Link", "Note"], *TEXTS]
    with pytest.raises(DataError) as refused:
        find_columns(table[0], ("English", "German"), Path("a.csv"), *table[1:])
    _, example = refused.value.options
    assert find_columns(table[0], example.split(","), Path("a.csv"), *table[1:]).names == ("Text", "Übersetzung")


def test_a_name_goes_before_letters() -> None:
    assert find_columns(["C", "B", "A"], ("A", "B"), Path("a.csv"))[:2] == (2, 1)


def test_a_title_may_fill_as_many_cells_as_the_heading() -> None:
    columns = find_columns(["Dictionary", "2026"], (), Path("a.csv"), ["Italian", "English"], ["cane", "dog"])
    assert columns.names == ("Italian", "English")
    assert columns.above == ("Dictionary", "2026")


@pytest.mark.parametrize("row", [["it", "lo"], ["no", "id"], ["French", "francese"], ["a source", "una fonte"]])
def test_a_pair_below_others_is_no_heading(row: list[str]) -> None:
    assert find_columns(["a dog", "un cane"], (), Path("a.csv"), row) == PairColumns(0, 1)


@pytest.mark.parametrize(
    ("first", "numbers", "is_heading"),
    [
        (["ID", "Text A", "Text B"], [1, 2, 3, 4, 5], True),
        (["Datum", "Text A", "Text B"], ["3.5.2026"] * 5, True),
        (["0", "a dog", "un cane"], [1, 2, 3, 4, 5], False),
        (["a1", "a dog", "un cane"], ["a2", "a3", "a4", "a5", "a6"], False),
        (["a", "a dog", "un cane"], [1], False),
    ],
)
@pytest.mark.parametrize("columns", [("B", "C"), ("2", "3")])
def test_a_row_of_words_above_numbers_is_a_heading(
    first: list[str], numbers: list[object], is_heading: bool, columns: Sequence[str]
) -> None:
    rows = [[str(number), "a cat", "un gatto"] for number in numbers]
    assert bool(find_columns(first, columns, Path("a.csv"), *rows).heading) == is_heading


LINES = [["a dog", "un cane"], ["the cat is here", "il gatto è qui"], ["my house", "la mia casa"]] * 2
SENTENCES = [[f"{one.capitalize()}." for one in row] for row in LINES]


@pytest.mark.parametrize("columns", [(), ("A", "B"), ("2", "1")])
@pytest.mark.parametrize("rows", [LINES, SENTENCES])
def test_a_row_that_is_written_unlike_all_below_is_a_heading(columns: tuple[str, ...], rows: list[list[str]]) -> None:
    heading = ["Term A", "Begriff"]
    assert find_columns(heading, columns, Path("a.csv"), *rows).heading == tuple(heading)
    for first in (rows[0], ["Is it?", "È qui?"], ["Term A", "è qui."]):
        assert not find_columns(first, columns, Path("a.csv"), *rows).heading


@pytest.mark.parametrize("columns", [(), ("A", "B")])
@pytest.mark.parametrize(("first", "is_heading"), [("order", True), ("M2 nut", False)])
def test_a_row_without_digits_above_codes_is_a_heading(columns: tuple[str, ...], first: str, is_heading: bool) -> None:
    rows = [[f"M{n} black bolt {n}", f"BLT-{n:03}"] for n in range(3, 9)]
    found = find_columns([first, "part number"], columns, Path("a.csv"), *rows)
    assert bool(found.heading) == is_heading
