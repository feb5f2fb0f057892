"""Two translations of one text: where they part, which heads differ, and the page with both."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Browser, expect

from accessibility import GRADES, faults
from allyouneed.apps.explain import Trace, compare_traces, describe_comparison, load_moment, trace_translation
from allyouneed.apps.explain.heads import describe_heads
from allyouneed.apps.explain.page import build_page_of_two
from allyouneed.bundle import Bundle
from allyouneed.errors import ConfigError
from allyouneed.nn import Transformer
from allyouneed.run.checkpoint import save_snapshot
from allyouneed.translator import Translator
from chromium_page import LOOKS, open_file


@pytest.fixture(scope="module")
def other(translator_of_tests: Translator) -> Translator:
    """Make another untrained model of the same sizes."""
    torch.manual_seed(1)
    bundle = translator_of_tests.bundles[0]
    return Translator(replace(bundle, model=Transformer(bundle.model.config).eval()))


def test_equal_translations_do_not_part(trace: Trace) -> None:
    assert compare_traces(trace, trace) == {"parting": None, "heads": [], "common_heads": len(describe_heads(trace))}
    assert "equal" in describe_comparison(compare_traces(trace, trace), ("a", "b"))[0]


def test_the_first_token_that_differs_has_the_candidates_of_both(trace: Trace, other: Translator) -> None:
    second = trace_translation(other, "abcd")
    assert trace.decoder_targets != second.decoder_targets
    parting = compare_traces(trace, second)["parting"]
    step = parting["step"]
    assert trace.decoder_targets[:step] == second.decoder_targets[:step] == parting["common"]
    chosen = [next(one["piece"] for one in candidates if one["chosen"]) for candidates in parting["candidates"]]
    assert chosen == [trace.decoder_targets[step], second.decoder_targets[step]]
    assert chosen[0] != chosen[1]


def test_a_head_differs_where_its_pattern_does(trace: Trace) -> None:
    weights = dict(trace.recording)
    part = "encoder.layers.0.attention"
    weights[part] = weights[part].clone()
    weights[part][1] = torch.eye(weights[part].shape[-1])
    changed = replace(trace, recording=weights)
    (head,) = compare_traces(trace, changed)["heads"]
    assert (head["attention"], head["head"]) == (part, 2)
    assert head["findings"][1].startswith("same position: 100 % ")


def test_a_moment_of_a_run_has_the_weights_of_its_snapshot(other: Translator, bundle: Bundle, tmp_path: Path) -> None:
    bundle.save(tmp_path)
    with torch.no_grad():
        bundle.model.source_embedding.table.fill_(0.5)
    save_snapshot(tmp_path / "snapshots", bundle.model, step=7)
    moments = [load_moment(path) for path in (tmp_path, tmp_path / "snapshots" / "00000007.safetensors")]
    halves = [bool((one.model.source_embedding.table == 0.5).all()) for one in moments]
    assert halves == [False, True]
    with pytest.raises(ConfigError, match=r"model\.safetensors"):
        load_moment(tmp_path / "model.safetensors")


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_the_page_switches_between_both(
    browser: Browser,
    trace: Trace,
    translator_of_tests: Translator,
    other: Translator,
    tmp_path: Path,
    width: int,
    dark: bool,
) -> None:
    traces = (trace, trace_translation(other, "abcd"))
    page_of_both = build_page_of_two(("first", "second"), traces, (translator_of_tests, other))
    (tmp_path / "both.html").write_text(page_of_both)
    heads = compare_traces(*traces)["heads"]
    with open_file(browser, tmp_path / "both.html", width=width, dark=dark) as page:
        expect(page.locator("h1")).to_contain_text(traces[0].output)
        page.get_by_role("group", name="Model").get_by_text("second").click()
        expect(page.locator("h1")).to_contain_text(traces[1].output)
        expect(page.locator("[data-view=comparison] table").first).to_contain_text(traces[1].output)
        expect(page.locator(".compared tbody tr")).to_have_count(len(heads))
        if heads:
            one = heads[0]
            page.get_by_label(f"Show {one['title']} of first").click()
            expect(page.locator("h1")).to_contain_text(traces[0].output)
            expect(page.locator("[data-part=attention-choice] option:checked")).to_have_text(
                one["title"].split(", head")[0]
            )
        assert faults(page, grades=GRADES) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
