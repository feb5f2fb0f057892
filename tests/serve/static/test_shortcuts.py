"""The page with a keyboard."""

from playwright.sync_api import expect

from serve.browser import Visitor, choose_languages, write


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
