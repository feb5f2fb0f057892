"""What README and docs say is true: snippets run, commands and files exist, links lead somewhere."""

import contextlib
import io
import re
import shlex
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import allyouneed
from allyouneed.apps.cli import app
from allyouneed.config import Recipe
from allyouneed.config.reference import SECTIONS
from conftest import Demo
from docs_programs import pages_of_the_docs, program

ROOT = Path(__file__).parent.parent
HOUSE = ROOT / "src/allyouneed"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *pages_of_the_docs()]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


PYTHON = [
    pytest.param(block, id=f"{page.name}-{number}")
    for page in PAGES
    if page.name != "build.md"
    for number, block in enumerate(blocks(page, "python"), start=1)
] + [pytest.param("\n".join(blocks(ROOT / "docs/walk/build.md", "python")), id="build.md")]


@pytest.fixture(scope="module")
def workshop(demo: Demo) -> Path:
    """Fill a folder as the README supposes: the demo's model, and a few pairs in train.en, train.de, …"""
    for part, pairs in {"train": 1_000, "valid": 10, "test": 10}.items():
        (demo.folder / f"{part}.en").write_text("".join(f"{part} {i} dogs run\n" for i in range(pairs)))
        (demo.folder / f"{part}.de").write_text("".join(f"{part} {i} Hunde rennen\n" for i in range(pairs)))
    (demo.folder / "news.en").write_text("a dog sleeps\n")
    (recipe,) = [block for block in blocks(ROOT / "docs/training.md", "toml") if "valid.en" in block]
    (demo.folder / "my.toml").write_text(recipe)
    return demo.folder


@pytest.mark.slow
@pytest.mark.parametrize("block", PYTHON)
def test_every_python_block_runs_and_prints_what_its_comments_say(block: str, workshop: Path) -> None:
    printed = io.StringIO()
    with contextlib.chdir(workshop), contextlib.redirect_stdout(printed):
        exec(compile(block, "block", "exec"), {"__name__": "block"})
    promised = re.findall(r"^\s*print\(.*\)\s*# (.+)$", block, re.MULTILINE)
    assert printed.getvalue().splitlines() == promised


