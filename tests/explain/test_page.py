"""The page of a trace, in a browser: every interaction, wide and narrow, light and dark."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from playwright.sync_api import Browser, Page, expect

from accessibility import faults
from allyouneed.apps.convert.html import web_library, web_model
from allyouneed.apps.explain import Trace, build_page, explain, trace_translation
from allyouneed.apps.explain.claims import Claim
from allyouneed.apps.explain.component import explanation_markup, explanation_script, explanation_style
from allyouneed.apps.explain.heads import NO_PATTERN, SPREAD, describe_heads
from allyouneed.apps.explain.page import _for_script
from allyouneed.apps.explain.trace import attentions
from allyouneed.translator import Translator
from chromium_page import LOOKS, open_file
from messages import numbers_in


@pytest.fixture(scope="module")
def pages(trace: Trace, translator_of_tests: Translator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with the pages of a beam search and a greedy search, and a notebook's."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "beam.html").write_text(build_page(trace, translator_of_tests))
    greedy = translator_of_tests.using(beam=1)
    (folder / "greedy.html").write_text(build_page(trace_translation(greedy, "abcd"), greedy))
    inline = explain(greedy, "ab")._repr_html_()
    (folder / "notebook.html").write_text(f'<!doctype html><html lang="en"><title>Notebook</title>{inline}')
    return folder


@pytest.fixture(params=LOOKS, ids=["wide and light", "narrow and dark"])
def page(browser: Browser, pages: Path, request: pytest.FixtureRequest) -> Iterator[Page]:
    width, dark = request.param
    with open_file(browser, pages / "beam.html", width=width, dark=dark) as page:
        yield page


def lit(page: Page) -> set[str]:
    """Return the views in which something is lit."""
    views = page.locator(".lit").evaluate_all("all => all.map(one => one.closest('[data-part]').dataset.part)")
    return set(views)


def open_values(page: Page, part: str) -> None:
    """Open the table of values of a part."""
    page.locator(f"[data-part={part}] summary").click()
    page.locator(f"[data-part={part}] table").wait_for()


def test_the_page_needs_nothing_else_and_stays_small(pages: Path) -> None:
    page = (pages / "beam.html").read_text()
    assert not re.search(r"""(src|href)=|https?://(?!www\.w3\.org)|@import|url\(""", page)
    assert not re.findall(r"\$[a-z_]+", page)
    assert len(page.encode()) < 200_000


def test_text_cannot_become_markup() -> None:
    assert _for_script("</script>") == '"\\u003c/script>"'


def test_the_headline_is_what_translate_gives(page: Page, translator_of_tests: Translator) -> None:
    expect(page.locator("h1")).to_have_text(f"abcd → {translator_of_tests('abcd')}")
    expect(page.locator("[data-part=model-bar]")).to_be_hidden()


def test_texts_of_any_direction_leave_numbers_and_arrows_in_their_place(page: Page) -> None:
    assert page.locator("h1 > bdi").count() == 2
    page.locator("[data-part=target] button").first.click()
    for part in ("reading", "heads", "steps"):
        assert page.locator(f"[data-part={part}] bdi").count() >= 4
    open_values(page, "tree")
    assert page.locator("[data-part=tree] tbody bdi").count() > page.locator("[data-part=tree] tbody tr").count()


def test_the_reading_stays_in_sight_below_many_tokens(page: Page) -> None:
    page.set_viewport_size({"width": 400, "height": 500})
    page.evaluate("""() => {
      const tokens = document.querySelector("[data-part=source]");
      for (let count = 0; count < 80; count++) tokens.append(tokens.firstElementChild.cloneNode(true));
    }""")
    inside = page.evaluate("""() => {
      const [bar, reading] = [".bar", ".reading"].map((one) => document.querySelector(one).getBoundingClientRect());
      return reading.bottom <= bar.bottom && bar.height <= 0.4 * innerHeight + 1;
    }""")
    assert inside


