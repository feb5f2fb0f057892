"""The walk through Figure 1: its pictures, files and notebooks are those of the code, and its numbers are right."""

import contextlib
import io
import json
import math
import re
import sys
from base64 import b64decode
from collections.abc import Callable
from functools import partial
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import nbformat
import pytest
import torch
from playwright.sync_api import Browser, expect

from accessibility import faults
from allyouneed import Bundle, Translator
from allyouneed.apps.cli.demo import DATE_MODEL
from allyouneed.apps.explain.component import explanation_style, film_script
from allyouneed.data.tasks import task_pairs
from allyouneed.nn import attention_weights
from chromium_page import LOOKS, open_file
from conftest import Demo

DOCS = Path(__file__).parent.parent / "docs"
sys.path.append(str(DOCS / "make"))
by_hand, figure_1 = import_module("by_hand"), import_module("figure_1")
pictures, story = import_module("pictures"), import_module("story")
film = import_module("film")
live, models = import_module("live"), import_module("models")
notebooks, pages = import_module("notebooks"), import_module("pages")
WALK = sorted(figure_1.PAGES)


@pytest.mark.parametrize("name", sorted(pictures.BY_HAND))
def test_a_drawing_is_as_the_code_draws_it(name: str) -> None:
    assert (DOCS / f"pictures/{name}.svg").read_text() == pictures.BY_HAND[name]().svg(), "python docs/make/pictures.py"


@pytest.mark.parametrize("page", WALK)
def test_the_map_of_a_page_leads_to_all_others(page: str) -> None:
    svg = ElementTree.fromstring(figure_1.figure_1(page).svg())
    links = {link.get("href") for link in svg.iter("{http://www.w3.org/2000/svg}a")}
    assert links == {f"{name}.html" for name in WALK}


@pytest.mark.parametrize("draw", [*pictures.BY_HAND.values(), *(partial(figure_1.figure_1, page) for page in WALK)])
def test_a_drawing_cuts_no_text_no_arrow_ends_in_the_air_and_none_goes_through_a_box(draw: Callable[[], Any]) -> None:
    drawing = draw()
    for text in ElementTree.fromstring(drawing.svg()).iter("{http://www.w3.org/2000/svg}text"):
        x, width = float(text.get("x", 0)), 8.6 * len(text.text or "")  # no letter is wider
        left = x - width * {"start": 0, "middle": 0.5, "end": 1}[text.get("text-anchor", "start")]
        assert left >= -8, text.text
        assert left + width <= drawing.width + 8, text.text
    for line in drawing.lines:
        ends = (line[0], line[-1])
        for end in ends:
            assert any(is_near(end, box, 13) for box in drawing.boxes) or any(
                is_near(end, text, 24) for text in drawing.texts
            )
        points = [
            (x + (to_x - x) * n / 200, y + (to_y - y) * n / 200)
            for (x, y), (to_x, to_y) in pairwise(line)
            for n in range(201)
        ]
        for box in drawing.boxes:  # a block has lines inside it
            assert any(is_near(end, box, -2) for end in ends) or not any(is_near(point, box, -2) for point in points)
        assert not any(is_near(point, text, 1) for point in points for text in drawing.texts)


def is_near(point: tuple[float, float], box: tuple[float, float, float, float], distance: float) -> bool:
    """Return True if a point is in a box that is larger by `distance` on all sides."""
    left, top, right, bottom = box
    return left - distance < point[0] < right + distance and top - distance < point[1] < bottom + distance


def test_the_weights_of_the_soft_lookup_are_those_of_its_page() -> None:
    text = (DOCS / "walk/0-why-attention.md").read_text(encoding="utf-8")
    for _, _, _, scores in story.TABLES.values():
        weights = torch.tensor(scores).softmax(0).tolist()
        assert story.softmax(scores) == pytest.approx(weights)
        picture = (DOCS / "pictures/why-soft-lookup.svg").read_text(encoding="utf-8")
        assert all(f">{weight:.3f}<" in picture for weight in weights)
        assert {f"{score:g}" for score in scores} == set(re.findall(r"here (\d), (\d) and (\d)", text)[0])


def test_attention_by_hand() -> None:
    five = [math.sin(2), math.cos(2), 1 + math.sin(0.02), math.cos(0.02)]  # PE(2), and 1 in the third dimension
    one, dash = [1.0, 1.0, 0.0, 1.0], [math.sin(1), 1 + math.cos(1), math.sin(0.01), math.cos(0.01)]
    scores = [sum(q * k for q, k in zip(five, key, strict=True)) / 2 for key in (one, dash, five)]
    whole = sum(map(math.exp, scores))
    weights, output = by_hand.attended()
    assert weights[2].tolist() == pytest.approx([math.exp(score) / whole for score in scores], abs=1e-5)
    mixed = sum(math.exp(s) / whole * v[0] for s, v in zip(scores, (one, dash, five), strict=True))
    assert output[2, 0].item() == pytest.approx(mixed, abs=1e-5)


