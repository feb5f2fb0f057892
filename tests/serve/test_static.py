"""The page in a browser: what it does, with a pointer, with a keyboard, in light and dark, wide and narrow."""

import json
import re
import threading
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from axe_core_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Request, expect

from allyouneed.apps.serve.app import create_app
from allyouneed.apps.serve.keys import add_key
from allyouneed.apps.serve.options import ServeConfig
from allyouneed.translator import Segment, Translation
from chromium_page import chromium, open_browser
from serve.browser import Answer, Visitor, lit, save_successors, translation, write
from serve.live import running
from serve.stub import SwapCase, limited, stub_app


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return save_successors(tmp_path_factory.mktemp("bundles"))


@pytest.fixture(scope="module")
def suggestions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("suggestions") / "pairs.jsonl"


@pytest.fixture(scope="module")
def url(bundles: list[Path], suggestions: Path) -> Iterator[str]:
    config = ServeConfig(device="cpu", workers=2, suggestions=str(suggestions), max_characters=500)
    with running(create_app(bundles, config)) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as browser:
        yield browser


@pytest.fixture
def visit(browser: Browser, url: str) -> Iterator[Visitor]:
    visitor = Visitor(browser, url)
    yield visitor
    visitor.close()
    assert visitor.errors == []


def test_without_a_browser_the_tests_fail_in_ci_and_are_skipped_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="need Chromium"):
        chromium()
    monkeypatch.delenv("CI")
    with pytest.raises(pytest.skip.Exception, match="need Chromium"):
        chromium()


def choose_languages(page: Page, source: str, target: str) -> None:
    page.select_option("#source-language", source)
    page.select_option("#target-language", target)


def test_a_text_is_translated_as_it_is_typed(visit: Visitor) -> None:
    page = visit()
    choose_languages(page, "en", "it")
    page.locator("#source").press_sequentially("a b c\nj")
    expect(page.locator("#output")).to_have_text("b c da")
    assert page.locator("#output p").all_inner_texts() == ["b c d", "a"]
    expect(page.locator("#counter")).to_have_text("7 / 500")
    expect(page.locator("#confidence-text")).to_contain_text("confidence")
    expect(page.locator("#live")).to_have_text("b c d a")  # for a screen reader


def test_each_sentence_is_translated_once_and_stays_where_it_is(visit: Visitor) -> None:
    page = visit()
    sent: list[str] = []
    page.on("request", lambda request: sent.extend((request.post_data_json or {}).get("texts", [])))
    choose_languages(page, "en", "it")
    write(page, "a b!  c\n\nd! a b!")
    assert page.locator("#output p").all_text_contents() == ["b c!  d", "", "e! b c!"]
    assert sent == ["a b!", "c", "d!"]
    write(page, "a b!  c\n\nd! a b! j")
    assert sent == ["a b!", "c", "d!", "j"]
    page.click(".word >> nth=2")  # words of a later sentence belong to it alone
    page.wait_for_selector("#choices button")
    page.click("#choices button >> nth=0")
    assert page.locator("#output p").all_text_contents()[1:] == ["", "e! b c! a"]
    assert page.locator("#output p").all_text_contents()[0].startswith("b c!  ")


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two!  Three", [("One.", ""), ("Two!", " "), ("Three", "  ")]),
        ("Dr. J. Smith came, etc. Then he left.", [("Dr. J. Smith came, etc. Then he left.", "")]),
        ("  Left.\n\n Right.", [("Left.", "  "), ("Right.", " ")]),
        ("一。二。", [("一。", ""), ("二。", "")]),
        (" \n", []),
    ],
)
def test_a_text_is_cut_into_sentences(visit: Visitor, text: str, sentences: list[tuple[str, str]]) -> None:
    cut = visit().evaluate("text => import('/static/sentences.js').then(all => all.splitSentences(text))", text)
    assert [(one["source"], one["gap"]) for one in cut] == sentences
    for one in cut:
        assert text[one["start"] :].startswith(one["source"])


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


def add_term(page: Page, term: str, translation: str) -> None:
    """Open the glossary and put a term into it."""
    page.click("#glossary-button")
    page.fill("#term", term)
    page.fill("#term-translation", translation)
    page.keyboard.press("Enter")


def test_a_glossary_is_kept_and_sent_until_a_term_is_removed(visit: Visitor) -> None:
    page = visit()
    choose_languages(page, "en", "it")
    add_term(page, "b", "j j")
    write(page, "b")
    expect(page.locator("#output")).to_contain_text("j j")
    expect(page.locator("#glossary-count")).to_have_text("1")
    page.reload()
    page.wait_for_selector("#target-language option", state="attached")
    assert page.input_value("#source") == ""  # but no text is kept
    write(page, "b")
    expect(page.locator("#output")).to_contain_text("j j")
    page.click("#glossary-button")
    page.click("[aria-label='Remove b']")
    expect(page.locator("#output")).to_have_text("c")