def test_every_step_frames_its_chosen_token(page: Page, trace: Trace) -> None:
    framed = page.locator("[data-part=steps] .candidate.chosen b").all_inner_texts()
    assert framed == trace.decoder_targets[: len(framed)]
    assert len(framed) == page.locator("[data-part=steps] li").count()


def test_the_labels_of_the_tree_do_not_overlap(page: Page) -> None:
    page.evaluate("""() => {
      const nodes = [null, 0, 1, 2, 1].map((parent, index) => (
        { piece: "abcde"[index], parent, total: -index, chosen: index < 4, ended: -1.2345 }));
      document.querySelector("[data-part=tree]").replaceChildren(searchTree(nodes));
    }""")
    overlaps = page.eval_on_selector_all(
        "[data-part=tree] text",
        """all => {
      const boxes = all.map((text) => text.getBoundingClientRect());
      return boxes.some((a, i) => boxes.some((b, j) => i < j
        && a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 4 && b.top < a.bottom - 4));
    }""",
    )
    assert not overlaps


def test_lines_draw_the_largest_weight_of_each_row_and_say_what_they_leave_out(page: Page) -> None:
    drawn, note = page.evaluate("""() => {
      const side = Array.from({ length: 30 }, (_, index) => ({ label: "a", key: `source:${index}` }));
      const values = side.map((_, row) => side.map((_, column) => (row === column ? 0.036 : 0.033)));
      return [lines({ rows: side, columns: side, values, label: "" }).querySelectorAll(".weight").length,
        notDrawn(values)[0].textContent];
    }""")
    assert (drawn, numbers_in(note)) == (30, [4])


def test_digits_that_are_tokens_are_no_numbers(page: Page) -> None:
    open_values(page, "alignment")
    assert page.evaluate("""() => {
      const cells = table(["token", "attends to", numeric("weight")], [["1", "2", "3"]]).querySelectorAll("td");
      return [...cells].map((cell) => cell.className);
    }""") == ["", "number"]


def test_a_token_lights_up_in_every_view(page: Page) -> None:
    page.locator("[data-part=target] button").nth(1).click()
    assert lit(page) >= {"target", "pieces", "attention", "steps", "tree", "alignment", "lens"}
    expect(page.locator("[data-part=reading]")).to_contain_text("(translation): attends to")
    page.locator("[data-part=source] button").nth(2).hover()
    assert lit(page) >= {"source", "pieces", "attention", "alignment"}
    page.mouse.move(0, 0)
    page.locator("h1").hover()
    assert "steps" in lit(page)  # the tapped one is lit again
    page.keyboard.press("Escape")
    assert lit(page) == set()


@pytest.mark.parametrize("view", ["pieces", "steps", "lens"])
def test_a_token_may_be_tapped_anywhere(page: Page, view: str) -> None:
    page.locator(f"[data-part={view}] [data-token='target:0']").first.click()
    assert lit(page) >= {"target", "pieces", "steps", "lens"}
    expect(page.locator("[data-part=target] [aria-pressed=true]")).to_have_count(1)


def test_the_keyboard_reaches_every_token(page: Page) -> None:
    page.locator("[data-part=source] button").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator("[data-part=source] button").nth(2)).to_be_focused()
    assert "attention" in lit(page)
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.locator("[data-part=target] button").first).to_be_focused()
    expect(page.locator("[data-part=source] [aria-pressed=true]")).to_have_text("b")


