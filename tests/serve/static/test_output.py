"""A translation on the page: its words, its inside, terms, corrections, flags."""

import json
import re
from pathlib import Path

from playwright.sync_api import expect

from serve.browser import Visitor, choose_languages, lit, one_answer, translation, write


def test_words_that_belong_together_light_up_on_both_sides(visit: Visitor) -> None:
    page = visit()
    choose_languages(page, "en", "it")
    write(page, "a")
    page.hover(".word")
    assert lit(page) == (["a"], ["b"])
    page.mouse.move(5, 5)
    page.locator("#source").blur()
    assert lit(page) == ([], [])
    page.focus(".word")
    assert lit(page) == (["a"], ["b"])
    page.locator(".word").blur()
    page.hover("#source", position={"x": 25, "y": 32})
    assert lit(page) == (["a"], ["b"])
    page.mouse.move(5, 5)
    page.focus("#source")
    page.keyboard.press("Home")
    expect(page.locator("#output .lit")).to_have_text("b")


def test_another_word_is_chosen_and_the_rest_translated_anew(visit: Visitor) -> None:
    page = visit()
    choose_languages(page, "en", "it")
    write(page, "a b c")
    page.click(".word >> nth=1")
    page.wait_for_selector("#choices button")
    word = page.inner_text("#choices b >> nth=0")
    text = f"b {page.inner_text('#choices button >> nth=0')}"
    assert word != "c"
    page.click("#choices button >> nth=0")
    expect(page.locator("#output")).to_have_text(text)
    expect(page.locator(".word.changed")).to_have_text(word)
    expect(page.locator("#choices")).to_be_hidden()
    expect(page.locator("#confidence")).to_be_visible()  # the model has scored and aligned it
    page.hover(".word >> nth=0")
    assert lit(page)[1]
    page.click("#reset")
    expect(page.locator("#output")).to_have_text("b c d")
    expect(page.locator("#reset")).to_be_hidden()


def test_the_inside_of_the_model_is_shown(visit: Visitor) -> None:
    page = visit()
    choose_languages(page, "en", "it")
    write(page, "a b")
    page.click("#inside-button")
    matrix = page.locator("#inside [data-part=attention] svg")
    expect(matrix).to_have_attribute(
        "aria-label", re.compile(r"^decoder 1, cross-attention, mean of all heads: 4 rows, 5 columns")
    )
    assert page.locator("#inside [data-part=attention-choice] option").all_inner_texts() == [
        "encoder 1, attention", "decoder 1, self-attention", "decoder 1, cross-attention",
    ]  # fmt: skip
    assert page.locator("#inside .steps .written").all_inner_texts() == ["b", "␣", "c", "<eos>"]
    page.select_option("#inside [data-part=attention-choice]", label="decoder 1, self-attention")
    page.get_by_role("group", name="Head", exact=True).get_by_text("Head 2").click()
    expect(matrix).to_have_attribute("aria-label", re.compile("self-attention, head 2: 4 rows, 4 columns"))
    matrix.focus()
    for key in ("ArrowRight", "Enter"):
        page.keyboard.press(key)
    expect(page.locator("#inside .microscope [role=status]")).to_contain_text("1 of")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#inside .microscope [role=status]")).to_contain_text("2 of")
    write(page, "a b c")  # the panel follows the text
    expect(matrix).to_have_attribute("aria-label", re.compile("self-attention, head 2: 6 rows, 6 columns"))


def test_a_correction_comes_out_as_a_pair(visit: Visitor, suggestions: Path) -> None:
    page = visit()
    choose_languages(page, "en", "it")
    write(page, "a b! c\nd! e\ng")
    page.click("#correct")
    assert page.input_value("#corrected") == "b c! d\ne! f\nh"
    page.click("#correction button[type=submit]")  # nothing was edited
    expect(page.locator("#correction")).to_be_hidden()
    page.click("#correct")
    page.fill("#corrected", "b c! j j\na b\nh")  # a sentence of the first line, and two of the second in one
    page.click("#correction button[type=submit]")
    expect(page.locator("#message")).to_contain_text("Thank you")
    assert page.locator("#output p").all_inner_texts() == ["b c! j j", "a b", "h"]
    pairs = [json.loads(line) for line in suggestions.read_text(encoding="utf-8").splitlines()]
    assert [(pair["source"], pair["target"]) for pair in pairs] == [("c", "j j"), ("d! e", "a b")]
    assert {(pair["source_language"], pair["target_language"]) for pair in pairs} == {("en", "it")}


def test_flags_and_confidence_are_said_in_words(visit: Visitor) -> None:
    page = visit(answers=one_answer(flags=["repeats", "wrong_spans"]))
    choose_languages(page, "en", "it")
    write(page, "a b")
    assert page.locator("#flags li").count() == 2
    expect(page.locator("#flags")).to_contain_text("repeat itself")
    expect(page.locator("#confidence-text")).to_have_text("Medium confidence, 72 %")


def test_the_translation_is_copied(visit: Visitor) -> None:
    page = visit()
    choose_languages(page, "en", "it")
    write(page, "a\nb")
    page.click("#copy")
    expect(page.locator("#copy-text")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == "b\nc"


def test_what_is_shown_stays_in_use_until_there_is_something_new(visit: Visitor) -> None:
    page = visit()
    choose_languages(page, "en", "it")
    write(page, "a b")
    page.route("**/v1/translate", lambda route: route.fulfill(status=500, body='{"error": "broken"}'))
    page.fill("#source", "c d! e")
    expect(page.locator("#message")).to_contain_text("broken")
    assert translation(page) == "b c"
    page.click("#copy")
    expect(page.locator("#copy-text")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == "b c"
    page.click("#correct")  # it would be one of another text
    expect(page.locator("#correction")).to_be_hidden()
    page.unroute_all()
    page.click(".word >> nth=1")
    page.wait_for_selector("#choices button")
    page.keyboard.press("Escape")
    page.click("#message button:has-text('Try again')")
    expect(page.locator("#output")).to_contain_text("d e! f")
    page.click("#correct")
    expect(page.locator("#correction")).to_be_visible()
