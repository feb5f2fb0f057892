import json
from pathlib import Path

import polars
import pytest

from allyouneed.corpus.pair import Fault, Pair
from allyouneed.corpus.readers import open_pairs
from allyouneed.errors import DataError, MissingExtraError


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
    polars.DataFrame({"en": ["a"], "it": ["b"], "source": ["web"]}).write_parquet(tmp_path / "a.parquet")
    (fault,) = open_pairs("a.parquet", folder=str(tmp_path))
    assert isinstance(fault, Fault)
    assert fault.reason.startswith("has the keys en, it, source; name two of them, data.columns=")


def test_a_star_or_a_bracket_in_a_name_stands_for_itself(tmp_path: Path) -> None:
    for name, word in (("a[bc]*.parquet", "right"), ("ab.parquet", "wrong"), ("a[bc]d.parquet", "wrong")):
        polars.DataFrame({"source": [word], "target": [word]}).write_parquet(tmp_path / name)
    assert list(open_pairs("a[bc]*.parquet", folder=str(tmp_path))) == [Pair("right", "right")]


def test_what_is_no_parquet_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_text("no parquet")
    with pytest.raises(DataError, match="a.parquet could not be read: "):
        list(open_pairs("a.parquet", folder=str(tmp_path)))


def test_a_hub_that_cannot_be_reached_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(where: str) -> None:
        raise polars.exceptions.ComputeError("error sending request\n\nThis error occurred …")

    monkeypatch.setattr("allyouneed.corpus.parquet._scan", unreachable)
    with pytest.raises(DataError, match="^hf://datasets/owner/name could not be read: error sending request$"):
        list(open_pairs("hf://datasets/owner/name"))


def test_without_polars_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "polars", None)
    with pytest.raises(MissingExtraError, match=r"reading hf://.* pip install .*'polars>="):
        list(open_pairs("hf://datasets/owner/name"))
