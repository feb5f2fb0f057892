"""The languages of the page: chosen, detected, swapped."""

import json
from pathlib import Path

from playwright.sync_api import Request, expect

from allyouneed.apps.serve.app import create_app
from allyouneed.apps.serve.options import ServeConfig
from serve.browser import Visitor, choose_languages, one_answer, translation, write
from serve.live import running


def test_the_languages_are_swapped_with_the_texts(visit: Visitor) -> None:
    page = visit()
    choose_languages(page, "en", "it")
    write(page, "a b c")
    page.click("#swap")
    expect(page.locator("#source")).to_have_value("b c d")
    expect(page.locator("#output")).to_have_text("a b c")
    assert (page.input_value("#source-language"), page.input_value("#target-language")) == ("it", "en")
    choose_languages(page, "en", "de")
    expect(page.locator("#swap")).to_be_disabled()  # no model goes back


def test_the_language_is_detected_once_while_a_text_grows(visit: Visitor) -> None:
    page = visit(answers={"detect": (200, [{"language": "it", "confidence": 95}], {})})
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url.rpartition("/")[2]))
    page.select_option("#target-language", "en")
    write(page, "b c d")
    expect(page.locator("#output")).to_have_text("a b c")
    expect(page.locator("#detected")).to_have_text("Detected: Italian")
    write(page, "b c d e")
    expect(page.locator("#output")).to_have_text("a b c d")
    assert requests.count("detect") == 1


def test_the_languages_can_be_swapped_once_the_source_is_known(visit: Visitor) -> None:
    page = visit(answers={"detect": (200, [{"language": "it", "confidence": 95}], {})})
    page.select_option("#target-language", "en")
    expect(page.locator("#swap")).to_be_disabled()
    write(page, "b c d")
    page.click("#swap")
    assert (page.input_value("#source-language"), page.input_value("#target-language")) == ("en", "it")
    page.select_option("#source-language", "auto")
    page.fill("#source", "")
    expect(page.locator("#swap")).to_be_disabled()


def test_what_is_sent_to_be_detected_ends_with_a_whole_character(visit: Visitor, bundles: list[Path]) -> None:
    sent: list[str] = []

    def note(request: Request) -> None:
        if request.url.endswith("/detect"):
            sent.append(request.post_data or "")

    with running(create_app(bundles, ServeConfig(device="cpu", workers=1))) as url:
        page = visit(url=url, answers={"detect": (200, [], {})})
        page.on("request", note)
        write(page, "a" * 1999 + "😀")
    assert json.loads(sent[0])["q"] == "a" * 1999 + "\ufffd"


def test_texts_name_their_languages(visit: Visitor) -> None:
    page = visit(answers={"detect": (200, [{"language": "it", "confidence": 95}], {})})
    expect(page.locator("#source")).to_have_attribute("lang", "")
    page.select_option("#target-language", "en")
    write(page, "b c d")
    expect(page.locator("#source")).to_have_attribute("lang", "it")
    choose_languages(page, "en", "it")
    write(page, "a")
    expect(page.locator("#source")).to_have_attribute("lang", "en")
    expect(page.locator("#output p")).to_have_attribute("lang", "it")
    expect(page.locator("#live")).to_have_text("b")
    expect(page.locator("#live")).to_have_attribute("lang", "it")
    page.click("#copy")
    expect(page.locator("#live")).to_have_attribute("lang", "en")
    page.click("#correct")
    expect(page.locator("#corrected")).to_have_attribute("lang", "it")


def test_a_text_in_the_target_language_can_go_the_other_way(visit: Visitor) -> None:
    page = visit(answers={"detect": (200, [{"language": "it", "confidence": 95}], {})})
    page.select_option("#target-language", "it")
    page.fill("#source", "b c d")
    expect(page.locator("#message")).to_contain_text("The text is Italian already.")
    page.click("#message button:has-text('Translate into English')")
    expect(page.locator("#output")).to_have_text("a b c")
    expect(page.locator("#message")).to_be_hidden()


def test_a_text_without_words_needs_no_language(visit: Visitor) -> None:
    page = visit(answers={"detect": (200, [{"language": "en", "confidence": 0}], {})})
    page.select_option("#target-language", "en")
    write(page, "b")
    assert translation(page) == "a"  # from Italian, the only source of English
    expect(page.locator("#detected")).to_have_text("")


def test_a_single_pair_leaves_nothing_to_choose(visit: Visitor, bundles: list[Path]) -> None:
    with running(create_app(bundles[:1], ServeConfig(device="cpu", workers=1, max_file=0))) as url:
        page = visit(url=url)
        for name in ("#source-language", "#target-language"):
            expect(page.locator(name)).to_be_disabled()
        for name in ("#swap", "#modes", "#key-button"):
            expect(page.locator(name)).to_be_hidden()
        write(page, "a b")
        assert translation(page) == "b c"
        expect(page.locator("#correct")).to_be_hidden()  # this server stores no suggestions


def test_each_side_has_the_direction_of_its_script(visit: Visitor) -> None:
    page = visit(answers=one_answer(text="البيت صغير"))
    choose_languages(page, "en", "it")
    write(page, "a b")
    directions = (
        "[getComputedStyle(document.querySelector('#output p')), getComputedStyle(document.querySelector('#source'))]"
    )
    assert page.evaluate(f"{directions}.map(style => style.direction)") == ["rtl", "ltr"]