def test_a_correction_comes_out_as_a_pair(visit: Visitor, suggestions: Path) -> None:
    page = visit()
    choose_languages(page, "en", "it")
    write(page, "a b! c\nd! e\ng")
    page.click("#correct")
    assert page.input_value("#corrected") == "b c! d\ne! f\nh"
    page.fill("#corrected", "b c! j j\na b\nh")  # a sentence of the first line, and two of the second in one
    page.click("#correction button[type=submit]")
    expect(page.locator("#message")).to_contain_text("Thank you")
    assert page.locator("#output p").all_inner_texts() == ["b c! j j", "a b", "h"]
    pairs = [json.loads(line) for line in suggestions.read_text(encoding="utf-8").splitlines()]
    assert [(pair["source"], pair["target"]) for pair in pairs] == [("c", "j j"), ("d! e", "a b")]
    assert {(pair["source_language"], pair["target_language"]) for pair in pairs} == {("en", "it")}


def test_a_document_is_sent_translated_and_fetched(visit: Visitor) -> None:
    page = visit()
    choose_languages(page, "en", "it")
    page.click("#documents-tab")
    page.set_input_files("#file", {"name": "letters.txt", "mimeType": "text/plain", "buffer": b"a b c\nd\n"})
    with page.expect_download() as download:
        page.click(".job a:has-text('Download')")
    assert Path(download.value.path()).read_text(encoding="utf-8") == "b c d\ne\n"
    page.set_input_files("#file", {"name": "letters.exe", "mimeType": "text/plain", "buffer": b"a"})
    expect(page.locator(".job.failed")).to_contain_text("This kind of file is not translated here")


def test_a_document_has_the_terms_of_the_glossary(visit: Visitor) -> None:
    page = visit()
    choose_languages(page, "en", "it")
    add_term(page, "b", "j j")
    page.click("#documents-tab")
    page.set_input_files("#file", {"name": "letters.txt", "mimeType": "text/plain", "buffer": b"b"})
    with page.expect_download() as download:
        page.click(".job a:has-text('Download')")
    assert "j j" in Path(download.value.path()).read_text(encoding="utf-8")


def test_the_share_of_a_document_that_is_translated_is_shown(visit: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, translate_segments = threading.Event(), SwapCase.translate_segments

    def wait(translator: SwapCase, segments: Sequence[Segment], **options: Any) -> list[Translation]:
        if any("wait" in segment.text for segment in segments):
            go_on.wait()
        return translate_segments(translator, segments, **options)

    monkeypatch.setattr(SwapCase, "translate_segments", wait)
    text = "".join(f"{'go' if number < 128 else 'wait'} {number}\n\n" for number in range(192))  # three parts
    with running(stub_app("en:it")) as url:
        page = visit(url=url)
        page.click("#documents-tab")
        page.set_input_files("#file", {"name": "a.txt", "mimeType": "text/plain", "buffer": text.encode()})
        try:
            expect(page.locator(".job .state")).to_have_text(re.compile(r"Translating, English → Italian: (33|66) %"))
            assert 0.3 < float(page.get_attribute(".job progress", "value") or 0) < 0.7
        finally:
            go_on.set()
        page.wait_for_selector(".job.done")


def test_a_document_that_cannot_be_translated_says_why(visit: Visitor) -> None:
    with running(stub_app("en:it")) as url:
        page = visit(url=url)
        page.click("#documents-tab")
        for name, text in (("early.json", b"{"), ("late.txt", b"refuse!")):
            page.set_input_files("#file", {"name": name, "mimeType": "text/plain", "buffer": text})
        expect(page.locator(".job.failed:has-text('early.json')")).to_contain_text("JSON")
        expect(page.locator(".job.failed:has-text('late.txt')")).to_contain_text("vocabulary")


def test_a_dropped_document_is_translated(visit: Visitor) -> None:
    page = visit()
    choose_languages(page, "en", "it")
    page.click("#documents-tab")
    transfer = page.evaluate_handle(
        "() => { const all = new DataTransfer(); all.items.add(new File(['a'], 'one.txt')); return all; }"
    )
    page.dispatch_event("#drop", "drop", {"dataTransfer": transfer})
    expect(page.locator(".job.done .name")).to_have_text("one.txt")


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


def one_answer(**fields: object) -> dict[str, Answer]:
    one = {
        "text": "b c", "log_probability": -1.0, "tokens": 3, "flags": [], "alternatives": [], "alignment": None,
        **fields,
    }  # fmt: skip
    return {"v1/translate": (200, {"translations": [one]}, {})}


def test_flags_and_confidence_are_said_in_words(visit: Visitor) -> None:
    page = visit(answers=one_answer(flags=["repeats", "wrong_spans"]))
    choose_languages(page, "en", "it")
    write(page, "a b")
    assert page.locator("#flags li").count() == 2
    expect(page.locator("#flags")).to_contain_text("repeat itself")
    expect(page.locator("#confidence-text")).to_have_text("Medium confidence, 72 %")


def test_each_side_has_the_direction_of_its_script(visit: Visitor) -> None:
    page = visit(answers=one_answer(text="البيت صغير"))
    choose_languages(page, "en", "it")
    write(page, "a b")
    directions = (
        "[getComputedStyle(document.querySelector('#output p')), getComputedStyle(document.querySelector('#source'))]"
    )
    assert page.evaluate(f"{directions}.map(style => style.direction)") == ["rtl", "ltr"]


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


def test_everything_is_done_with_the_keyboard(visit: Visitor) -> None:
    page = visit()
    choose_languages(page, "en", "it")
    page.focus("#swap")
    page.keyboard.press("/")
    page.keyboard.type("a b")
    expect(page.locator("#output")).to_have_text("b c")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".word >> nth=0")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".word >> nth=1")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#choices button >> nth=0")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".word >> nth=1")).to_be_focused()
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("Alt+Shift+KeyE")
    expect(page.locator("#corrected")).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("Alt+Shift+KeyG")
    expect(page.locator("#term")).to_be_focused()
    page.keyboard.press("Alt+Shift+KeyS")
    expect(page.locator("#output")).to_have_text("a b")
    page.keyboard.press("Alt+Shift+KeyX")
    expect(page.locator("#source")).to_be_focused()
    assert page.input_value("#source") == ""


