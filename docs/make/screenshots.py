"""Take the pictures of the server's page: python docs/make/screenshots.py URL TEXT [NAME]

`URL` is a running server's, `TEXT` what is typed into its page. Writes docs/pictures/web-page-*.png of docs/serving.md:
the page 1280 pixels wide and light, with other words for one, and 390 wide and dark. With `NAME`, writes NAME.png, the
page with the run below the text: train-page.png of README.md is `allyouneed train parts.csv --minutes 2 --serve` with
1,000 pairs of `parts` in benchmarks/auto_tasks.py.
"""

import shutil
import sys
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

PICTURES = Path(__file__).parent.parent / "pictures"
COLOURS = 128  # of a picture; a page has few
WORD = 2  # whose alternatives the wide picture shows, counted from 0


def picture(browser: Browser, url: str, text: str, *, width: int, height: int, dark: bool) -> bytes:
    """Take a picture of the page with a translation of `text`, as a PNG."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light", reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto(url)
    page.fill("#source", text)
    page.wait_for_selector("#output .word")
    page.wait_for_selector('#target[aria-busy="false"]')
    if height > 900:
        page.wait_for_selector("#training-curves svg")
    elif not dark:
        page.locator("#output .word").nth(WORD).click()
        page.wait_for_selector("#choices button")
    image = Image.open(BytesIO(page.screenshot())).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    context.close()
    packed = BytesIO()
    image.save(packed, "PNG", optimize=True)
    return packed.getvalue()


def main(arguments: list[str]) -> None:
    """Write both pictures."""
    url, text, *names = arguments
    kinds = [("web-page-light", 1280, 560, False), ("web-page-dark", 390, 700, True)]
    executable = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        for name, width, height, dark in [(name, 1000, 1010, False) for name in names] or kinds:
            content = picture(browser, url, text, width=width, height=height, dark=dark)
            (PICTURES / f"{name}.png").write_bytes(content)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
