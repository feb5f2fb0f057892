"""Every whole command of a message, a page of help or of the docs can be parsed, and those that are printed work."""

import ast
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from shell import TINY_DATES, run_here
from spreadsheets import write_xlsx
from texts import GROUP, HOUSE, command_of, options_of, texts


def calls_with_words() -> Iterator[tuple[str, str, list[str]]]:
    """Yield the file, the function and the constant words of each call that makes a command."""
    for file in HOUSE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                if name in ("shell_command", "command_with_extra", "mended_by"):
                    words = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant)]
                    chosen = [word for word in words if isinstance(word, str)]
                    yield from [(str(file.relative_to(HOUSE)), name, chosen)] if chosen else []


def test_the_words_of_commands_that_are_put_together_exist() -> None:
    everywhere = set().union(*(options_of(command_of(name)) for name in ("train", "translate", "adapt", "score")))
    count = 0
    for where, function, words in calls_with_words():
        is_mended = function == "mended_by"
        command = None if is_mended or words[:1] == ["--help"] else command_of(words[0])
        for word in words:
            if re.fullmatch("--[a-z-]+|-[a-z]", word):
                assert word in (options_of(command) if command else everywhere | {"--help"}), (where, word)
                count += 1
    assert count > 20


def lines_to_copy() -> Iterator[tuple[str, str]]:
    """Yield whole commands: lines of code, also in inline code, in the docs, in recipes and in the pages of help."""
    for where, text in texts():
        if where.endswith(".md"):
            blocks = re.findall(r"^```(?:sh|text)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
            lines = [line for block in blocks for line in block.splitlines()] + re.findall(
                r"`(allyouneed [^`]+)`", text
            )
        else:
            lines = [line.strip(" #") for line in text.splitlines() if re.match(r"(#|    )\s+allyouneed ", line)]
        yield from ((where, line) for line in lines if line.startswith("allyouneed "))


def words_of(line: str) -> list[str]:
    words = ["1" if word == "N" else word for word in shlex.split(line, comments=True)[1:]]
    ends = [position for position, word in enumerate(words) if word in ("|", ">", "&&", "<")]
    return words[: ends[0]] if ends else words


def test_whole_commands_can_be_parsed() -> None:
    count = 0
    for where, line in lines_to_copy():
        words = words_of(line)
        if "…" in line or "FORMAT" in line or "[" in line.split("=")[0] or words[0].startswith("-") or len(words) < 2:
            continue
        command = GROUP
        while hasattr(command, "commands"):
            command = command.commands[words.pop(0)]
        if words and re.fullmatch(r"[\w/.][\w/.-]*", words[0]):  # a command by its name alone needs nothing
            command.make_context(command.name, words)
            count += 1
        assert where
    assert count > 80


def proposals(output: str) -> list[list[str]]:
    """Find the commands of this program that a screen proposes, without the installation of extras."""
    found = re.findall(r"(?<![\w`(])(?:\S*python\S* -m )?allyouneed ([a-z]+ [^(\n]*)", output)
    return [shlex.split(line) for line in found]


PAIRS = "".join(f"k.{i},nav,I see {i} dogs in the house,Vedo {i} cani nella casa\n" for i in range(60))


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with a run, and files that lead to refusals."""
    folder = tmp_path_factory.mktemp("workshop")
    assert run_here("train", "dates", *TINY_DATES, cwd=folder).returncode == 0
    (folder / "unclear.csv").write_text(f"Key,Group,Text,Testo\n{PAIRS}")
    (folder / "title.csv").write_text(f"Words of 2026,,,\n,,,\nKey,Group,Text,Testo\n{PAIRS}")
    (folder / "windows.csv").write_bytes("Text,Größe\nDue,x\n".encode("cp1252"))
    rows = [line.split(",") for line in PAIRS.splitlines()]
    write_xlsx(folder / "book.xlsx", {"Words": [["Title"], ["Key", "Group", "Text", "Text"], *rows], "Other": [["x"]]})
    (folder / "pairs.tsv").write_text("1845-01-05\tJanuary 5\n")
    (folder / "keys.json").write_text("no keys")
    return folder


SMALL = [*TINY_DATES[2:], "data.vocab_size=300", "train.threads=1"]
REFUSED: list[list[str]] = [
    ["train", "unclear.csv", *SMALL],
    ["train", "unclear.csv", "--columns", "en,it", *SMALL],
    ["train", "title.csv", *SMALL],
    ["train", "book.xlsx", "--sheet", "Word", *SMALL],
    ["train", "dates", *TINY_DATES],
    ["train", "dates", *TINY_DATES, "train.steps=3"],
    ["train", "dates", *TINY_DATES, "train.steps=3", "--resume"],
    ["train", "reverse", *TINY_DATES, "-o", "runs/dates"],
    ["train", "reverse", *TINY_DATES, "-o", "runs/dates", "--resume"],
    ["train", "dates", *TINY_DATES, "-o", "."],
    ["adapt", "runs/dates", "pairs.tsv", "-o", "runs/dates", "train.steps=2", "train.validate_every=1"],
    ["translate", "runs/dates", "unclear.csv", "-o", "out.csv", "--skip-refused"],
    ["translate", "runs/dates", "book.xlsx", "--column", "Testo", "-o", "out.xlsx", "--skip-refused"],
    ["translate", "runs/dates", "windows.csv", "--column", "Text", "-o", "windows.out.csv", "--skip-refused"],
    ["translate"],
    ["explain", "runs/dates", "1845-01-05", "or", "later"],
    ["keys", "list", "keys.json"],
    ["suggestions", "export", "none.jsonl", "-o", "none.tsv"],
]


@pytest.mark.slow
@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_the_command_in_a_refusal_works(words: list[str], workshop: Path, tmp_path: Path) -> None:
    shutil.copytree(workshop, tmp_path / "copy")
    steps = 0
    while (result := run_here(*words, cwd=tmp_path / "copy")).returncode == 2:
        screen = result.stderr.decode()
        (words,) = proposals(screen) or pytest.fail(f"no command is proposed: {screen}")
        words = words[: words.index("makes")] if "makes" in words else words
        words = ["keys", *words[1:]] if words[0] == "keys" else words
        if words[0] == "serve":
            command_of("serve").make_context("serve", words[1:])
            return
        steps += 1
        assert steps < 4, screen
    assert result.returncode in (0, 3), result.stderr.decode()
    assert steps


@pytest.mark.slow
def test_the_next_steps_of_a_run_work_again_and_again(workshop: Path, tmp_path: Path) -> None:
    """Whatever they write, training anew with --overwrite is possible afterwards, and so are they."""
    folder = shutil.copytree(workshop, tmp_path / "copy")
    for _ in range(2):
        trained = run_here("train", "dates", *TINY_DATES, "--overwrite", cwd=folder)
        assert trained.returncode == 0, trained.stderr.decode()
        steps = proposals(trained.stderr.decode().partition("Next:")[2])
        assert {words[0] for words in steps} >= {"translate", "evaluate", "serve", "explain", "export"}
        for words in steps:
            if words[0] == "serve":
                command_of("serve").make_context("serve", words[1:])
            else:
                result = run_here(*words, cwd=folder)
                assert result.returncode == 0, (words, result.stderr.decode())
