"""Translated catalogues, checked by gettext itself: what is not marked as fuzzy passes `msgfmt -c`."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from allyouneed.apps.documents import UnitTranslation
from document_checks import read, translated
from fake_translator import FakeTranslator

HEADER = (
    'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n"Language: it\\n"\n'
    '"Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n\n'
)
MESSAGES = {
    "c": "The %s has %d lines", "objc": "File %@ has %d lines", "c++": "File {} has {:d}", "rust": "File {} and {name}",
    "python": "%(name)s has %(n)d files", "python-brace": "User {name} has {n}", "java": "User {0} opens {1}",
    "java-printf": "File %1$s has %2$d", "csharp": "User {0} with {1}", "javascript": "Of %s has %d",
    "scheme": "The ~a file ~s", "lisp": "A ~a file ~s", "elisp": "The %s file %d", "librep": "The %s is here",
    "sh": "File $name now", "sh-printf": "File %s now", "awk": "All %s %d files", "lua": "Some %s %d", "go": "Go %s %d",
    "object-pascal": "Pascal %s %d", "modula2": "Modula %s", "d": "D %s %d", "ocaml": "Caml %s %d",
    "smalltalk": "Talk %1 %2", "qt": "Qt %1 with %2", "qt-plural": "Qt %n files", "kde": "Desktop %1 is",
    "kde-kuit": "<filename>%1</filename> is", "boost": "Boost %1% and %2%", "tcl": "Tcl %s %d", "perl": "Perl %s %d",
    "perl-brace": "Perl {name} is", "php": "Php %s %d", "gcc-internal": "Gcc %s %d", "gfc-internal": "Gfc %s %d",
    "ycp": "Yast %1 %2",
}  # fmt: skip
CHANGES: dict[str, Callable[[str], str]] = {
    "nothing": lambda word: word,
    "a sign less": lambda word: word.replace("%", "", 1),
    "apostrophes": lambda word: f"l'{word}",
    "capitals": str.upper,
    "another conversion": lambda word: word.replace("s", "d"),
    "another name": lambda word: word.replace("name", "nome"),
    "100%": lambda word: f"{word} 100%",
    "a brace": lambda word: f"{word}{{",
    "a tilde": lambda word: f"{word}~",
}


def msgfmt(path: Path, catalogue: bytes) -> str:
    """Return the errors of `msgfmt -c`; it warns of fields of the header that a template fills in later."""
    path.write_bytes(catalogue)
    result = subprocess.run(
        ["msgfmt", "-c", "-o", path.with_suffix(".mo"), path], capture_output=True, text=True, check=False
    )
    return result.stderr if result.returncode else ""


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("turned", [False, True])
def test_every_format_of_gettext_passes_msgfmt_or_is_fuzzy(
    tmp_path: Path, change: Callable[[str], str], turned: bool
) -> None:
    """Whatever the model writes: here nothing but the format itself speaks against it."""
    messages = (f'#, {name}-format\nmsgid "{text}"\nmsgstr ""\n\n' for name, text in MESSAGES.items())
    document = read((HEADER + "".join(messages)).encode(), "po")
    translations = []
    for unit in document.units:
        words = [change(word) for word in unit.text.split()]
        text = " ".join(words[::-1] if turned else words)
        translations.append(UnitTranslation(text if not unit.marks else unit.text, unit.marks))
    catalogue = document.write(translations)
    assert not msgfmt(tmp_path / "translated.po", catalogue)
    if change is CHANGES["nothing"] and not turned:
        assert b"fuzzy" not in catalogue


@pytest.mark.slow
def test_apostrophes_of_message_formats_pass_msgfmt_without_being_fuzzy(tmp_path: Path) -> None:
    messages = "".join(
        f'#, java-format\nmsgid "The {noun} of {{0}} isn\'\'t open"\nmsgstr ""\n\n' for noun in ("image", "island")
    )
    catalogue = translated(
        (HEADER + messages).encode(), "po", FakeTranslator(lambda word: f"l'{word}" if word.isalpha() else word)
    )
    assert b"l''image" in catalogue
    assert b"isn''t" in catalogue
    assert b"fuzzy" not in catalogue
    assert not msgfmt(tmp_path / "translated.po", catalogue)