def test_a_learned_query_by_hand_looks_for_the_dash() -> None:
    queries, weights = by_hand.looking_for_the_dash()
    second = 4 * (1 + math.sin(0.02))  # the third dimension of 5, four times
    assert queries[2].tolist() == pytest.approx([0, second, 0, 0], abs=1e-5)
    scores = [second * key / 2 for key in (1.0, 1 + math.cos(1), math.cos(2))]  # the second dimension of each key
    assert weights[2].tolist() == pytest.approx([math.exp(s) / sum(map(math.exp, scores)) for s in scores], abs=1e-5)
    text = (DOCS / "walk/3-attention.md").read_text(encoding="utf-8")
    assert f"(0, {second:.2f}, 0, 0)" in text
    assert f" {100 * weights[2, 1]:.0f} % of the weight" in text
    assert f"{scores[0]:.2f}, {scores[1]:.2f} and {scores[2]:.2f}".replace("-", "−") in text


def test_the_heads_by_hand_find_the_dash_and_the_month() -> None:
    five = [math.sin(2), math.cos(2), 1 + math.sin(0.02), math.cos(0.02)]
    dash = [math.sin(1), 1 + math.cos(1), math.sin(0.01), math.cos(0.01)]
    one, key = [1.0, 1, 0, 1], by_hand.HEADS[0]["key"]

    def times(x: list[float], matrix: list[list[float]]) -> list[float]:
        return [sum(value * row[i] for value, row in zip(x, matrix, strict=True)) for i in (0, 1)]

    query = times(five, by_hand.HEADS[0]["query"])
    scores = [sum(a * b for a, b in zip(query, times(x, key), strict=True)) / math.sqrt(2) for x in (one, dash, five)]
    shares = [math.exp(score) / sum(map(math.exp, scores)) for score in scores]
    weights = by_hand.two_heads()["weights"][:, 2]
    assert weights[0].tolist() == pytest.approx(shares, abs=1e-5)
    text = (DOCS / "walk/4-heads.md").read_text(encoding="utf-8")
    assert f"({weights[0, 1]:.2f}) and the month in head 2 ({weights[1, 0]:.2f})" in text
    assert f"({query[0]:.2f}, {query[1]:.2f})" in text
    assert f" = {scores[1] * math.sqrt(2):.2f}" in text
    assert all(number in text for number in (f"{scores[1]:.2f}", f"{scores[0]:.2f}", f"−{-scores[2]:.2f}"))


def test_the_second_block_knows_what_its_page_says() -> None:
    second_layer = import_module("second_layer")
    recorded = json.loads(second_layer.RESULT.read_text(encoding="utf-8"))
    measured = second_layer.known_months(Bundle.load(DATE_MODEL))
    assert list(measured) == list(recorded)
    for name, shares in measured.items():
        assert shares == pytest.approx(recorded[name], abs=2)  # processors round differently
    at_most = [100 / 12 * distinct for distinct in (1, 2, 10, 1)]  # values of each character before attention
    assert recorded["enters the encoder"] == pytest.approx(at_most, abs=0.1)
    text = (DOCS / "walk/8-encoder-and-decoder.md").read_text(encoding="utf-8")
    dash = [f" {recorded[name][0]:.0f} %" for name in ("after block 1", "after block 2")]
    assert all(share in text for share in dash)


def test_the_word_far_away_is_found_where_its_page_says() -> None:
    far_word = import_module("far_word")
    recorded = json.loads(far_word.RESULT.read_text(encoding="utf-8"))
    measured = far_word.measure(Bundle.load(models.AGREEMENT_MODEL))
    assert measured["writes"] == recorded["writes"] == models.ANSWER.split()[-1]
    for side, weights in measured["heads"].items():
        tokens, shares = zip(*weights, strict=True)
        expected_tokens, expected = zip(*recorded["heads"][side], strict=True)
        assert tokens == expected_tokens
        assert shares == pytest.approx(expected, abs=0.01)  # processors round differently
    text = (DOCS / "walk/3-attention.md").read_text(encoding="utf-8")
    for name in ("on the article", "changed"):
        assert measured[name] == pytest.approx(recorded[name], abs=2)
        assert f" {recorded[name]:.0f} %" in text
    for side, token in {"written": "la", "text": "woman"}.items():
        assert f" {100 * dict(recorded['heads'][side])[token]:.0f} % to `{token}`" in text


