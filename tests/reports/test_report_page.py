"""The pages of reports in a browser."""

import re
import time
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from accessibility import faults
from allyouneed import fit
from allyouneed.apps.reports.comparison import build_comparison_page, compare_runs
from allyouneed.apps.reports.report import write_report
from allyouneed.machine.files import write_whole
from allyouneed.run import Evaluation, Sample
from chromium_page import open_file
from runs import TINY


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with the pages of a run, of a run that goes on, and of two runs."""
    folder = tmp_path_factory.mktemp("pages")
    for name, word, warmup in (("a", "one", 4), ("b", "two", 2)):
        outputs = [Sample(f"source {i}", f"reference {i}", f"output {word} {i}", i / warmup) for i in range(20)]
        recipe = replace(TINY, train=replace(TINY.train, warmup=warmup, label_smoothing=0.1))
        fit(recipe, folder / name, evaluate=lambda *_, outputs=outputs: Evaluation({"chrf": 9.0}, outputs))
    write_report(folder / "b", running=True)
    (folder / "compared.html").write_text(build_comparison_page(compare_runs(folder / "a", folder / "b")))
    return folder


# How many wide figures lack the sign that says so, which appears within some frames.
WIDE_WITHOUT_A_SIGN = """async () => {
    const lacks = box => box.scrollWidth > box.clientWidth + 1 && !box.previousSibling.classList.contains("needed");
    const count = () => [...document.querySelectorAll(".wide")].filter(lacks).length;
    for (let frame = 0; frame < 600 && count(); frame++) await new Promise(requestAnimationFrame);
    return count();
}"""


@pytest.mark.parametrize(
    ("file", "width", "dark"),
    [
        ("a/report.html", 390, True),
        ("b/report.html", 1280, False),
        ("compared.html", 390, False),
        ("compared.html", 1280, True),
    ],
)
def test_a_page_is_readable_and_accessible(browser: Browser, pages: Path, file: str, width: int, dark: bool) -> None:
    with open_file(browser, pages / file, width=width, dark=dark) as page:
        for axes in ("linear", "logarithmic"):
            page.get_by_label(axes, exact=True).check()
            assert page.locator(f"svg.{axes}").first.is_visible()
            assert page.locator("svg:visible").count() == page.locator("figure").count()
            sizes = page.eval_on_selector_all(
                "svg text", "all => all.filter(t => t.checkVisibility()).map(t => t.getBoundingClientRect().height)"
            )
            assert min(sizes) >= 9
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
        assert page.evaluate(WIDE_WITHOUT_A_SIGN) == 0
        assert faults(page) == []


def test_a_page_of_a_run_that_goes_on_loads_itself_and_keeps_what_is_open(browser: Browser, pages: Path) -> None:
    path = pages / "going-on.html"
    content = (pages / "b/report.html").read_text()
    hour = 3600
    hourly = re.sub(
        r'data-refresh="\d+" data-written="\d+"', f'data-refresh="{hour}" data-written="{time.time():.0f}"', content
    )
    write_whole(path, hourly)
    with open_file(browser, path, own_clock=True) as page:
        page.get_by_label("logarithmic").check()
        page.get_by_text("[model]").click()
        write_whole(path, hourly.replace("<h1>b</h1>", "<h1>later</h1>"))
        with page.expect_navigation():
            page.clock.fast_forward(1000 * hour)
        page.get_by_role("heading", name="later").wait_for()
        expect(page.get_by_label("logarithmic")).to_be_checked()
        expect(page.get_by_text("d_model", exact=True)).to_be_visible()
        page.get_by_label("every").uncheck()
        write_whole(path, hourly.replace("<h1>b</h1>", "<h1>last</h1>"))
        page.clock.fast_forward(1000 * hour)
        assert page.get_by_role("heading", name="later").is_visible()


def test_the_page_of_a_run_that_died_long_ago_stays_as_it_is(browser: Browser, pages: Path) -> None:
    path = pages / "died.html"
    content = (pages / "b/report.html").read_text()
    path.write_text(re.sub(r'data-refresh="\d+" data-written="\d+"', 'data-refresh="0.1" data-written="0"', content))
    with open_file(browser, path, own_clock=True) as page:
        page.evaluate("document.title = 'not loaded again'")
        page.clock.run_for(500)
        assert page.title() == "not loaded again"
