"""A file in a browser, for tests."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from waiting import PATIENCE

TIMEOUT = 1000 * PATIENCE  # milliseconds
expect.set_options(timeout=TIMEOUT)

LOOKS = [(1280, False), (390, True)]  # widths in pixels, and whether the page is dark
_INSTALL = "tests of pages need Chromium: apt-get install --no-install-recommends chromium"


def chromium() -> str:
    """Find Chromium; without it a test fails where `CI` is true, and is skipped elsewhere."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if not path and os.environ.get("CI") == "true":
        pytest.fail(_INSTALL)
    if not path:
        pytest.skip(_INSTALL)
    return path


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Open Chromium, for the pages of several tests."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def open_file(
    browser: Browser, file: Path, *, width: int = 1280, dark: bool = False, own_clock: bool = False
) -> Iterator[Page]:
    """Open a file as a page, with a clock that the test moves if it is to have its own.

    In the end the page must have reported no error, and have asked for nothing but itself.
    """
    errors: list[str] = []
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light")
    page.set_default_timeout(TIMEOUT)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("request", lambda one: None if one.url.startswith(("file:", "blob:")) else errors.append(one.url))
    if own_clock:
        page.clock.install()
    page.goto(file.as_uri())
    yield page
    page.close()
    assert errors == []