def test_the_readme_is_read_aloud_in_two_minutes() -> None:
    """At 160 words a minute; code is not read aloud, nor is a link's address."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```|^\|.*?$|\]\([^)]*\)|!\[.*?$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert 100 < len(re.findall(r"\w[\w'’.,/-]*", prose)) <= 320
    assert len(text.splitlines()) <= 110


def test_there_are_blocks_to_run() -> None:
    assert len(PYTHON) >= 3


@pytest.mark.slow
def test_the_commands_of_the_readme_and_of_a_recipe_run(workshop: Path) -> None:
    """Those that train get few steps and a small vocabulary; all else is as printed."""
    recipe = (ROOT / "docs/training.md").read_text(encoding="utf-8").partition("## A recipe")[2].partition("\n## ")[0]
    snippets = [*blocks(ROOT / "README.md", "sh"), *re.findall(r"^```sh\n(.*?)^```", recipe, re.MULTILINE | re.DOTALL)]
    lines = [line for block in snippets for line in block.splitlines()]
    commands = [line.partition("#")[0].strip() for line in lines if line.startswith(("allyouneed ", "echo "))]
    assert len(commands) >= 4
    with contextlib.chdir(workshop):
        for command in commands:
            stdin, _, line = command.rpartition("|")
            line, _, _ = line.partition(">")
            words = shlex.split(line)[1:]
            if words[0] in ("demo", "serve") or "multi30k-en-de" in words:
                continue
            if words[0] == "train":
                words += ["train.steps=2", "data.vocab_size=270"]
            result = CliRunner().invoke(app, words, input=f"{shlex.split(stdin)[1]}\n" if stdin else None)
            assert result.exit_code == 0, (command, result.output)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    text = re.sub(r"^```py\n.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        assert (page.parent / link).exists(), link


def test_every_page_is_in_a_table_of_contents() -> None:
    docs = ROOT / "docs"
    listed = {docs / "index.md"}
    made = {docs / f"reference/{name}.md" for name in program("reference").pages()}
    for index in docs.rglob("index.md"):
        for entry in re.findall(r"^(?:.* <)?([\w/-]+)>?$", "".join(blocks(index, "{toctree}")), re.MULTILINE):
            listed.add(index.parent / f"{entry}.md")
    assert {page for page in pages_of_the_docs() if docs / "make" not in page.parents} | made == listed


def test_the_reference_is_made_with_the_site_and_not_kept() -> None:
    assert "/docs/reference/" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    for page in PAGES:
        assert not re.search(r"\]\([^)]*reference/", page.read_text(encoding="utf-8")), f"{page.name}: only on the site"


def test_the_reference_has_every_public_name() -> None:
    text = program("reference").pages()["api"]
    listed = set(re.findall(r"^\.\. auto(?:class|function):: allyouneed\.(\w+)$", text, re.MULTILINE))
    modules = re.findall(r"^\.\. automodule:: (\S+)$", text, re.MULTILINE)
    assert set(allyouneed.__all__) <= listed.union(*(dir(import_module(module)) for module in modules))


def test_the_readme_counts_the_lines_that_matter() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    counted = re.search(r"is (\d+) lines of Python.* training is (\d+) lines.* decoding \D*(\d+)", text)
    assert counted
    for room, lines in zip(("nn", "train", "decode"), map(int, counted.groups()), strict=True):
        exact = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in (HOUSE / room).glob("*.py"))
        assert lines == pytest.approx(exact, rel=0.05), (room, exact)


def test_the_map_names_every_room_once() -> None:
    text = (ROOT / "docs/house.md").read_text(encoding="utf-8").partition("| room |")[2]
    named = [
        room for line in re.findall(r"^\| (`.*?) \|", text, re.MULTILINE) for room in re.findall(r"`([a-z]+)/?`", line)
    ]
    rooms = {folder.name for folder in HOUSE.iterdir() if (folder / "__init__.py").exists()}
    assert {room: named.count(room) for room in rooms} == dict.fromkeys(rooms, 1)


def test_every_page_of_the_walk_leads_on_and_back() -> None:
    walk = ROOT / "docs/walk"
    index = (walk / "index.md").read_text(encoding="utf-8")
    order = re.findall(r"^\d+\. \[.+\]\((.+)\.md\)$", index, re.MULTILINE)
    assert order == re.findall(r"^([\w-]+)$", blocks(walk / "index.md", "{toctree}")[0], re.MULTILINE)
    assert {f"{name}.md" for name in order} == {path.name for path in walk.glob("*.md")} - {"index.md"}
    pages = {name: (walk / f"{name}.md").read_text(encoding="utf-8").splitlines() for name in order}
    title = {name: lines[0].removeprefix("# ") for name, lines in pages.items()}
    for before, name, after in zip([None, *order], order, [*order[1:], None], strict=False):
        back = [f"[← {title[before]}]({before}.md)"] if before else []
        on = [f"[{title[after]} →]({after}.md)"] if after else []
        assert pages[name][-1] == " · ".join([*back, "[The walk](index.md)", *on])


def test_a_file_of_ours_that_the_walk_names_is_a_link() -> None:
    for page in (ROOT / "docs/walk").glob("*.md"):
        for name in re.findall(r"(?<!\[)`([a-z_]+/[a-z_]+\.py)`", page.read_text(encoding="utf-8")):
            assert not any((floor / name).exists() for floor in (HOUSE, HOUSE / "apps")), f"{page.name}: {name}"


def test_every_target_of_the_makefile_is_in_its_first_line() -> None:
    first, text = (ROOT / "Makefile").read_text().split("\n", 1)
    targets = re.findall(r"^([a-z]+):", text, re.MULTILINE)
    assert set(re.findall(r"make ([a-z]+)", (ROOT / "README.md").read_text())) <= set(targets)
    assert all(target in first for target in targets if target != "format")


def test_every_section_of_a_recipe_is_on_the_page_of_settings() -> None:
    headings = re.findall(r"^##+ `\[+([a-z.]+)\]+`", program("reference").pages()["settings"], re.MULTILINE)
    assert headings == list(SECTIONS)


def test_every_command_and_option_is_on_the_page_of_commands() -> None:
    page = program("reference").pages()["commands"]
    group: Any = typer.main.get_command(app)
    for name, command in group.commands.items():
        part = page.partition(f"\n## allyouneed {name}\n")[2].partition("\n## ")[0]
        assert part, name
        for parameter in command.params:
            if not getattr(parameter, "hidden", False):
                assert all(option in part for option in parameter.opts if option.startswith("--")), (
                    name,
                    parameter.name,
                )


@pytest.mark.parametrize("block", blocks(ROOT / "docs/data.md", "toml"))
def test_the_tables_of_the_data_page_are_settings(block: str) -> None:
    assert Recipe.from_tables(tomllib.loads(block)).data.corpora()
