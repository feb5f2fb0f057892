"""A frame of a film: what the model writes and attends to, as a trace has it, from a model that goes on training."""

from base64 import b64decode
from functools import partial
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Browser, expect

from allyouneed import fit
from allyouneed.apps.explain import trace_translation
from allyouneed.apps.explain.film import film_frame
from allyouneed.apps.explain.trace import alignment_matrix
from allyouneed.apps.reports.report import write_report
from allyouneed.errors import AllYouNeedError
from allyouneed.machine.files import read_json_lines
from allyouneed.run.log import FILM_FILE
from allyouneed.translator import Translator
from chromium_page import open_file
from runs import TINY


def weights(packed: str, rows: int) -> torch.Tensor:
    return torch.tensor(list(b64decode(packed))).view(rows, -1) / 255


def test_a_frame_has_the_numbers_of_a_trace(translator_of_tests: Translator) -> None:
    translator = translator_of_tests.using(beam=1, retry_repetition=False)
    trace = trace_translation(translator, "abcd")
    model = translator.model.train()
    try:
        frame = film_frame(translator.bundle, "abcd", trace.translation)
        assert model.training
    finally:
        model.eval()
    assert frame["text"] == "abcd"
    assert frame["output"].startswith(trace.translation)
    assert (frame["source"], frame["inputs"]) == (trace.source_pieces, trace.decoder_inputs)
    assert frame["target"] == trace.decoder_targets
    torch.testing.assert_close(
        weights(frame["cross"], len(frame["target"])), alignment_matrix(trace), atol=0.5 / 255 + 1e-6, rtol=0
    )
    first = trace.recording["decoder.layers.0.self_attention"].mean(0)
    torch.testing.assert_close(weights(frame["self"], len(first)), first, atol=0.5 / 255 + 1e-6, rtol=0)


def test_the_attention_may_be_that_of_a_given_translation(translator_of_tests: Translator) -> None:
    frame = film_frame(translator_of_tests.bundle, "abcd", "hgfedcba")
    assert frame["target"] == [*"hgfedcba", "<eos>"]
    assert weights(frame["cross"], 9).sum(1).tolist() == pytest.approx([1.0] * 9, abs=0.02)


def test_what_is_drawn_has_a_limit(translator_of_tests: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("allyouneed.apps.explain.film.MAX_TOKENS", 5)
    frame = film_frame(translator_of_tests.bundle, "abcdefg")
    assert len(frame["source"]) == 5
    assert len(frame["target"]) <= 5


def test_a_text_that_cannot_be_spelt_is_refused(translator_of_tests: Translator) -> None:
    with pytest.raises(AllYouNeedError):
        film_frame(translator_of_tests.bundle, "ü")


def test_the_report_plays_the_film_of_its_run(browser: Browser, tmp_path: Path) -> None:
    run = tmp_path / "run"
    fit(TINY, run, evaluate=None, film=partial(film_frame, text="1845-01-05"))
    frames = read_json_lines(run / FILM_FILE)
    write_report(run)
    with open_file(browser, run / "report.html", width=390, dark=True) as page:  # its policy allows the script
        slider = page.get_by_role("slider", name="Update")
        slider.focus()
        page.keyboard.press("Home")
        for frame in frames:
            expect(page.locator(".update")).to_have_text(f"update {frame['step']}")
            assert page.locator(".stage output").inner_text().replace("␣", " ").strip() == frame["output"].strip()
            page.keyboard.press("ArrowRight")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_run_without_a_film_has_none_in_its_report(tmp_path: Path) -> None:
    run = tmp_path / "run"
    fit(TINY, run, evaluate=None)
    assert "showFilm" not in (run / "report.html").read_text(encoding="utf-8")
