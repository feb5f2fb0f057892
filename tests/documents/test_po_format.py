"""gettext catalogues: missing translations are filled in, doubtful ones are fuzzy, all else keeps its bytes."""

import io
import shutil
import subprocess
from pathlib import Path

import polib
import pytest
from translate.storage import pypo

from allyouneed.apps.documents import UnitTranslation
from allyouneed.apps.documents.po_format import parse_plural_forms, plural_rule
from allyouneed.errors import DocumentError
from document_checks import translated
from fake_translator import FakeTranslator
from unit_models import answer, identity, read, texts, untouched

CATALOGUE = r"""# Comments of the translators.
#, fuzzy
msgid ""
msgstr ""
"Project-Id-Version: demo\n"
"PO-Revision-Date: 2024-01-01 12:00+0000\n"
"Language: \n"
"Content-Type: text/plain; charset=CHARSET\n"
"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\n"

#. extracted
#: src/a.c:1
#, c-format
msgid "Open %s"
msgstr ""

msgctxt "menu"
msgid "Quit"
msgstr "Esci"

#, fuzzy
#| msgid "Old"
msgid "New"
msgstr "Vecchio"

#, c-format, no-wrap
#| msgid "one"
msgid "%d file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

msgid ""
"\n"
"Usage: demo [FILE]\n"
"  -q, --quiet    say nothing, and write errors to the log file that is named by\n"
"                 its option\n"
msgstr ""

msgid "%d: %s"
msgstr ""

msgid "see <a href=\"x\">help</a>"
msgstr ""

#~ msgid "obsolete"
#~ msgstr "obsoleto"
"""
HELP = (
    "Usage: demo [FILE]\n-q, --quiet\nsay nothing, and write errors to the log file that is named by\nits option",
    "Uso: demo [FILE]\n-q, --quiet\nnon dire niente\ndalla sua opzione",
)
ANSWERS = {
    "Open %s": "Apri %s", "%d file": "%d file", "%d files": "%d file molti", HELP[0]: HELP[1], "see help": "vedi aiuto",
}  # fmt: skip


def test_units_are_what_is_not_translated_yet() -> None:
    document = read("po", CATALOGUE, target_language="it")
    assert texts(document) == list(ANSWERS)
    assert [unit.translation for unit in document.units if unit.translation] == ["Esci", "Vecchio"]
    assert document.units[0].key == "line 14"
    assert untouched(document) == CATALOGUE.encode()


def test_only_what_was_missing_changes() -> None:
    written = answer(read("po", CATALOGUE, target_language="it"), ANSWERS, {"%d files": "?", "Open %s": "?"}).decode()
    changed = CATALOGUE
    for old, new in {
        '"Language: \\n"': '"Language: it\\n"',
        "CHARSET": "UTF-8",
        "nplurals=INTEGER; plural=EXPRESSION;": "nplurals=2; plural=(n != 1);",
        '#, c-format\nmsgid "Open %s"\nmsgstr ""': '#, fuzzy, c-format\nmsgid "Open %s"\nmsgstr "Apri %s"',
        "#, c-format, no-wrap": "#, fuzzy, c-format, no-wrap",
        'msgstr[0] ""\nmsgstr[1] ""': 'msgstr[0] "%d file"\nmsgstr[1] "%d file molti"',
        'option\\n"\nmsgstr ""\n': 'option\\n"\nmsgstr ""\n"\\n"\n"Uso: demo [FILE]\\n"\n'
        '"  -q, --quiet    non dire niente\\n"\n"                 dalla sua opzione\\n"\n',
        '%s"\nmsgstr ""\n\nmsgid "see': '%s"\nmsgstr "%d: %s"\n\nmsgid "see',
        'help</a>"\nmsgstr ""': 'help</a>"\nmsgstr "<a href=\\"x\\">vedi aiuto</a>"',
    }.items():
        assert changed.count(old) == 1
        changed = changed.replace(old, new)
    assert written == changed


def test_other_programs_read_the_same_messages(tmp_path: Path) -> None:
    written = answer(read("po", CATALOGUE, target_language="it"), ANSWERS, {"%d files": "?"})
    entries = {entry.msgid: entry for entry in polib.pofile(written.decode())}
    units = {str(unit.source): unit for unit in pypo.pofile(io.BytesIO(written)).units if unit.source}
    assert units["Open %s"].target == entries["Open %s"].msgstr == "Apri %s"
    assert units["%d file"].target.strings == ["%d file", "%d file molti"]
    assert {source for source, unit in units.items() if unit.isfuzzy()} == {"New", "%d file"}
    assert entries["obsolete"].obsolete
    if msgfmt := shutil.which("msgfmt"):
        (tmp_path / "it.po").write_bytes(written)
        subprocess.run([msgfmt, "-c", "-o", "/dev/null", tmp_path / "it.po"], check=True, capture_output=True)


def test_windows_line_ends_and_a_missing_last_one_are_kept() -> None:
    text = 'msgid "a\\nb"\r\nmsgstr ""\r\n\r\nmsgid "b"\r\nmsgstr ""'
    document = read("po", text)
    assert untouched(document) == text.encode()
    assert answer(document, str.upper, {"a\nb": "?"}).decode() == (
        '#, fuzzy\r\nmsgid "a\\nb"\r\nmsgstr "A\\nB"\r\n\r\nmsgid "b"\r\nmsgstr "B"'
    )


