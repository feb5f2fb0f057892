"""The page in light and dark, wide and narrow: no serious fault of accessibility, and nothing sticks out."""

import pytest
from playwright.sync_api import expect

from accessibility import faults
from chromium_page import chromium
from serve.browser import Visitor, choose_languages, write


def test_without_a_browser_the_tests_fail_in_ci_and_are_skipped_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="need Chromium"):
        chromium()
    monkeypatch.delenv("CI")
    with pytest.raises(pytest.skip.Exception, match="need Chromium"):
        chromium()


def test_the_colours_follow_the_system_until_they_are_chosen(visit: Visitor) -> None:
    page = visit(dark=True)
    background = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(background)
    expect(page.locator("#theme-button")).to_have_attribute("aria-pressed", "true")
    page.click("#theme-button")
    light = page.evaluate(background)
    assert light != dark
    page.reload()
    assert page.evaluate(background) == light


def test_a_planted_fault_is_found(visit: Visitor) -> None:
    page = visit()
    page.evaluate("document.getElementById('help-button').removeAttribute('aria-label')")
    page.evaluate("document.getElementById('help-button').removeAttribute('title')")
    assert [fault.partition(":")[0] for fault in faults(page)] == ["button-name"]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_no_serious_fault_and_nothing_sticks_out(visit: Visitor, width: int, dark: bool) -> None:
    page = visit(width=width, dark=dark)
    found: list[str] = []

    def look(state: str) -> None:
        found.extend(f"{state}: {fault}" for fault in faults(page))
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            found.append(f"{state}: wider than the window")

    look("empty")
    choose_languages(page, "en", "it")
    write(page, "a b c\nd e f")
    page.click(".word >> nth=0")
    page.wait_for_selector("#choices button")
    look("other words")
    page.keyboard.press("Escape")
    page.click("#inside-button")
    page.wait_for_selector("#inside .explanation svg")
    page.click("#glossary-button")
    page.fill("#term", "a")
    page.fill("#term-translation", "b")
    page.keyboard.press("Enter")
    write(page, "a b c")
    look("attention and glossary")
    page.click("#correct")
    look("correction")
    page.fill("#source", "a" * 501)
    look("a message")
    page.click("#help-button")
    look("help")
    page.keyboard.press("Escape")
    page.click("#documents-tab")
    for name in ("a.txt", "a.exe"):
        page.set_input_files("#file", {"name": name, "mimeType": "text/plain", "buffer": b"a"})
    page.wait_for_selector(".job.done")
    look("documents")
    assert found == []