def test_attention_layer_head_and_drawing_are_chosen(page: Page, trace: Trace) -> None:
    drawn = page.locator("[data-part=attention] svg")
    page.locator("[data-part=attention-choice]").select_option(label="encoder 1, attention")
    expect(drawn).to_have_attribute("aria-label", re.compile("^encoder 1, attention, mean of all heads"))
    page.get_by_role("group", name="Head", exact=True).get_by_role("button", name="Head 2").click()
    expect(drawn).to_have_attribute("aria-label", re.compile("encoder 1, attention, head 2"))
    expect(page.locator("[data-part=finding]")).to_contain_text("Head 2: ")
    page.get_by_role("button", name="Lines").click()
    expect(page.locator("[data-part=attention] svg.lines")).to_be_visible()
    page.locator("[data-part=source] button").nth(1).click()
    weights = trace.recording["encoder.layers.0.attention"][1]
    drawn_lines = (weights >= 0.04).int()
    touched = int(drawn_lines[1].sum() + drawn_lines[:, 1].sum() - drawn_lines[1, 1])
    expect(page.locator("[data-part=attention] .weight.lit")).to_have_count(touched)
    page.get_by_role("button", name="Matrix").click()
    expect(page.locator("[data-part=attention] svg.heatmap")).to_be_visible()


def test_a_square_says_its_weight_to_pointer_and_keyboard(page: Page, trace: Trace) -> None:
    page.locator("[data-part=attention-choice]").select_option(label="encoder 1, attention")
    page.get_by_role("group", name="Head", exact=True).get_by_role("button", name="Head 1").click()
    weights = trace.recording["encoder.layers.0.attention"][0]
    reading, drawn = page.locator("[data-part=reading]"), page.locator("[data-part=attention] svg")
    drawn.evaluate("one => one.scrollIntoView({ block: 'center' })")
    page.locator("[data-part=attention] rect.positive").nth(8).hover()
    share = float(weights[1, 2])
    expect(reading).to_have_text(f"“a” attends to “b”: {100 * share:.{1 if share < 0.1 else 0}f} %")
    drawn.focus()
    page.keyboard.press("ArrowDown")
    share = float(weights[2, 2])
    expect(reading).to_have_text(f"“b” attends to “b”: {100 * share:.{1 if share < 0.1 else 0}f} %")


def test_the_values_of_a_drawing_are_a_table(page: Page, trace: Trace) -> None:
    name = "decoder.layers.0.cross_attention"
    page.locator("[data-part=attention-choice]").select_option(label="decoder 1, cross-attention")
    open_values(page, "attention")
    cells = page.locator("[data-part=attention] td").all_inner_texts()
    values = torch.tensor([float(cell) for cell in cells]).view_as(attentions(trace)[name][0])
    torch.testing.assert_close(values, attentions(trace)[name].mean(0), atol=6e-4, rtol=0)


def test_a_head_of_the_table_is_shown(page: Page) -> None:
    page.get_by_role("button", name="Show decoder 2, self-attention, head 3").click()
    expect(page.locator("[data-part=attention] svg")).to_have_attribute(
        "aria-label", re.compile("decoder 2, self-attention, head 3")
    )
    expect(page.locator("[data-part=attention-choice]")).to_be_focused()


def test_every_tensor_can_be_looked_at(page: Page, trace: Trace) -> None:
    select = page.locator("[data-part=tensor-choice]")
    assert select.locator("option").count() == len(trace.recording)
    drawn, about = page.locator("[data-part=tensor] svg"), page.locator("[data-part=tensor-about]")
    for number in range(0, len(trace.recording), 7):
        select.select_option(str(number))
        expect(about).to_contain_text("rows, one a token")
        expect(drawn).to_be_visible()
    index = select.locator("optgroup[label='encoder 1'] option", has_text="values V").get_attribute("value")
    select.select_option(index)
    page.get_by_role("group", name="Head of the tensor").get_by_role("button", name="Head 3").click()
    open_values(page, "tensor")
    cells = page.locator("[data-part=tensor] td").all_inner_texts()
    expected = trace.recording["encoder.layers.0.attention.value"][2]
    values = torch.tensor([float(cell.replace("−", "-")) for cell in cells]).view_as(expected)
    torch.testing.assert_close(values, expected, atol=1e-3, rtol=1e-3)
    drawn.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("[data-part=reading]")).to_contain_text("“<sos>”, dimension 1: ")


