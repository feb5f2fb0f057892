"""Terms on the page."""

from playwright.sync_api import expect

from serve.browser import Visitor, add_term, choose_languages, write


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
