"""Pairs of spreadsheets, which tests/spreadsheets.py writes; the old .xls is one that xlwt wrote."""

import base64
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from allyouneed.data.pair import Pair
from allyouneed.data.readers import describe_columns, open_pairs, read_pairs
from allyouneed.errors import DataError
from spreadsheets import Sheets, write_ods, write_xlsx

pytest.importorskip("python_calamine")

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
    assert '"English" is the source and "Italian" the target' in describe_columns(path)


def test_a_spreadsheet_of_old(tmp_path: Path) -> None:
    path = tmp_path / "a.xls"
    path.write_bytes(lzma.decompress(base64.b64decode(OLD)))
    assert read_pairs(str(path)) == [Pair("a dog", "un cane")]


def test_a_sheet_that_is_not_there_is_refused_with_one_that_is(tmp_path: Path) -> None:
    path = write_xlsx(tmp_path / "a.xlsx", SHEETS)
    with pytest.raises(DataError, match='a.xlsx has no sheet "Word"; it has Phrases, Words & more') as refused:
        list(open_pairs(str(path), sheet="Word"))
    assert refused.value.options == ("--sheet", "Words & more")


@pytest.mark.parametrize("name", ["a.xlsx", "a.xls", "a.ods"])
def test_what_is_no_spreadsheet_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("English,Italian\n")
    with pytest.raises(DataError, match=rf"{name} is no spreadsheet that can be read: .*save it again as .xlsx"):
        list(open_pairs(str(tmp_path / name)))


def test_a_sheet_larger_than_the_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("allyouneed.data.spreadsheet.MAX_IN_MEMORY", 100)
    with pytest.raises(DataError, match="when it is unpacked, more than"):
        list(open_pairs(str(write_xlsx(tmp_path / "a.xlsx", SHEETS))))