def test_masked_scores_are_named_so(page: Page) -> None:
    select = page.locator("[data-part=tensor-choice]")
    index = select.locator("optgroup[label='decoder 1'] option", has_text="self-attention: scores").get_attribute(
        "value"
    )
    select.select_option(index)
    open_values(page, "tensor")
    rows = page.locator("[data-part=tensor] tbody tr").count()
    assert page.locator("[data-part=tensor] td", has_text="masked").count() == rows * (rows - 1) // 2


def test_the_search_is_a_tree_where_it_branches_and_else_shows_the_runners_up(
    browser: Browser, pages: Path, page: Page
) -> None:
    expect(page.locator("[data-part=search]")).to_contain_text("A beam of 2 keeps 2 hypotheses")
    expect(page.locator("[data-part=tree] svg")).to_be_visible()
    open_values(page, "tree")
    assert page.locator("[data-part=tree] tbody tr").count() > 2
    with open_file(browser, pages / "greedy.html") as greedy:
        expect(greedy.locator("[data-view=tree]")).to_be_hidden()
        expect(greedy.locator("[data-part=ending]")).to_contain_text("Greedy search, a beam of 1")
        assert greedy.locator("[data-part=steps] .candidate:not(.chosen)").count() >= 4


def test_labels_are_readable_and_wide_figures_say_that_they_scroll(page: Page) -> None:
    for drawing in ("Lines", "Matrix"):
        page.get_by_role("button", name=drawing).click()
        sizes = page.eval_on_selector_all(
            "svg text", "all => all.map(text => parseFloat(getComputedStyle(text).fontSize))"
        )
        assert min(sizes) >= 9
    turned = page.eval_on_selector_all("svg text[transform]", "all => all.map(text => text.textContent)")
    assert all(len(label) > 2 for label in turned)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    unsigned = page.evaluate(
        "[...document.querySelectorAll('.wide')].filter(box => box.scrollWidth > box.clientWidth + 1"
        " && !box.previousElementSibling.classList.contains('needed')).length"
    )
    assert unsigned == 0


def test_the_page_is_accessible(page: Page) -> None:
    page.locator("[data-part=target] button").nth(1).click()
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    assert faults(page) == []
    page.emulate_media(color_scheme="dark" if page.viewport_size == {"width": 1280, "height": 900} else "light")
    assert faults(page, runOnly=["color-contrast"]) == []


def test_a_notebook_shows_the_page_inline(browser: Browser, pages: Path) -> None:
    with open_file(browser, pages / "notebook.html") as page:
        inside = page.frame_locator("iframe")
        expect(inside.locator("h1")).to_contain_text("ab → ")
        inside.locator("[data-part=source] button").nth(1).click()
        expect(inside.locator("[data-part=steps]")).to_be_visible()
        expect(inside.locator("[data-part=reading]")).to_contain_text("“a” (text)")


def test_a_view_without_data_hides(browser: Browser, pages: Path, tmp_path: Path) -> None:
    content = (pages / "beam.html").read_text()
    for name in ("lens", "stream", "tensors", "heads"):
        content = content.replace(f'"{name}":[', f'"no-{name}":[')
    (tmp_path / "page.html").write_text(content)
    with open_file(browser, tmp_path / "page.html") as page:
        for view in ("lens", "stream", "tensors", "heads"):
            expect(page.locator(f"[data-view={view}]")).to_be_hidden()
        expect(page.locator("[data-view=attention]")).to_be_visible()


STEPS = ["Query", "Key", "Products", "Sum", "÷ √4", "Softmax", "Values"]


def numbers_of_weight(page: Page, name: str, head: int, row: int, column: int) -> dict[str, Any]:
    """Return the numbers that the microscope computes for a square."""
    computed: dict[str, Any] = page.evaluate(
        """([name, head, row, column]) => {
          const { trace } = document.querySelector(".explanation").explanation.attention;
          return computeWeight(trace.attention.find((one) => one.name === name), head, row, column);
        }""",
        [name, head, row, column],
    )
    return computed


