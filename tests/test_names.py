"""What a page, a docstring or a message names exists: commands, options, settings, functions and files."""

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

from allyouneed.config.reference import SECTIONS
from texts import GROUP, HOUSE, ROOT, command_of, options_of, texts

PROGRAMS = [file for folder in ("benchmarks", "docs", "examples", "deploy") for file in (ROOT / folder).rglob("*.py")]

# Of other programs and libraries, each named where we say how it differs or is used.
OF_OTHERS = {
    "--build-arg", "--check", "--export", "--export-dynamic", "--find-links", "--follow-tags", "--gpus",
    "--max-restarts", "--model", "--nnodes", "--no-", "--no-install-recommends", "--nproc-per-node", "--python",
    "--quiet", "--rdzv-backend", "--rdzv-endpoint", "--strict", "--strip-all", "--torch-backend",
    "BilingualDataset", "DecoderLayer", "EncoderDecoder", "EncoderLayer", "FeedForwardBlock", "InputEmbeddings",
    "LabelSmoothing", "LayerNormalization", "MultiHeadAttentionBlock", "MultiHeadedAttention", "NoamOpt",
    "PositionwiseFeedForward", "ProjectionLayer", "ResidualConnection", "ScaledDotProductAttention",
    "SublayerConnection", "build_transformer", "greedy_decode", "subsequent_mask",
    "FORWARDED_ALLOW_IPS", "all_reduce", "disable_unk", "log_metrics", "num_hypotheses", "preserve_formatting",
}  # fmt: skip
PLACEHOLDERS = {"forward_pass", "read_KIND", "write_FORMAT", "libretranslate_"}
FILES_OF_A_READER = {"my.toml", "small.toml", "recipe.toml", "table.md"}  # or of a run
ENDINGS = {
    "bin", "ckpt", "de", "en", "gz", "ids", "it", "json", "md", "multiref", "npz", "pkl", "py", "safetensors", "toml",
    "tsv", "yml",
}  # fmt: skip

PROPOSAL = re.compile(r"\ballyouneed ((?:keys |suggestions )?[a-z]+)\b([^`;:)\n]*)")
NOT_COMMANDS = {"reads", "runs"}  # "this version of allyouneed reads"


def wrong_commands(text: str) -> Iterator[str]:
    """Yield the commands in a text that do not exist, and the options that their commands do not have."""
    for name, rest in PROPOSAL.findall(text):
        if name.split()[0] not in GROUP.commands:
            yield from [] if name in NOT_COMMANDS else [name]
            continue
        command = command_of(name.split()[0])
        if hasattr(command, "commands"):
            yield from [] if name.split()[1:] and name.split()[1] in command.commands else [name]
            continue
        known = options_of(command)
        before_another_sentence = re.split(r"[.,] | makes | and ", rest)[0]
        yield from (
            f"{name} {word}" for word in re.findall(r"(?<!\S)--[a-z-]+", before_another_sentence) if word not in known
        )


@cache
def known_options() -> set[str]:
    """Return the options of every command, and of the programs outside the package."""
    commands = [inner for one in GROUP.commands.values() for inner in (one, *getattr(one, "commands", {}).values())]
    sources = (file.read_text(encoding="utf-8") for file in PROGRAMS)
    written = {word for source in sources for word in re.findall(r"[\"'](--[a-z][a-z-]+)[\"']", source)}
    return written.union(*map(options_of, (GROUP, *commands)))


def wrong_options(text: str) -> Iterator[str]:
    """Yield the options in a text that no program has."""
    for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", text):
        if option not in known_options() and option not in OF_OTHERS:
            yield option


def wrong_settings(text: str) -> Iterator[str]:
    """Yield settings such as train.steps that their section does not have; in code an attribute will do."""
    for section, key in re.findall(r"(?<![\w./-])(data|model|train|decode|clean)\.([a-z]\w*)\b(?![\w(/.-])", text):
        keys = {field.name for field in fields(SECTIONS[section])} | ENDINGS
        if key not in keys and key not in known_names("docs"):
            yield f"{section}.{key}"