def test_each_join_of_byte_pairs_is_of_the_most_frequent_neighbours() -> None:
    for joins in range(8):
        joined, pieces = story.byte_pairs(story.WORDS, joins)
        assert ["".join(spelling) for spelling in pieces.values()] == list(story.WORDS)
        counts: dict[str, int] = {}
        for word, spelling in pieces.items():
            for first, second in pairwise(spelling):
                counts[first + second] = counts.get(first + second, 0) + story.WORDS[word]
        following, _ = story.byte_pairs(story.WORDS, joins + 1)
        assert following[:joins] == joined
        name, times = following[joins]
        assert counts[name] == times == max(counts.values())
    assert f"*reads* is {', '.join(f'`{one}`' for one in story.byte_pairs(story.WORDS, 6)[1]['reads'])}" in (
        DOCS / "walk/1-embedding.md"
    ).read_text(encoding="utf-8")


def test_the_loss_by_hand_is_that_of_training() -> None:
    loss = -(by_hand.smoothed_target() * by_hand.letter_logits().log_softmax(0)).sum()
    whole = sum(map(math.exp, (3, 0, 2, 1)))
    by_letter = [-math.log(math.exp(logit) / whole) for logit in (3, 0, 2, 1)]
    assert loss.item() == pytest.approx(0.9 * by_letter[0] + 0.025 * sum(by_letter), abs=1e-5)


def test_a_file_gets_the_numbers_of_its_notes() -> None:
    page = "<!-- file: nn/mask.py -->\nold\n<!-- end -->\n\n1. `import torch` is first.\n2. `.tril(past)` is last.\n"
    filled = pages.filled(page)
    assert "import torch  # ①\n" in filled
    assert re.search(r"\.tril\(past\)  # ②\n", filled)
    assert pages.filled(filled) == filled


def test_a_note_about_code_that_is_gone_is_refused() -> None:
    with pytest.raises(SystemExit, match="`no such code`"):
        pages.filled("<!-- file: nn/mask.py -->\n<!-- end -->\n\n1. `no such code` is gone.\n")


@pytest.mark.parametrize("name", sorted(notebooks.pages()))
def test_a_notebook_is_made_from_its_page_and_prints_what_is_in_it(name: str, demo: Demo) -> None:
    text = (DOCS / f"notebooks/{name}.ipynb").read_text(encoding="utf-8")
    nbformat.validate(json.loads(text))
    read = nbformat.reads(text, as_version=4)
    made = notebooks.notebook(name, notebooks.pages()[name], read.metadata.repository)
    assert text == made, "python docs/make/notebooks.py"
    pictures = [name for cell in read.cells for name in re.findall(r"\(attachment:([^)]+)\)", cell.source)]
    assert sorted(pictures) == sorted(name for cell in read.cells for name in cell.get("attachments", {}))
    names: dict[str, object] = {"__name__": "notebook"}
    with contextlib.chdir(demo.folder):
        for cell in read.cells:
            if cell.cell_type == "code":
                with contextlib.redirect_stdout(io.StringIO()) as printed:
                    exec(compile(cell.source, name, "exec"), names)
                assert printed.getvalue() == "".join(output.text for output in cell.outputs)


def test_a_notebook_of_a_repository_on_github_installs_from_it_and_opens_in_colab() -> None:
    url = "https://github.com/someone/allyouneed"
    made = notebooks.notebook("5-masks", notebooks.pages()["5-masks"], url)
    first, prepare, *cells = nbformat.reads(made, as_version=4).cells
    address = "https://colab.research.google.com/github/someone/allyouneed/blob/HEAD/docs/notebooks/5-masks.ipynb"
    assert f"]({address})" in first.source
    assert f'"git+{url}"' in prepare.source
    assert not any("](../" in cell.source for cell in [first, *cells])
    assert notebooks.colab_address("5-masks", "https://example.org/someone/allyouneed") == ""


@pytest.fixture(scope="module")
def live_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    page = tmp_path_factory.mktemp("live") / "live.html"
    page.write_text(live.whole_page("live"), encoding="utf-8")
    assert page.stat().st_size < 1.2e6
    return page