def assert_equal_to_python(page: Page, trace: Trace, *, rows: int) -> None:
    """Check that every number of every square of the first `rows` is the model's."""
    for name, weights in attentions(trace).items():
        parts = {part: trace.recording[f"{name}.{part}"] for part in ("query", "key", "value", "scores", "heads")}
        for head in range(weights.shape[0]):
            for row in range(0, rows, 2):
                column = (row + head) % (row + 1)  # never a masked one
                computed = numbers_of_weight(page, name, head, row, column)
                query, key = parts["query"][head, row], parts["key"][head, column]
                expected = {
                    "query": query, "key": key, "products": query * key, "sum": query @ key,
                    "scores": parts["scores"][head, row], "score": parts["scores"][head, row, column],
                    "weights": weights[head, row], "mixed": weights[head, row, :, None] * parts["value"][head],
                    "output": parts["heads"][head, row],
                }  # fmt: skip
                for what, values in expected.items():
                    got = torch.tensor(
                        computed[what] if what != "scores" else unmasked(computed[what]), dtype=torch.float32
                    ).view(-1)
                    expected_values = values.reshape(-1)
                    if what in ("scores", "weights", "mixed"):
                        expected_values = expected_values[: len(got)]  # a live row ends where the decoder had come to
                    torch.testing.assert_close(got, expected_values, atol=1e-5, rtol=1e-5)


def unmasked(scores: list[float | None]) -> list[float]:
    return [-torch.inf if score is None else score for score in scores]


def test_every_number_of_the_microscope_is_that_of_the_model(page: Page, trace: Trace) -> None:
    assert_equal_to_python(page, trace, rows=4)


