"""Texts on the page: translated as they are typed, within the limits of the server, and stored nowhere."""

from datetime import datetime, timedelta
from pathlib import Path

from playwright.sync_api import Request, expect

from allyouneed import Translator
from allyouneed.apps.serve.app import create_app
from allyouneed.apps.serve.keys import add_key
from allyouneed.apps.serve.options import ServeConfig
from serve.browser import Visitor, choose_languages, write
from serve.live import running
from serve.stub import limited


def test_a_text_is_translated_as_it_is_typed(visit: Visitor) -> None:
    page = visit()
    choose_languages(page, "en", "it")
    page.locator("#source").press_sequentially("a b c\nj")
    expect(page.locator("#output")).to_have_text("b c da")
    assert page.locator("#output p").all_inner_texts() == ["b c d", "a"]
    expect(page.locator("#counter")).to_have_text("7 / 500")
    expect(page.locator("#confidence-text")).to_contain_text("confidence")
    expect(page.locator("#live")).to_have_text("b c d a")  # for a screen reader


def test_each_sentence_is_translated_once_and_stays_where_it_is(visit: Visitor, bundles: list[Path]) -> None:
    page = visit()
    sent: list[str] = []
    cut: list[str] = []

    def note(request: Request) -> None:
        if request.url.endswith(("/v1/translate", "/v1/sentences")):
            texts = sent if request.url.endswith("/v1/translate") else cut
            texts.extend((request.post_data_json or {})["texts"])

    page.on("request", note)
    choose_languages(page, "en", "it")
    write(page, "a b!  c\n\nd! a b!")
    assert page.locator("#output p").all_text_contents() == ["b c!  d", "", "e! b c!"]
    assert sent == ["a b!", "c", "d!"]
    write(page, "a b!  c\n\nd! a b! j")
    assert sent == ["a b!", "c", "d!", "j"]
    assert cut == ["a b!  c", "d! a b!", "d! a b! j"]
    translated = Translator.load(bundles[0], device="cpu")("a b!  c\n\nd! a b! j")
    assert "\n".join(page.locator("#output p").all_text_contents()) == translated
    page.click(".word >> nth=2")  # words of a later sentence belong to it alone
    page.wait_for_selector("#choices button")
    page.click("#choices button >> nth=0")
    assert page.locator("#output p").all_text_contents()[1:] == ["", "e! b c! a"]
    assert page.locator("#output p").all_text_contents()[0].startswith("b c!  ")


def test_a_key_is_asked_for_where_the_server_needs_one(visit: Visitor, bundles: list[Path], tmp_path: Path) -> None:
    key = add_key(tmp_path / "keys.json", "tests")
    config = ServeConfig(device="cpu", workers=1, keys=str(tmp_path / "keys.json"))
    with running(create_app(bundles, config)) as url:
        page = visit(url=url)
        choose_languages(page, "en", "it")
        page.fill("#source", "a")
        expect(page.locator("#message")).to_contain_text("API key")
        page.click("#message button:has-text('Enter a key')")
        page.fill("#key", key)
        page.click("#key-form button:has-text('Save')")
        expect(page.locator("#output")).to_have_text("b")
        assert key not in page.evaluate("JSON.stringify(localStorage)")


def test_no_key_is_asked_for_where_there_are_none(visit: Visitor) -> None:
    page = visit(answers={"v1/translate": (403, {"error": "not from here"}, {})})
    choose_languages(page, "en", "it")
    page.fill("#source", "a")
    expect(page.locator("#message")).to_contain_text("not from here")
    expect(page.locator("#message button:has-text('Enter a key')")).to_have_count(0)


def test_a_text_beyond_the_limit_is_not_sent(visit: Visitor) -> None:
    page = visit()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.fill("#source", "a " * 251)
    expect(page.locator("#message")).to_contain_text("2 characters more than this server takes")
    expect(page.locator("#counter")).to_have_class("soft over")
    assert [request for request in requests if "/static/" not in request] == []


def test_no_more_sentences_are_sent_at_once_than_the_server_takes(visit: Visitor, bundles: list[Path]) -> None:
    with running(create_app(bundles, limited(device="cpu", workers=1, max_texts=2, max_alternatives=0))) as url:
        page = visit(url=url)
        choose_languages(page, "en", "it")
        write(page, "a\nb\nc\nd\ne")
        assert page.locator("#output p").all_inner_texts() == ["b", "c", "d", "e", "f"]
        page.click(".word >> nth=0")
        expect(page.locator("#choices")).to_contain_text("The model has no other word here.")


def test_a_request_is_repeated_once_when_its_time_has_come(visit: Visitor) -> None:
    page = visit(answers={"suggest": (429, {"error": "Slowdown: 20 per 1 minute"}, {"Retry-After": "2"})})
    page.clock.install()
    choose_languages(page, "en", "it")
    page.fill("#source", "a")
    page.clock.run_for(1000)
    expect(page.locator("#output")).to_have_text("b")
    page.click("#correct")
    page.fill("#corrected", "c")
    page.click("#correction button[type=submit]")
    expect(page.locator("#message")).to_contain_text("Trying again in 2 s")
    page.click("#correction-cancel")
    page.clock.run_for(5000)
    expect(page.locator("#message")).to_contain_text("Trying again in 0 s")


def test_a_limit_of_requests_is_waited_for_and_slows_down_nothing_after_an_answer(visit: Visitor) -> None:
    page = visit(answers={"v1/translate": (429, {"error": "Slowdown: 20 per 1 minute"}, {"Retry-After": "30"})})
    choose_languages(page, "en", "it")
    page.fill("#source", "a")
    expect(page.locator("#message")).to_contain_text("this server takes 20 per 1 minute. Trying again in")
    for _ in range(3):
        expect(page.locator("#message")).to_be_visible()  # the answer has come; a press hides it until the next one
        page.click("#message button:has-text('Try now')")
    expect(page.locator("#message")).to_be_visible()
    page.unroute_all()
    page.click("#message button:has-text('Try now')")
    expect(page.locator("#output")).to_have_text("b")
    expect(page.locator("#message")).to_be_hidden()
    page.clock.install()
    page.clock.pause_at(datetime.now() + timedelta(hours=1))
    page.fill("#source", "b")
    page.clock.run_for(300)
    expect(page.locator("#output")).to_have_text("c")


def test_the_translation_goes_on_when_the_connection_is_back(visit: Visitor) -> None:
    page = visit()
    choose_languages(page, "en", "it")
    page.context.set_offline(True)
    page.fill("#source", "a")
    expect(page.locator("#message")).to_contain_text("You are offline")
    page.context.set_offline(False)
    expect(page.locator("#output")).to_have_text("b")


def test_no_text_is_stored(visit: Visitor) -> None:
    page = visit()
    choose_languages(page, "en", "it")
    write(page, "a b c")
    stored = page.evaluate("JSON.stringify([localStorage, sessionStorage, document.cookie])")
    assert "a b c" not in stored
    assert "b c d" not in stored


def test_the_page_says_whether_texts_are_logged(visit: Visitor, bundles: list[Path]) -> None:
    expect(visit().locator("#storing")).to_have_text("Your texts are not stored.")
    with running(create_app(bundles[:1], ServeConfig(device="cpu", workers=1, log_text=True))) as url:
        expect(visit(url=url).locator("#storing")).to_have_text("The operator of this server has the texts logged.")