def test_the_live_models_write_what_python_does(browser: Browser, live_page: Path) -> None:
    dates = [f"{1000 + 37 * n}-{n % 12 + 1:02}-{n % 28 + 1:02}" for n in range(40)]
    sentences = [source for source, _ in task_pairs("agreement", "test", count=20)]
    answers = "([text, beam]) => translator.translate(text, { beam }).hypotheses[0].text"
    with open_file(browser, live_page, width=1280, dark=False) as page:
        for (name, (bundle, text)), texts in zip(live.MODELS.items(), (dates, sentences), strict=True):
            translator = Translator.load(bundle, device="cpu").using(retry_repetition=False)
            page.select_option("#model", name)
            assert page.input_value("#input") == text
            assert page.inner_text("#output") == translator(text)
            for beam in (1, 4):
                expected = translator.using(beam=beam).translate(texts)
                assert [page.evaluate(answers, [text, beam]) for text in texts] == expected


def test_another_noun_changes_the_sentence_as_the_page_of_live_models_says(browser: Browser, live_page: Path) -> None:
    with open_file(browser, live_page, width=390, dark=True) as page:
        page.select_option("#model", "English → Italian")
        sentence = page.input_value("#input")
        page.fill("#input", sentence.replace("woman", "king"))
        assert page.inner_text("#output") == "il vecchio re che vive vicino al mare è stanco"
        longer = sentence.replace("sea", "sea behind the market")
        assert f"`{longer}`" in (DOCS / "walk/live.md").read_text(encoding="utf-8")
        page.fill("#input", longer)
        assert page.inner_text("#output").endswith(" mercato è stanca")
        drawn = page.locator(".live [data-part=attention] svg")
        drawn.click(position={"x": 90, "y": 90})
        expect(page.locator("[data-part=microscope]").get_by_role("status")).to_contain_text("Query")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (390, False), (390, True)])
def test_the_live_page_is_accessible(browser: Browser, live_page: Path, width: int, dark: bool) -> None:
    with open_file(browser, live_page, width=width, dark=dark) as page:
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert faults(page) == []


def test_the_live_model_breaks_as_its_page_says(browser: Browser, live_page: Path) -> None:
    text = (DOCS / "walk/live.md").read_text(encoding="utf-8")
    with open_file(browser, live_page, width=390, dark=True) as page:

        def answer() -> str:
            return page.inner_text("#output")

        assert page.input_value("#input") == "1845-01-05"
        assert answer() == "January 5, 1845"
        for part, name in {"positions": "positions", "causal": "causal mask", "scaling": "scaling"}.items():
            page.uncheck(f"[data-switch={part}]")
            assert f"**Switch the {name} off**: `{answer()}`." in text
            page.check(f"[data-switch={part}]")
        page.click("summary:text-is('heads')")
        last = page.query_selector_all("#heads input")[-4:]
        for head in last:
            head.uncheck()
        assert f"cross-attention**: `{answer()}`" in text
        last[3].check()
        assert answer() == "January 5, 1845"
        last[3].uncheck()
        last[1].check()
        assert not answer().startswith("January 5")
        for head in last:
            head.check()
        page.fill("#input", "9999-99-99")
        assert f"`9999-99-99` becomes `{answer()}`" in text
        page.fill("#input", "")
        assert answer() == ""
        assert page.is_hidden(".explanation")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_the_plane_and_the_microscope_of_the_page_of_attention(
    browser: Browser, tmp_path: Path, width: int, dark: bool
) -> None:
    file = tmp_path / "closely.html"
    file.write_text(live.whole_page("closely"), encoding="utf-8")
    with open_file(browser, file, width=width, dark=dark) as page:
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert faults(page) == []

        def weights() -> list[float]:
            meters = page.locator(".plane meter").all()
            return [float(meter.get_attribute("value") or "") for meter in meters]

        def position(name: str) -> list[float]:
            words = page.get_by_role("button", name=name).get_attribute("aria-label") or ""
            return [float(word) for word in re.findall(r"-?[\d.]+", words.partition(" at ")[2])]

        query = page.get_by_role("button", name="Query at")
        before = weights()
        query.focus()
        for _ in range(5):
            page.keyboard.press("ArrowUp")
        by_keyboard = weights()
        assert by_keyboard != before
        box = query.bounding_box()
        assert box
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.mouse.down()
        page.mouse.move(box["x"] - 60, box["y"] + 40, steps=4)
        page.mouse.up()
        assert weights() != by_keyboard
        keys = torch.tensor([position(f"Key {name} at") for name in "ABCD"])
        expected = attention_weights(torch.tensor(position("Query at")).view(1, 1, 1, 2), keys.view(1, 1, 4, 2))
        assert weights() == pytest.approx(expected.flatten().tolist(), abs=1e-5)
        mixed = float(expected.flatten() @ torch.tensor([10.0, 20, 30, 40]))
        assert f"Output: {mixed:.1f} =" in page.inner_text(".plane")
        query_vector = torch.tensor(position("Query at"))
        reach = keys @ query_vector / query_vector.norm()
        drawn_feet = page.locator(".plane .foot").evaluate_all(
            "all => all.map(one => [one, one].map((it, i) => Number(it.getAttribute(['cx', 'cy'][i]))))"
        )
        feet = torch.tensor(drawn_feet) / 60 - 2.5
        expected_feet = reach[:, None] * query_vector / query_vector.norm() * torch.tensor([1, -1])
        torch.testing.assert_close(feet, expected_feet, atol=1e-4, rtol=0)

        drawn = page.locator(".closely [data-part=attention] svg")
        drawn.click(position={"x": 90, "y": 60})
        panel = page.locator("[data-part=microscope]")
        expect(panel.get_by_role("status")).to_have_text("1 of 7: Query")
        expect(page.locator(".closely [data-view=steps]")).to_be_hidden()


