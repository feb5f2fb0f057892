from pathlib import Path

import pytest

from allyouneed.corpus.pair import Pair
from allyouneed.corpus.po import read_po
from allyouneed.errors import DataError

CATALOGUE = """\
msgid ""
msgstr "Content-Type: text/plain; charset=UTF-8\\n"

msgid "a dog"
msgstr "un cane"

#, fuzzy
msgid "a cat"
msgstr "un cane?"

msgid "%d bird"
msgid_plural "%d birds"
msgstr[0] "%d uccello"
msgstr[1] "%d uccelli"

msgctxt "month"
msgid "May"
msgstr "maggio"

msgctxt "verb"
#| msgid "may?"
msgid "May"
msgstr "potere"

#, fuzzy
#~ msgid "older"
#~ msgstr "più vecchio"

msgid "\\"all\\" \\\\"
msgstr ""
  "\\"tutto\\" \\\\"

#~ msgid "old"
#~ msgstr "vecchio"
"""


def test_messages_are_pairs_and_fuzzy_ones_are_not_translated(tmp_path: Path) -> None:
    (tmp_path / "it.po").write_text(CATALOGUE)
    assert list(read_po(tmp_path / "it.po")) == [
        Pair("a dog", "un cane"),
        Pair("a cat", ""),
        Pair("%d bird", "%d uccello"),
        Pair("%d birds", "%d uccelli"),
        Pair("May", "maggio"),
        Pair("May", "potere"),
        Pair('"all" \\', '"tutto" \\'),
    ]


@pytest.mark.parametrize(("forms", "last"), [(["uno"], "uno"), (["один", "два", "пять"], "пять")])
def test_of_plurals_the_first_form_and_the_last_make_pairs(tmp_path: Path, forms: list[str], last: str) -> None:
    translated = "".join(f'msgstr[{number}] "{form}"\n' for number, form in enumerate(forms))
    (tmp_path / "a.po").write_text(f'msgid "one"\nmsgid_plural "many"\n{translated}')
    assert list(read_po(tmp_path / "a.po")) == [Pair("one", forms[0]), Pair("many", last)]


def test_a_fuzzy_plural_is_not_translated_either(tmp_path: Path) -> None:
    (tmp_path / "a.po").write_text('#, fuzzy\nmsgid "one"\nmsgid_plural "many"\nmsgstr[0] "uno"\nmsgstr[1] "molti"\n')
    assert list(read_po(tmp_path / "a.po")) == [Pair("one", ""), Pair("many", "")]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b'msgid "a"\nmsgstr "b"\nnonsense\n', "it.po is no gettext catalogue: .*line 3"),
        (b'msgid "a"\nmsgstr "\xff"\n', "it.po, line 2 is not UTF-8: byte 0xff at position 9 of the line"),
        (b'msgid "a\nmsgstr "b"\n', "it.po is no gettext catalogue: line 1 has a string that is not closed"),
        (b'msgid "a"\nmsgstr ""\n"b\n', "it.po is no gettext catalogue: line 3 has a string that is not closed"),
        (b'msgid "a"\nmsgstr[0] "b\\"\n', "it.po is no gettext catalogue: line 2 has a string that is not closed"),
        (b'msgid "a \n', "it.po is no gettext catalogue: line 1 has a string that is not closed"),
        (b'msgid "say "a""\nmsgstr "b"\n', "line 1 has .* a quotation mark without a backslash"),
    ],
)
def test_what_is_no_catalogue_is_refused_by_line(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "it.po").write_bytes(content)
    with pytest.raises(DataError, match=why):
        list(read_po(tmp_path / "it.po"))