def test_all_escapes_of_c_and_all_line_ends_are_read_and_kept() -> None:
    text = r"""
# a comment \033
msgid "\033[1mBold\x1b[0m \a \"x\" C:\\new \\033 caf\303\251"
msgstr ""

msgid "one\u2028two"
msgstr ""

msgid "\042quoted\042"
msgstr "fatto\007"
""".replace(r"\u2028", "\u2028")
    document = read("po", text)
    assert [unit.text for unit in document.units] == [
        '\x1b[1mBold\x1b[0m \a "x" C:\\new \\033 café', "one\u2028two", '"quoted"',
    ]  # fmt: skip
    assert document.units[2].translation == "fatto\a"
    assert untouched(document) == text.encode()
    written = identity(document).decode()
    assert 'msgstr "\x1b[1mBold\x1b[0m \\a \\"x\\" C:\\\\new \\\\033 café"\n' in written
    assert 'msgid "one\u2028two"\nmsgstr "one\u2028two"\n' in written
    assert [unit.translation for unit in read("po", written).units] == [unit.text for unit in document.units[:2]] + [
        "fatto\a"
    ]


def test_long_translations_are_wrapped_as_gettext_wraps_them() -> None:
    text = 'msgid "x"\nmsgstr ""\n'
    sentence = " ".join(["parola"] * 12)
    assert answer(read("po", text), {"x": sentence}).decode() == (
        'msgid "x"\nmsgstr ""\n"' + "parola " * 11 + '"\n"parola"\n'
    )
    unwrapped = 'msgid "a"\nmsgstr "' + "word " * 20 + '"\n\n' + text
    assert f'msgstr "{sentence}"' in answer(read("po", unwrapped), {"x": sentence}).decode()


def test_a_plural_message_of_icu_is_left_untranslated_rather_than_copied() -> None:
    messages = "{n, plural, one {# file} other {{n} files}}", "a", "{0}"
    text = "\n".join(f'msgid "{message}"\nmsgstr ""\n' for message in messages)
    document = read("po", text)
    assert texts(document) == ["a"]
    assert [entry.msgstr for entry in polib.pofile(answer(document, {"a": "b"}).decode())] == ["", "b", "{0}"]


def plural_message(language: str, singular: str = "%d file") -> str:
    header = f'msgid ""\nmsgstr "Language: {language}\\nContent-Type: text/plain; charset=UTF-8\\n"\n\n'
    return header + f'msgid "{singular}"\nmsgid_plural "%d files"\nmsgstr[0] ""\nmsgstr[1] ""\n'


@pytest.mark.parametrize(
    ("language", "singular", "sources"),
    [
        ("it", "%d file", ["%d file", "%d files"]),
        ("it", "one file", ["one file", "%d files"]),
        ("ja", "%d file", ["%d files"]),  # its only form is for every number
        ("ru", "%d file", ["%d file", "%d files", "%d files"]),
        ("ru", "one file", ["%d files", "%d files", "%d files"]),  # the first form is for 21 too
        ("tlh", "%d file", ["%d file", "%d files"]),  # not known: the forms that the message has
    ],
)
def test_plural_forms_are_those_of_the_target_language(language: str, singular: str, sources: list[str]) -> None:
    document = read("po", plural_message(language, singular))
    assert texts(document) == sources
    (entry,) = polib.pofile(identity(document).decode())
    assert list(entry.msgstr_plural.values()) == sources


def test_forms_that_cannot_be_told_apart_are_to_be_reviewed() -> None:
    reasons = [unit.reasons for unit in read("po", plural_message("ru")).units]
    assert reasons[0] == ()
    assert reasons[1] == reasons[2]
    assert "plural forms" in reasons[1][0]


def test_a_plural_form_that_is_there_is_kept() -> None:
    text = plural_message("it").replace('msgstr[0] ""', 'msgstr[0] "un file"')
    (entry,) = polib.pofile(answer(read("po", text), {"%d files": "%d documenti"}).decode())
    assert entry.msgstr_plural == {0: "un file", 1: "%d documenti"}


def test_a_catalogue_is_read_in_its_charset() -> None:
    text = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=ISO-8859-1\\n"\n\nmsgid "Füße"\nmsgstr ""\n'
    data = text.encode("latin-1")
    document = read("po", data)
    assert texts(document) == ["Füße"]
    assert answer(document, {"Füße": "Pié"}) == data[: -len(b'""\n')] + '"Pié"\n'.encode("latin-1")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe\xff", "UTF-16-LE, .*line 1"),
        (b'msgid "\xff"\nmsgstr ""\n', "UTF-8, .*line 1; convert"),
        (b'msgid "a"\nnonsense\n', "line 2"),
        (b'msgstr[x] "a"\n', "gettext catalogue"),
        (b'msgid "a\nmsgstr ""\n', "line 1"),
        (b'"Content-Type: text/plain; charset=no-such\\n"', "'no-such'"),
    ],
)
def test_what_is_no_catalogue_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        read("po", content)