def test_the_microscope_goes_through_the_steps_by_keyboard_and_by_touch(page: Page, trace: Trace) -> None:
    name = "decoder.layers.1.cross_attention"
    page.locator("[data-part=attention-choice]").select_option(label="decoder 2, cross-attention")
    drawn, panel = page.locator("[data-part=attention] svg"), page.locator("[data-part=microscope]")
    expect(panel).to_be_hidden()
    drawn.focus()
    for key in ("ArrowDown", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    expect(panel).to_be_focused()
    strongest = int(attentions(trace)[name][:, 1, 1].argmax())
    expect(panel).to_contain_text(f"Head {strongest + 1}: how “{trace.decoder_targets[1]}” attends to “a”")
    for number, step in enumerate(STEPS, start=1):
        expect(panel.get_by_role("status")).to_have_text(f"{number} of 7: {step}")
        expect(panel.locator("li")).to_have_count(number)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.keyboard.press("ArrowRight")
    assert faults(page) == []
    panel.get_by_role("button", name="Step back").click()
    expect(panel.get_by_role("status")).to_have_text("6 of 7: Softmax")
    page.get_by_role("group", name="Head", exact=True).get_by_role("button", name="Head 2").click()
    expect(panel).to_contain_text("Head 2: how")  # the same square, at the same step
    expect(panel.get_by_role("status")).to_have_text("6 of 7: Softmax")


@pytest.fixture(scope="module")
def live_page(translator_of_tests: Translator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a page with the component and the model itself in JavaScript, which translates in the page."""
    model = web_model(translator_of_tests.bundle, "float32")
    script = f"""{web_library()}
        {explanation_script(live=True)}
        const translator = new Translator({model.bundle}, "{model.weights}");
        const root = document.querySelector(".explanation");
        window.show = (text, beam) => {{
          const result = translator.translate(text, {{ beam, numbers: true }});
          showExplanation(root, traceOfTranslation(text, result, translator.layers));
          return result.hypotheses[0].text;
        }};"""
    page = tmp_path_factory.mktemp("live") / "live.html"
    page.write_text(
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Live</title><style>{explanation_style()}</style>'
        f"{explanation_markup()}<script>{script}</script>"
    )
    return page


def test_a_model_that_runs_in_the_page_feeds_the_same_views(
    browser: Browser, live_page: Path, translator_of_tests: Translator
) -> None:
    plain = translator_of_tests.using(retry_repetition=False)
    with open_file(browser, live_page) as page:
        for text, beam in (("abcd", 1), ("ab", 2), ("hgfe", 2)):
            translator = plain.using(beam=beam)
            assert page.evaluate("([text, beam]) => show(text, beam)", [text, beam]) == translator(text)
            expect(page.locator(".headline")).to_have_text(f"{text} → {translator(text)}")
            trace = trace_translation(translator, text)
            page.locator("[data-part=attention-choice]").select_option(label="encoder 1, self-attention")
            open_values(page, "attention")
            cells = [float(cell) for cell in page.locator("[data-part=attention] td").all_inner_texts()]
            expected = trace.recording["encoder.layers.0.attention"].mean(0)
            torch.testing.assert_close(torch.tensor(cells).view_as(expected), expected, atol=6e-4, rtol=0)
            ids = [int(one) for one in page.locator("[data-part=pieces] small").all_inner_texts()]
            shown = page.locator("[data-part=target] button").count()  # without <eos> where the search was cut off
            assert ids == [*trace.source_ids, *trace.target_ids[1 : shown + 1]]
            assert shown >= len(trace.target_ids) - 2
            page.locator("[data-part=source] button").nth(1).click()
            assert lit(page) >= {"source", "pieces", "attention", "alignment"}
            page.keyboard.press("Escape")
        for view in ("heads", "lens", "stream", "tensors"):
            expect(page.locator(f"[data-view={view}]")).to_be_hidden()
        expect(page.locator("[data-part=tree] svg")).to_be_visible()
        expect(page.locator("[data-part=attention-choice] option:checked")).to_have_text("encoder 1, self-attention")


def test_cross_attention_of_a_live_model_is_that_of_the_model(
    browser: Browser, live_page: Path, translator_of_tests: Translator
) -> None:
    translator = translator_of_tests.using(retry_repetition=False, beam=1)
    trace = trace_translation(translator, "abcd")
    with open_file(browser, live_page) as page:
        page.evaluate("show('abcd', 1)")
        assert_equal_to_python(page, trace, rows=4)
        for title, name in (("cross-attention", "cross_attention"), ("self-attention", "self_attention")):
            page.locator("[data-part=attention-choice]").select_option(label=f"decoder 2, {title}")
            open_values(page, "attention")
            cells = [float(cell) for cell in page.locator("[data-part=attention] td").all_inner_texts()]
            expected = trace.recording[f"decoder.layers.1.{name}"].mean(0)
            drawn = torch.tensor(cells).view(
                -1, expected.shape[1] if "cross" in name else page.locator("[data-part=target] button").count()
            )
            torch.testing.assert_close(drawn, expected[: len(drawn), : drawn.shape[1]], atol=6e-4, rtol=0)


def test_heads_without_a_pattern_are_one_sentence(page: Page, trace: Trace) -> None:
    named = [head for head in describe_heads(trace) if head.role not in (NO_PATTERN, SPREAD)]
    assert page.locator("[data-part=heads] tbody tr").count() == len(named)
    without = page.locator("[data-part=heads] .without")
    expect(without).to_contain_text(f"{15 - len(named)} of 15 heads follow no pattern here")


def test_claims_come_first_and_show_their_head(
    browser: Browser, trace: Trace, translator_of_tests: Translator, tmp_path: Path
) -> None:
    claim = Claim("decoder.layers.1.cross_attention", 2, "the first word", "<sos>", 0.9, 0.1, 200)
    (tmp_path / "page.html").write_text(build_page(trace, translator_of_tests, [claim]))
    with open_file(browser, tmp_path / "page.html", width=1280) as page:
        sentence = page.locator(".claims li")
        expect(sentence).to_have_text(re.compile("writing the first word, it attends to <sos>: 90 % of its weight"))
        sentence.locator("button").click()
        expect(page.locator("[data-part=finding]")).to_contain_text("Head 2")