@pytest.fixture(scope="module")
def filmed() -> dict[str, Any]:
    kept: dict[str, Any] = json.loads(film.RESULT.read_text(encoding="utf-8"))
    return kept


@pytest.fixture(scope="module")
def film_page(filmed: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    page = tmp_path_factory.mktemp("film") / "film.html"
    script = film_script() + film.site_script(filmed)
    assert len(script) < 400_000
    page.write_text(
        f'<!doctype html><html lang="en"><meta name="color-scheme" content="light dark"><title>Film</title>'
        f'<style>body{{margin:0}}{explanation_style()}</style><main class="look film"></main><script>{script}</script>',
        encoding="utf-8",
    )
    return page


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_the_film_shows_every_frame_as_python_recorded_it(
    browser: Browser, film_page: Path, filmed: dict[str, Any], width: int, dark: bool
) -> None:
    with open_file(browser, film_page, width=width, dark=dark) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert faults(page) == []
        for text_number, (name, side) in enumerate(
            [("without positions", "cross"), ("without the mask over the future", "self")]
        ):
            page.get_by_role("button", name=film.FILMED[name], exact=True).click()
            page.get_by_role("button", name={"cross": "the source", "self": "the answer"}[side], exact=True).click()
            page.get_by_label("Text").select_option(str(text_number))
            slider = page.get_by_role("slider", name="Update")
            slider.focus()
            page.keyboard.press("Home")
            frames = [film.of_a_text(filmed[one]["frames"], text_number) for one in ("as in the paper", name)]
            for at in range(len(frames[0])):
                assert (slider.get_attribute("aria-valuetext") or "").startswith(f"update {frames[0][at]['step']}")
                for panel, of_panel in zip(page.locator(".stage section").all(), frames, strict=True):
                    expected = of_panel[at]
                    written = panel.locator("output").inner_text()
                    assert written.replace("␣", "").strip() == expected["output"].strip()
                    assert (
                        f"{expected['exact']:.1f}".removesuffix(".0") + " % of unseen texts right" in panel.inner_text()
                    )
                    drawn = panel.locator("rect:not(.ground):not(.band):not(.cursor)").evaluate_all(
                        "all => all.map(one => Number(one.getAttribute('fill-opacity')))"
                    )
                    assert drawn == pytest.approx([byte / 255 for byte in b64decode(expected[side])], abs=6e-4)
                page.keyboard.press("ArrowRight")


def test_the_film_plays(browser: Browser, film_page: Path) -> None:
    with open_file(browser, film_page) as page:
        page.get_by_role("button", name="Train").click()
        expect(page.get_by_role("button", name="Pause")).to_be_visible()
        expect(page.get_by_role("button", name="Train")).to_be_visible()  # it has come to the end
        expect(page.locator(".update")).to_have_text("update 800")


@pytest.mark.parametrize("name", sorted(film.FILMED))
def test_a_variant_of_the_film_is_another_model(name: str) -> None:
    """What leaves a part out does so: the logits are others, and so is what is recorded."""
    bundle = Bundle.load(DATE_MODEL)
    part = film.FILMED[name]  # of the whole model, its own name
    replaced, overrides = film.VARIANTS[name]
    assert overrides == []
    whole = film.film_frame(bundle, "1845-01-05", "January 5, 1845")
    with replaced():
        broken = film.film_frame(bundle, "1845-01-05", "January 5, 1845")
    assert (broken["output"] == whole["output"]) == (part in (name, "mask"))
    assert (broken["self"] == whole["self"]) == (part in (name, "memory", "residuals"))
