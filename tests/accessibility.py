"""What axe-core finds on a page, for tests."""

from typing import Any

from axe_core_python.sync_playwright import Axe
from playwright.sync_api import Page

GRADES = ("minor", "moderate", "serious", "critical")


def faults(page: Page, *, grades: tuple[str, ...] = GRADES[2:], **options: Any) -> list[str]:
    """Return the rule and the first element of each fault of these grades; `options` are those of `axe.run`.

    Elements without a fault are not described, which takes longer than to check them.
    """
    page.evaluate(Axe().axe_script)
    found = page.evaluate("options => axe.run(options)", {"resultTypes": ["violations"], **options})["violations"]
    return [f"{fault['id']}: {fault['nodes'][0]['html']}" for fault in found if fault["impact"] in grades]
