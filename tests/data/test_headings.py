import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from allyouneed.data.headings import PairColumns, find_columns
from allyouneed.errors import DataError


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
    assert f'"{names[0]}" is the source and "{names[1]}" the target' in columns.describe()


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
    with pytest.raises(DataError, match="Name two by name or number") as refused:
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
    with pytest.raises(DataError, match="line 1 has no second column; expected a source and its trans") as refused:
        find_columns([line], (), Path("my words.txt"))
    _, is_there, command = str(refused.value).partition("; put a tab between the columns: ")
    assert bool(is_there) == (mended is not None)
    if mended:
        subprocess.run(command, shell=True, cwd=tmp_path, check=True)
        assert (tmp_path / "tabs-my words.tsv").read_text() == f"{mended}\n"
