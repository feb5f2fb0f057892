"""Documents on the page: sent, translated, fetched."""

import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from allyouneed.translator import Segment, Translation
from serve.browser import Visitor, add_term, choose_languages
from serve.live import running
from serve.stub import SwapCase, stub_app


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
