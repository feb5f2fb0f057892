"""Whatever comes in, a command succeeds or says in one line why not: no traceback, no hang.

Each test tries a few dozen cases, the same at every call. FUZZ=5000 tries that many others:

    FUZZ=5000 pytest tests/test_fuzz.py -k options
"""

import bz2
import contextlib
import gzip
import io
import lzma
import os
import shutil
import signal
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from types import FrameType
from typing import Any, Literal, get_args, get_origin

import polars
import pytest
import tomli_w
import torch
import typer.main
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from allyouneed.apps.cli import app
from allyouneed.apps.documents import DocumentOptions, UnitTranslation, read_document
from allyouneed.config import Recipe
from allyouneed.data.readers import open_pairs
from allyouneed.errors import AllYouNeedError, ConfigError, DocumentError
from allyouneed.text.lines import read_lines
from bundles import strip_checksums
from runs import TINY
from shell import run_here

SECONDS = 20  # for one case
TRIES = int(os.environ.get("FUZZ", "0"))


def tried(times: int) -> settings:
    """Make a hypothesis profile: the same `times` cases at every call, or as many others as FUZZ says."""
    return settings(
        max_examples=TRIES or times, derandomize=not TRIES, database=None, deadline=None,
        phases=set(Phase) - {Phase.explain}, suppress_health_check=list(HealthCheck),
    )  # fmt: skip


class HungError(BaseException):
    """Beyond `Exception`, so that no part of the program takes it for its own."""