@cache
def known_names(*others: str) -> set[str]:
    """Return whatever the package and other folders call by a name: functions, classes, attributes, modules, keys."""
    names = {part for file in HOUSE.rglob("*") for part in (file.stem, file.suffix[1:])}
    scripts = (file.read_text(encoding="utf-8") for file in HOUSE.rglob("*.js"))
    functions = (re.findall(r"\bfunction (\w+)", script) for script in scripts)
    return names.union(*functions, names_in(HOUSE), *(names_in(ROOT / folder) for folder in others))


@cache
def names_in(folder: Path) -> set[str]:
    """Return the names of functions, classes, attributes, modules and keys in the Python files of a folder."""
    names = set[str]()
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case (
                    ast.FunctionDef(name=name)
                    | ast.AsyncFunctionDef(name=name)
                    | ast.ClassDef(name=name)
                    | ast.Attribute(attr=name)
                    | ast.Name(id=name)
                    | ast.arg(arg=name)
                    | ast.keyword(arg=str(name))
                    | ast.alias(name=name)
                    | ast.ImportFrom(module=str(name))
                ):
                    names |= set(name.split("."))
                case ast.Constant(value=str(word)) if re.fullmatch(r"[\w.-]+", word):
                    names |= {word, *word.split(".")}
    return names


def wrong_names(text: str) -> Iterator[str]:
    """Yield names in backticks, of several words or with brackets, that nothing has."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    for code in re.findall(r"`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*(?:\([^`\n]*\))?)`", prose):
        name = code.partition("(")[0]
        if re.search(r"_|\(|\.|[a-z][A-Z]", code) and not re.fullmatch(r"ALLYOUNEED_\w+", name):
            parts = [part for part in name.split(".") if part]
            known = known_names("benchmarks", "docs", "examples", "tests")
            others = OF_OTHERS | PLACEHOLDERS | ENDINGS
            if not all(part in known or part in others for part in parts):
                yield code


@cache
def known_files() -> list[str]:
    """List the files of the package, its docs, tests, examples and benchmarks, each after a slash."""
    folders = ("src", "docs", "tests", "examples", "benchmarks", "deploy")
    return [f"/{file.relative_to(ROOT)}" for folder in folders for file in (ROOT / folder).rglob("*.*")] + [
        f"/{file.name}" for file in ROOT.glob("*.*")
    ]


def wrong_files(text: str) -> Iterator[str]:
    """Yield files of code, recipes and pages that are named by the end of their path, and do not exist."""
    text = re.sub(r"^```py\n.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    for name in re.findall(r"(?<![\w/.-])((?:[a-z_]+/)*[a-z_]+\.(?:py|toml|md|c|h|js))\b", text):
        is_of_a_reader = name.startswith("runs/") or name.rpartition("/")[2] in FILES_OF_A_READER
        if not is_of_a_reader and not any(file.endswith(f"/{name}") for file in known_files()):
            yield name


KINDS: dict[str, Callable[[str], Iterable[str]]] = {
    "command": wrong_commands, "option": wrong_options, "setting": wrong_settings, "name": wrong_names,
    "file": wrong_files,
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_named_exists(kind: str) -> None:
    told = [(where, text) for where, text in texts() if kind == "command" or not where.endswith((".js", ".html"))]
    assert sorted({(where, wrong) for where, text in told for wrong in KINDS[kind](text)}) == []


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("command", "allyouneed trian a.tsv"),
        ("command", "with `allyouneed train --overwite`"),
        ("command", "allyouneed keys ad"),
        ("option", "choose another one with --ouput"),
        ("setting", "set train.stepz=3"),
        ("setting", "`model.d_modle` must be even"),
        ("name", "see `read_tsv`"),
        ("name", "`Translatr.load(folder)`"),
        ("name", "`allyouneed.nn.atention`"),
        ("file", "as in `nn/atention.py`"),
        ("file", "the table of measured/resutls.md"),
    ],
)
def test_a_wrong_name_is_seen(kind: str, text: str) -> None:
    assert len([*KINDS[kind](text)]) == 1