def test_keys_without_alt_count_only_where_nothing_else_takes_them_and_can_be_turned_off(visit: Visitor) -> None:
    page = visit()
    choose_languages(page, "en", "it")
    page.focus("#source-language")
    page.keyboard.press("/")
    expect(page.locator("#source-language")).to_be_focused()
    page.focus("#theme-button")
    page.keyboard.press("Control+/")
    expect(page.locator("#theme-button")).to_be_focused()
    page.keyboard.press("?")
    page.uncheck("#single-keys")
    page.keyboard.press("Escape")
    page.reload()
    page.wait_for_selector("#target-language option", state="attached")
    page.focus("#theme-button")
    page.keyboard.press("/")
    page.keyboard.press("?")
    expect(page.locator("#theme-button")).to_be_focused()
    expect(page.locator("#help")).to_be_hidden()


def test_every_control_is_reached_by_the_tab_key(visit: Visitor) -> None:
    page = visit()
    choose_languages(page, "en", "it")
    write(page, "a b")
    page.focus("#source")
    seen = ["source"]
    for _ in range(30):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.id || document.activeElement.classList[0]"))
    expected = {
        "source", "clear", "word", "correct", "copy", "inside-button", "glossary-button", "skip", "text-tab",
        "help-button", "theme-button", "source-language", "swap", "target-language",
    }  # fmt: skip
    assert expected <= set(seen)
    assert seen.count("word") <= 3  # the words are one stop


def serious_faults(page: Page) -> list[str]:
    """What axe-core finds of the worse two of its four grades; its script is on the page."""
    result = page.evaluate("axe.run({resultTypes: ['violations'], preload: false}).then(result => result.violations)")
    return [
        f"{fault['id']}: {[node['target'] for node in fault['nodes']]}"
        for fault in result
        if fault["impact"] in ("serious", "critical")
    ]


def test_a_planted_fault_is_found(visit: Visitor) -> None:
    page = visit()
    page.evaluate(Axe().axe_script)
    page.evaluate("document.getElementById('help-button').removeAttribute('aria-label')")
    page.evaluate("document.getElementById('help-button').removeAttribute('title')")
    assert [fault.partition(":")[0] for fault in serious_faults(page)] == ["button-name"]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_no_serious_fault_and_nothing_sticks_out(visit: Visitor, width: int, dark: bool) -> None:
    page = visit(width=width, dark=dark)
    page.evaluate(Axe().axe_script)
    faults: list[str] = []

    def look(state: str) -> None:
        faults.extend(f"{state}: {fault}" for fault in serious_faults(page))
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            faults.append(f"{state}: wider than the window")

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
    assert faults == []
