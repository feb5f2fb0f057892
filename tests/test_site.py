"""The site as it is built: its weight, its pages in a browser, and a file of ours beside its notes."""

import gzip
import re
import subprocess
import sys
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from accessibility import faults
from chromium_page import LOOKS, open_file
from docs_programs import DOCS, program

sys.path += [str(DOCS), str(DOCS / "make")]
site_pages = import_module("site_pages")
CODE = '''"""A file."""

import math


class Part:
    """Has a note."""

    def forward(self, x):
        y = x
        return y  # ①

    def helper(self):
        first = 1
        second = 2
        return first + second
'''


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site, without a warning, such as about a link that leads to no heading."""
    folder = tmp_path_factory.mktemp("site")
    folders = map(str, (tmp_path_factory.mktemp("trees"), DOCS, folder))
    command = [sys.executable, "-m", "sphinx", "-qW", "--keep-going", "-d", *folders]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    assert all((folder / f"reference/{name}.html").exists() for name in program("reference").pages())
    return folder


def test_the_site_and_its_first_page_are_light(site: Path, browser: Browser) -> None:
    """The site as hosts send it, compressed; the first page with all that it loads, as it is."""
    assert sum(len(gzip.compress(file.read_bytes())) for file in site.rglob("*") if file.is_file()) < 2e6
    loaded = [site / "index.html"]
    page = browser.new_page()
    page.on("request", lambda one: loaded.append(Path(one.url.removeprefix("file://").partition("?")[0])))
    page.goto((site / "index.html").as_uri(), wait_until="networkidle")
    page.close()
    assert len(set(loaded)) > 5
    assert sum(file.stat().st_size for file in set(loaded)) < 1e6


WALK = sorted(path.stem for path in (DOCS / "walk").glob("*.md"))


@pytest.mark.parametrize("name", ["index", *(f"walk/{name}" for name in WALK)])
def test_a_page_is_accessible_and_nothing_of_it_is_cut(site: Path, browser: Browser, name: str) -> None:
    with open_file(browser, site / f"{name}.html") as page:
        cut = "all => all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.textContent)"
        assert page.locator(".equation, .map").evaluate_all(cut) == []
        for width, dark in LOOKS:
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            page.emulate_media(color_scheme="dark" if dark else "light")
            assert faults(page) == [], (width, dark)


def test_a_note_is_beside_its_line_or_after_it_and_both_light_up(site: Path, browser: Browser) -> None:
    for width in (1280, 390):
        with open_file(browser, site / "walk/3-attention.html", width=width) as page:
            cards: list[Any] = []
            for box in page.locator(".noted").all():
                code, card = (box.locator(name).bounding_box() for name in (".line", ".note"))
                assert code
                assert card
                below_last = cards[-1]["y"] + cards[-1]["height"] if cards else 0
                if width == 390:
                    assert card["y"] == pytest.approx(code["y"] + code["height"], abs=1)
                else:  # beside its line, or as near as the notes before it allow
                    assert card["y"] == pytest.approx(code["y"], abs=1) or below_last < card["y"] < below_last + 20
                    assert card["x"] > code["x"] + code["width"] - 1
                cards.append(card)
            pieces = page.locator(".beside").evaluate(
                "all => [...all.querySelectorAll('pre, summary')].map(one => one.getBoundingClientRect())"
                ".filter(one => one.height).map(({ top, bottom }) => [top, bottom]).sort((a, b) => a[0] - b[0])"
            )
            holes = [after[0] - before[1] for before, after in pairwise(pieces)]
            assert width == 390 or max(holes) < 1
            colour = "one => getComputedStyle(one).backgroundColor"
            line, note = page.locator(".noted .line").first, page.locator(".noted .note").first
            before = line.evaluate(colour)
            note.focus()
            assert line.evaluate(colour) == note.evaluate(colour) != before
            note.blur()
            line.hover()
            assert line.evaluate(colour) == note.evaluate(colour) != before


@pytest.mark.parametrize("width", [1280, 390])
def test_tab_reaches_the_map_the_notes_and_what_is_folded_and_shows_where_it_is(
    site: Path, browser: Browser, width: int
) -> None:
    with open_file(browser, site / "walk/5-masks.html", width=width) as page:
        kinds = [".map a", ".note", ".beside summary"]
        describe = f"""one => ({kinds}.find(kind => one.matches(kind)) || one.tagName) + " "
            + (one.matches("input, body") || getComputedStyle(one).outlineStyle !== "none")"""
        reached: list[str] = []
        while not reached or not reached[-1].startswith("BODY"):
            page.keyboard.press("Tab")
            reached.append(page.locator(":focus, body:not(:has(:focus))").evaluate(describe))
        assert not any(one.endswith("false") for one in reached)
        assert [reached.count(f"{kind} true") for kind in kinds] == [11, 2, 1]


def test_a_file_beside_its_notes_is_whole_and_what_has_no_note_is_folded() -> None:
    pieces = site_pages.annotated(CODE, [[site_pages.nodes.paragraph("", "about y")]])
    text = "".join(piece.astext() for piece in pieces)
    assert [part.partition("</summary>")[0] for part in text.split("<summary>")[1:]] == [
        "2 lines: docstring, imports", "4 lines: helper",
    ]  # fmt: skip
    before, line = text.split('<pre class="line">')
    assert re.sub("<[^>]*>", "", line).split("\n")[0].startswith("        return y  #\N{NO-BREAK SPACE}①")
    assert "about y" in before.partition('<div class="note"')[2]  # so that it can float beside its line
    code = [re.sub("<[^>]*>", "", part.partition("</pre>")[0]) for part in re.split("<pre[^>]*>", text)[1:]]
    assert "".join(code).replace("\N{NO-BREAK SPACE}", " ").split() == CODE.split()