@contextlib.contextmanager
def bounded() -> Iterator[None]:
    def hung(number: int, frame: FrameType | None) -> None:
        raise HungError(f"longer than {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, hung)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def ends_well(*words: object, stdin: bytes = b"", cwd: Path) -> int:
    with bounded():
        result = run_here(*words, stdin=stdin, cwd=cwd)
    torch.set_flush_denormal(False)
    error_lines = result.stderr.decode().splitlines()
    if words[0] == "check" and result.returncode == 1:  # a model may be unsound
        return 1
    if "--skip-refused" in words and result.returncode == 3:  # a line may be left out
        return 3
    assert result.returncode in (0, 2), (words, error_lines)
    if result.returncode == 2:
        assert error_lines[-1].startswith("allyouneed: "), (words, error_lines)
        assert sum(line.startswith("allyouneed: ") for line in error_lines) == 1, error_lines
    assert not any("Traceback" in line for line in error_lines), error_lines
    return result.returncode


# --- recipes and overrides

SECTIONS: dict[str, Any] = {section.name: section.type for section in fields(Recipe)}
KINDS = {(section, known.name): known.type for section, kind in SECTIONS.items() for known in fields(kind)}
KEYS = list(KINDS)

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
ODD_NUMBERS = [0, 1, 2, 3, 7, -1, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 10**12, 10**400]
ODD_FLOATS = [0.0, 0.5, 1.0, -0.0, 2.5, -1.0, 1e-300, 1e308, 5e-324, float("inf"), float("-inf"), float("nan")]
CHOICES = [choice for kind in KINDS.values() if get_origin(kind) is Literal for choice in get_args(kind)]
ODD_WORDS = ["", ".", "..", "/", ":", "a\0b", "\n", "é" * 300, "dates:train", "dates:", "/dev/null", "nowhere"]
PLAIN = st.one_of(
    st.sampled_from(ODD_NUMBERS), st.sampled_from(ODD_FLOATS), st.floats(0, 2), st.integers(0, 40), st.booleans(),
    st.sampled_from(CHOICES), st.sampled_from(ODD_WORDS), WORDS,
)  # fmt: skip
VALUES = st.one_of(PLAIN, st.lists(PLAIN, max_size=3), st.dictionaries(WORDS, PLAIN, max_size=2))


def fitting(kind: Any) -> st.SearchStrategy[Any]:
    """Draw values of a setting's type, so that most runs begin."""
    if get_origin(kind) is Literal:
        return st.sampled_from(get_args(kind))
    if kind is float:
        return st.one_of(st.floats(0, 2), st.sampled_from([1e-300, 1e308]))
    return {bool: st.booleans(), int: st.integers(0, 40)}.get(kind, PLAIN)


NAMES = st.one_of(st.sampled_from(KEYS), st.tuples(st.sampled_from([*SECTIONS, "modle", ""]), WORDS))
SETTINGS = st.one_of(
    st.sampled_from(KEYS).flatmap(lambda name: st.tuples(st.just(name), fitting(KINDS[name]))),
    st.tuples(NAMES, VALUES),
)


def sizes_are_small(section: str, key: str, value: object) -> bool:
    """Leave out what is allowed but takes long: large models, many updates."""
    small = {"steps": 40, "d_model": 64, "d_ff": 64, "heads": 64, "encoder_layers": 7, "decoder_layers": 7}
    small |= {"max_length": 2**12, "d_k": 64, "d_v": 64}
    return not (section in ("model", "train") and key in small and isinstance(value, int) and value > small[key])


PAIRS = "".join(f"{word} {word[::-1]}\t{word[::-1]} {word}\n" for word in map(str, range(100, 160)))


def tiny() -> dict[str, dict[str, Any]]:
    tables = TINY.tables()
    train = {
        "steps": 3,
        "validate_every": 2,
        "average_checkpoints": 1,
        "validate_samples": 2,
        "tensorboard": False,
        "threads": 1,
        "warmup": 1,
    }
    return {
        "data": {"train": "pairs.tsv", "held_out": 0.3, "vocabulary": "characters"},
        "model": tables["model"],
        "train": {**tables["train"], **train},
    }


@tried(150)
@given(changes=st.lists(SETTINGS, min_size=1, max_size=4))
def test_a_recipe_of_any_values_is_read_or_refused_and_survives_being_written(changes: list[Any]) -> None:
    tables: dict[str, Any] = {}
    for (section, key), value in changes:
        tables.setdefault(section, {})[key] = value
    with contextlib.suppress(ConfigError):
        recipe = Recipe.from_tables(tomllib.loads(tomli_w.dumps(tables)))
        assert Recipe.from_tables(tomllib.loads(tomli_w.dumps(recipe.tables()))) == recipe


OVERRIDES = st.one_of(
    st.builds(lambda name, value: f"{name[0]}.{name[1]}={value}", NAMES, VALUES),
    st.builds(lambda name, text: f"{name[0]}.{name[1]}={text}", NAMES, st.text(max_size=20)),
    st.text(max_size=20),
)


@tried(150)
@given(overrides=st.lists(OVERRIDES, max_size=3), text=st.text(max_size=60))
def test_overrides_and_recipes_of_any_text_are_read_or_refused(
    overrides: list[str], text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_bytes(text.encode(errors="surrogatepass"))
    with contextlib.suppress(ConfigError):
        Recipe.read(path)
    path.write_text("")
    with contextlib.suppress(ConfigError):
        Recipe.read(path, overrides)


@tried(12)
@given(changes=st.lists(SETTINGS, min_size=1, max_size=2))
def test_a_run_of_any_recipe(changes: list[Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    tables, folder = tiny(), tmp_path_factory.mktemp("recipe")
    for (section, key), value in changes:
        if sizes_are_small(section, key, value):
            tables.setdefault(section, {})[key] = value
    (folder / "recipe.toml").write_bytes(tomli_w.dumps(tables).encode())
    (folder / "pairs.tsv").write_text(PAIRS)
    if ends_well("train", "recipe.toml", "--output", "run", cwd=folder) == 0:
        assert Recipe.read(folder / "run/recipe.toml") == Recipe.read(folder / "recipe.toml")


# --- options


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with a bundle of two thousand numbers, and files of every kind that a command reads."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "pairs.tsv").write_text(PAIRS)
    (folder / "recipe.toml").write_bytes(tomli_w.dumps(tiny()).encode())
    (folder / "text").write_text("100 001\n\n" + "1" * 40 + "\n")
    (folder / "terms.tsv").write_text("100\t001\n")
    (folder / "folder").mkdir()
    assert run_here("train", "recipe.toml", "--output", "bundle", cwd=folder).returncode == 0
    torch.set_flush_denormal(False)
    return folder


COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]
CALLS = {
    "translate": ["bundle", "text"],
    "evaluate": ["bundle", "--pairs", "pairs.tsv"],
    "score": ["bundle", "--source", "text", "--target", "text"],
    "explain": ["bundle", "100 001", "--format", "json"],
    "check": ["bundle" if TRIES else "folder"],  # the checks take seconds
    "paper": [],
    "config": ["dates"],
    "info": ["bundle"],
    "report": ["bundle", "--output", "report.html"],
    "export": ["bundle", "exported", "--to", "ctranslate2"],
    "train": ["recipe.toml", "--output", "run"],
    "demo": ["--output", "bundle"],
}
FILES = ["bundle", "text", "pairs.tsv", "terms.tsv", "recipe.toml", "folder", "new", "-", "words"]
ODD = [*map(str, ODD_NUMBERS), *map(str, ODD_FLOATS), *CHOICES, *ODD_WORDS, *FILES]
# What takes long, or goes on until it is stopped.
LONG = {"paper": ("ablate",), "demo": ("output", "overwrite"), "explain": ("form",), "train": ("serve",)}


@st.composite
def calls(draw: st.DrawFn) -> list[str]:
    name = draw(st.sampled_from([*["translate"] * 6, *CALLS]))
    words = [name, *CALLS[name]]
    options = [known for known in COMMANDS[name].params if known.param_type_name == "option"]
    options = [known for known in options if known.name not in ("debug", *LONG.get(name, ()))]
    for known in draw(st.lists(st.sampled_from(options), max_size=3)):
        option = draw(st.sampled_from([*known.opts, *known.secondary_opts]))
        words += [option] if known.is_flag else [option, draw(st.one_of(st.sampled_from(ODD), WORDS))]
    if name not in ("train", "demo") and draw(st.integers(0, 5)) == 0:
        words[draw(st.integers(0, len(words) - 1))] = draw(st.one_of(st.sampled_from(ODD), WORDS))
    return [word.replace("\0", "") for word in words]


@pytest.mark.slow
@tried(30)
@given(words=calls(), stdin=st.binary(max_size=40))
def test_options_of_any_values(
    words: list[str], stdin: bytes, made: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("call") / "made"
    shutil.copytree(made, folder)
    if words:
        ends_well(*words, stdin=stdin, cwd=folder)


# --- files


def parquet() -> bytes:
    file = io.BytesIO()
    polars.DataFrame({"source": ["a dog", "a cat"], "target": ["un cane", "un gatto"]}).write_parquet(file)
    return file.getvalue()


TSV = b"a dog\tun cane\na cat\tun gatto\n"
CORPORA = {
    "a.tsv": TSV,
    "a.csv": b'source,target\n"a ""dog"", one",un cane\na cat,"un\ngatto"\n',
    "a.jsonl": b'{"source": "a dog", "target": "un cane"}\n{"translation": {"en": "a", "it": "\\ud83d\\ude00"}}\n',
    "a.tmx": b"""<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tmx [<!ENTITY a "b">]>
<tmx version="1.4"><header srclang="en"/><body><tu><tuv xml:lang="en"><seg>a <bpt i="1">x</bpt>dog &a;</seg></tuv>
<tuv xml:lang="it"><seg>un cane</seg></tuv></tu></body></tmx>""",
    "a.po": b"""msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n#, fuzzy\nmsgid "dog"\nmsgstr "cane"\n
msgid "cat"\nmsgid_plural "cats"\nmsgstr[0] "gatto"\nmsgstr[1] "gatti"\n""",
    "a.parquet": parquet(),
    "a.tsv.gz": gzip.compress(TSV),
    "a.tsv.bz2": bz2.compress(TSV),
    "a.tsv.xz": lzma.compress(TSV),
}
ODD_BYTES = [b"\0", b"\n", b"\r", b'"', b"\t", b"{", b"<", b"&", b"[" * 5000, b"9" * 5000, b"NaN", b"1e999", b"-1"]
NO_TEXT = [b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xe2\x80\xa8"]
BYTES = st.one_of(st.binary(max_size=8), st.sampled_from(ODD_BYTES), st.sampled_from(NO_TEXT))
CHANGES = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 40), BYTES), max_size=3)


def changed(content: bytes, changes: list[tuple[float, int, bytes]]) -> bytes:
    """Replace some bytes of `content`, each place given as a share of the whole, by others."""
    for position, length, new in changes:
        start = int(position * len(content))
        content = content[:start] + new + content[start + length :]
    return content


@tried(150)
@given(name=st.sampled_from(list(CORPORA)), changes=CHANGES, cut=st.sampled_from([0, 0, 0, 7, 40]))
def test_a_damaged_corpus_is_read_or_refused(
    name: str, changes: Any, cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / name
    content = changed(CORPORA[name], changes)
    path.write_bytes(content[: len(content) - cut])
    with bounded(), contextlib.suppress(AllYouNeedError):
        list(open_pairs(str(path)))
    with bounded(), contextlib.suppress(AllYouNeedError):
        read_lines(path)


BUNDLE_FILES = ("config.json", "tokenizer.json", "weights.safetensors", "README.md")


@tried(30)
@given(name=st.sampled_from([*BUNDLE_FILES, "SHA256SUMS"]), changes=CHANGES, listed=st.booleans())
def test_a_damaged_bundle_translates_or_is_refused(
    name: str, changes: Any, listed: bool, made: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("bundle")
    for file in (*BUNDLE_FILES, "SHA256SUMS"):
        shutil.copy(made / "bundle" / file, folder)
    if name != "SHA256SUMS" and not listed:
        strip_checksums(folder)
    (folder / name).write_bytes(changed((folder / name).read_bytes(), changes))
    ends_well("translate", folder, stdin=b"100 001\n", cwd=folder)


@tried(12)
@given(terms=CHANGES, text=CHANGES)
def test_a_glossary_and_a_text_of_any_bytes(
    terms: Any, text: Any, made: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("glossary")
    (folder / "terms.tsv").write_bytes(changed(b"100\t001\n10 0\t0 01\n", terms))
    (folder / "text").write_bytes(changed(b"100 001\n\n1\t2\n", text))
    ends_well("translate", made / "bundle", "text", "--glossary", "terms.tsv", "--json", cwd=folder)


# --- documents

DOCUMENTS = {
    "txt": "Dear <b>all</b>,\n\n- a line of text that was wrapped at some\n  width and goes on\n",
    "srt": "1\n00:00:01,000 --> 00:00:02,000\n{\\an8}<i>it is\nlate</i>,\n\n2\n00:00:02,000 --> 00:00:03,000\nAnn.\n",
    "vtt": "WEBVTT\n\nNOTE x\n\n00:01.000 --> 00:02.000 line:0\n<v Ann>a &amp; b\n- c\n",
    "po": 'msgid ""\nmsgstr "Plural-Forms: nplurals=3; plural=n%10;\\n"\n\n#, c-format\nmsgctxt "m"\nmsgid "%d a"\n'
    'msgid_plural ""\n"%d b\\n"\nmsgstr[0] ""\nmsgstr[1] "x"\n\n#~ msgid "c"\n#~ msgstr ""\n',
    "xliff": '<xliff version="1.2"><file><body><trans-unit id="1"><source>a <g id="1">b<x id="2"/></g></source>'
    '<target state="new"/></trans-unit></body></file></xliff>',
    "json": '{"a": ["b \\u00e9", {"c": "<i>d</i>\\n{n}"}], "@e": 1.0}',
    "csv": 'a,b\n"c ""d""\ne",\nf\n',
    "tsv": 'a\tb\n"c\t\n',
    "html": '<html lang="en"><p title="a">b <i>c</i> &amp; d<br>e<script>f</script></p>',
}
SIGNS = st.sampled_from(
    ['"', "\\", "<", ">", "&", "{", "}", "[", "]", ",", ":", "\r", "\n\n", "\t", "msgid", "-->", "\ufeff"]
)
EDITS = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 30), st.one_of(SIGNS, st.text(max_size=3))), max_size=5)


@tried(400)
@given(
    kind=st.sampled_from(sorted(DOCUMENTS)),
    edits=EDITS,
    damage=st.binary(max_size=2),
    language=st.sampled_from(["", "ru"]),
)
def test_a_document_of_any_bytes_is_read_or_refused(
    kind: str, edits: list[tuple[int, int, str]], damage: bytes, language: str
) -> None:
    text = DOCUMENTS[kind]
    for start, length, new in edits:
        text = text[:start] + new + text[start + length :]
    data = text.encode(errors="surrogatepass") + damage
    options = DocumentOptions(target_language=language, column="1", into="3")
    with bounded(), contextlib.suppress(DocumentError):
        document = read_document(data, kind, options)
        assert document.write([None] * len(document.units)) == data
        document.write([UnitTranslation(unit.text, unit.marks, ("?",)) for unit in document.units])