@pytest.mark.parametrize(
    "catalogue",
    [
        'msgid "first"\nmsgstr ""\n\nmsgid ""\nmsgstr "Language: it\\n"\n\nmsgid "last"\nmsgstr ""\n',
        'msgid "first"\nmsgstr ""\n\nmsgctxt "x"\nmsgid ""\nmsgstr "keep"\n\nmsgid "last"\nmsgstr ""\n',
    ],
    ids=["a header that is not first", "an empty message with a context"],
)
def test_no_translation_goes_where_there_is_no_text(catalogue: str) -> None:
    written = translated(catalogue.encode(), "po").decode()
    assert 'msgid "first"\nmsgstr "FIRST"' in written
    assert 'msgid "last"\nmsgstr "LAST"' in written
    assert "Language: it" in written or 'msgstr "keep"' in written


@pytest.mark.parametrize(
    ("language", "numbers", "forms"),
    [
        ("it", (0, 1, 2, 21), (1, 0, 1, 1)),
        ("fr", (0, 1, 2), (0, 0, 1)),
        ("ja", (0, 1, 2), (0, 0, 0)),
        ("ru", (1, 2, 5, 11, 21, 22, 25, 111), (0, 1, 2, 2, 0, 1, 2, 2)),
        ("pl", (1, 2, 5, 12, 21, 22), (0, 1, 2, 2, 2, 1)),
        ("cs", (1, 2, 5, 22), (0, 1, 2, 2)),
        ("sl", (1, 2, 3, 5, 101), (0, 1, 2, 3, 0)),
        ("ar", (0, 1, 2, 3, 11, 100, 103), (0, 1, 2, 3, 4, 5, 3)),
    ],
)
def test_the_form_of_a_number(language: str, numbers: tuple[int, ...], forms: tuple[int, ...]) -> None:
    plurals = parse_plural_forms(plural_rule(language) or "")
    assert plurals is not None
    assert tuple(map(plurals.form, numbers)) == forms


def test_a_region_has_the_rule_of_its_language_unless_it_has_its_own() -> None:
    assert plural_rule("de_AT") == plural_rule("de-CH") == plural_rule("de")
    assert plural_rule("pt_BR") == plural_rule("pt-br") == plural_rule("fr") != plural_rule("pt")
    assert plural_rule("tlh") is plural_rule("") is None


@pytest.mark.parametrize(
    "header",
    [
        "", "nplurals=INTEGER; plural=EXPRESSION;", "nplurals=2; plural=n>1 ? 2 : 0;", "nplurals=2; plural=1/n;",
        "nplurals=2; plural=(((n;", f"nplurals=2; plural={'(' * 400}n{')' * 90};", "nplurals=2; plural=n+" + "n+" * 999,
    ],
)  # fmt: skip
def test_what_is_no_rule_is_none(header: str) -> None:
    assert parse_plural_forms(header) is None


def test_the_numbers_of_a_form() -> None:
    plurals = parse_plural_forms(plural_rule("ru") or "")
    assert plurals is not None
    assert plurals.numbers(0)[:4] == [1, 21, 31, 41]


def test_apostrophes_of_message_formats_are_doubled_and_read_as_one() -> None:
    model = FakeTranslator(lambda word: f"l'{word}" if word == "image" else word)
    messages = b'#, java-format\nmsgid "It isn\'\'t the image {0}"\nmsgstr ""\n'
    catalogue = translated(messages, "po", model)
    assert model.texts == ["It isn't the image {0}"]
    assert b"msgstr \"It isn''t the l''image {0}\"" in catalogue
    assert b"fuzzy" not in catalogue


def test_what_apostrophes_quote_in_a_message_format_is_fuzzy_if_their_number_changes() -> None:
    messages = b'#, java-format\nmsgid "Write \'{0}\' here {0}"\nmsgstr ""\n'
    assert b"fuzzy" not in translated(messages, "po")
    assert b"fuzzy" in translated(messages, "po", FakeTranslator(lambda word: word.replace("here", "l'here")))


@pytest.mark.parametrize("flag", [b"", b"#, no-java-format\n", b"#, c-format\n"])
def test_apostrophes_stay_where_no_flag_says_that_they_quote(flag: bytes) -> None:
    catalogue = translated(flag + b'msgid "the image"\nmsgstr ""\n', "po", FakeTranslator(lambda word: f"l'{word}"))
    assert b"msgstr \"l'the l'image\"" in catalogue


@pytest.mark.parametrize(
    ("flag", "message", "translation"),
    [("c", "of %s and %d", "of %d and %s"), ("scheme", "a ~a file", "a ~s file"), ("sh", "a $name", "a $nome")],
)
def test_arguments_that_may_not_fit_their_format_are_fuzzy(flag: str, message: str, translation: str) -> None:
    document = read("po", f'#, {flag}-format\nmsgid "{message}"\nmsgstr ""\n'.encode())
    assert b"fuzzy" in document.write([UnitTranslation(translation)])
    assert b"fuzzy" not in document.write([UnitTranslation(message)])
