from collections.abc import Iterator
from typing import Any

import polars
import pytest

from allyouneed.corpus.memory import iterate_pairs
from allyouneed.errors import DataError

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
        ("pairs.tsv", r"train must be an iterable of \(source, target\) pairs; got 'pairs.tsv'"),
        (3, "train must be an iterable"),
        ({"train": PAIRS, "test": PAIRS}, "train is a mapping with the keys train, test; give one of its values"),
        ([*PAIRS, "ab"], r"train, row 3 must be \(source, target\), two strings; got 'ab'"),
        ([("a", "b", "c")], r"train, row 1 must be \(source, target\)"),
        ([("a", 3)], 'train, row 1 has 3 under "target"; a string is needed'),
        ([("a", "\ud800")], "train, row 1 has half a character"),
        (PandasFrame(), "train, row 1 has the keys en, id, de; name two of them, data.columns="),
    ],
)
def test_what_is_no_pair_is_refused_by_its_number(pairs: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(iterate_pairs(pairs, name="train"))
