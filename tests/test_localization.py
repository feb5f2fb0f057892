"""A day of a localization engineer, by the commands of docs/documents.md: memory, project, catalogue, review."""

import json
import re
import shlex
import shutil
import subprocess
from itertools import product
from pathlib import Path

import polib
import pytest

from shell import run_here

PAGE = Path(__file__).parent.parent / "docs/documents.md"
TINY = [
    "model.d_model=32", "model.d_ff=64", "model.heads=2", "model.encoder_layers=1", "model.decoder_layers=1",
    "model.dropout=0", "data.vocab_size=300", "train.steps=170", "train.validate_every=170", "train.warmup=20",
]  # fmt: skip
BRIEF = ["train.steps=90", "train.validate_every=90", "train.warmup=10"]
BOTH = [
    "data.held_out=0", "train.batch_tokens=800", "train.label_smoothing=0", "train.tensorboard=false",
    "train.threads=1",
]  # fmt: skip

VERBS = {"Open": "Apri", "Close": "Chiudi", "Delete": "Elimina", "Save": "Salva", "Print": "Stampa", "Copy": "Copia"}
ENDS = {"": "", ".": ".", " now": " adesso", " again": " di nuovo", " in %s": " in %s"}
NOUNS = [
    ("the file", "il file"), ("the page", "la pagina"), ("the text", "il testo"), ("%s", "%s"),
    ("the folder", "la cartella"), ("the folder", "la directory"),  # a glossary says which it is to be
]  # fmt: skip
CATALOGUE = r"""msgid ""
msgstr ""
"Project-Id-Version: demo 1.0\n"
"Language: \n"
"MIME-Version: 1.0\n"
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\n"

#: menu.c:10
msgid "Open the page"
msgstr ""

#: menu.c:11
#, c-format
msgid "Delete %s again"
msgstr ""

msgctxt "menu"
msgid "Close the folder now"
msgstr ""

msgid "Copy the project"
msgstr ""

msgid "Save the file"
msgstr "Registra il file"

#, c-format
msgid "Print the page in %s"
msgid_plural "Print the text in %s"
msgstr[0] ""
msgstr[1] ""

msgid "Unhappy sphinx. Zebra quartz. Error 42: ask him."
msgstr ""

#~ msgid "Gone"
#~ msgstr "Perso"
"""


def pairs(nouns: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [
        (f"{verb} {noun}{end}", f"{VERBS[verb]} {translation}{ENDS[end]}")
        for verb, (noun, translation), end in product(VERBS, nouns, ENDS)
    ]


def memory(rows: list[tuple[str, str]]) -> str:
    units = "".join(
        f'<tu><tuv xml:lang="en"><seg>{source}</seg></tuv><tuv xml:lang="it"><seg>{target}</seg></tuv></tu>\n'
        for source, target in rows
    )
    return f'<tmx version="1.4"><header srclang="en"/><body>\n{units}</body></tmx>\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the commands of the page, with settings for a tiny model; return their folder."""
    folder = tmp_path_factory.mktemp("localization")
    (folder / "memory.tmx").write_text(memory(pairs(NOUNS)))
    project = pairs([("the project", "il progetto"), ("the page", "la pagina")])
    (folder / "project.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in project))
    (folder / "terms.tsv").write_text("folder\tdirectory\n")
    (folder / "it.po").write_text(CATALOGUE)
    day = re.search(r"^## A day of localization\n.*?^```sh\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert day
    commands = [shlex.split(line, comments=True)[1:] for line in day[1].replace("\\\n", "").splitlines()]
    assert [command[0] for command in commands] == ["train", "train", "translate"]
    for command, settings in zip(commands, ([*TINY, *BOTH], [*BRIEF, *BOTH], []), strict=True):
        result = run_here(*command, *settings, cwd=folder)
        assert result.returncode == 0, result.stderr.decode()
    (folder / "said").write_bytes(result.stderr)
    return folder


def entries(folder: Path) -> dict[str, polib.POEntry]:
    return {entry.msgid: entry for entry in polib.pofile(str(folder / "it.new.po"))}


@pytest.mark.slow
def test_the_catalogue_is_translated_by_memory_project_and_glossary(folder: Path) -> None:
    new = entries(folder)
    assert new["Open the page"].msgstr == "Apri la pagina"
    assert "progetto" in new["Copy the project"].msgstr  # the memory does not have it
    assert "directory" in new["Close the folder now"].msgstr
    assert new["Save the file"].msgstr == "Registra il file"
    assert new["Gone"].obsolete
    assert "Language: it" in (folder / "it.new.po").read_text()


def test_placeholders_are_those_of_the_source(folder: Path) -> None:
    for entry in entries(folder).values():
        for text in entry.msgstr_plural.values() or [entry.msgstr]:
            assert text.count("%s") == entry.msgid.count("%s")


def test_what_to_review_is_fuzzy_printed_and_in_a_file(folder: Path) -> None:
    review = [json.loads(line) for line in (folder / "review.jsonl").read_text().splitlines()]
    fuzzy = {entry.msgid for entry in entries(folder).values() if entry.fuzzy}
    assert fuzzy == {item["source"] for item in review}
    assert "Unhappy sphinx. Zebra quartz. Error 42: ask him." in fuzzy
    assert not fuzzy & {"Open the page", "Save the file", "Delete %s again"}
    printed = (folder / "said").read_text()
    assert "it.new.po: 8 units, 7 translated, 1 kept" in printed
    assert "low confidence" in printed


def test_gettext_accepts_the_catalogue(folder: Path) -> None:
    if msgfmt := shutil.which("msgfmt"):
        subprocess.run([msgfmt, "-c", "-o", "/dev/null", folder / "it.new.po"], check=True, capture_output=True)
