"""The files of the page: what is served, what they refer to, and how heavy they are."""

import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import allyouneed
from allyouneed.apps.explain.component import explanation_markup, explanation_script, explanation_style

STATIC = Path(allyouneed.__file__).parent / "apps/serve/static"
FILES = sorted(STATIC.iterdir())


def test_the_page_and_each_file_are_served(client: TestClient) -> None:
    page = (STATIC / "index.html").read_text("utf-8").replace("<!-- explanation -->", explanation_markup())
    made = {"index.html": page, "explain.js": explanation_script(), "explain.css": explanation_style()}
    assert client.get("/").text == page
    expected = {".css": "text/css", ".html": "text/html", ".js": "text/javascript", ".svg": "image/svg+xml"}
    for name in {file.name for file in FILES} | made.keys():
        answer = client.get(f"/static/{name}")
        assert answer.text == (made.get(name) or (STATIC / name).read_text("utf-8"))
        assert answer.headers["Content-Type"].startswith(expected[Path(name).suffix])


def test_a_browser_loads_a_file_again_only_if_it_changed(client: TestClient) -> None:
    first = client.get("/static/main.js")
    again = client.get("/static/main.js", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert client.get("/static/main.js", headers={"If-None-Match": '"another"'}).status_code == 200


@pytest.mark.parametrize("name", ["missing.js", "..%2Fweb_page.py", "%2Fetc%2Fpasswd", "__init__.py"])
def test_nothing_else_is_served(client: TestClient, name: str) -> None:
    assert client.get(f"/static/{name}").status_code == 404


def test_the_page_is_light() -> None:
    assert sum(file.stat().st_size for file in FILES) < 150_000


def test_its_pictures_in_the_docs_are_light() -> None:
    page = Path(__file__).parents[2] / "docs/serving.md"
    pictures = re.findall(r"\]\((pictures/[\w.-]+)\)", page.read_text(encoding="utf-8"))
    assert len(pictures) == 2
    assert all((page.parent / picture).stat().st_size < 150_000 for picture in pictures)


def test_nothing_comes_from_a_network_or_stands_inline() -> None:
    for file in FILES:
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"(?<!xmlns=\")https?://(?!www\.w3\.org/2000/svg)", text), file.name
        if file.suffix == ".html":
            assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", text)


def test_every_file_that_is_named_exists() -> None:
    names = {file.name for file in FILES} | {"explain.js", "explain.css"}
    for file in FILES:
        text = file.read_text(encoding="utf-8")
        assert set(re.findall(r"(?:static/|from \"\./)([\w.]+)", text)) <= names, file.name
    icons = set(re.findall(r'<symbol id="(\w+)"', (STATIC / "icons.svg").read_text(encoding="utf-8")))
    used = {
        icon for file in FILES for icon in re.findall(r"icons\.svg#(\w+)|icon\(\"(\w+)\"\)", file.read_text("utf-8"))
    }
    assert {first or second for first, second in used} == icons


def test_every_element_that_a_script_looks_for_is_on_the_page() -> None:
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    ids = re.findall(r'\sid="([\w-]+)"', page)
    assert len(ids) == len(set(ids))
    for file in STATIC.glob("*.js"):
        assert set(re.findall(r"\$\(\"([\w-]+)\"\)", file.read_text(encoding="utf-8"))) <= set(ids), file.name
    assert set(re.findall(r'(?:for|aria-controls|aria-labelledby|aria-describedby)="([\w-]+)"', page)) <= set(ids)
