"""Every format with random configs: refused with the reason before anything is written, or exported and proven."""

import os
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from allyouneed.apps.convert.exports import export_bundle
from allyouneed.bundle import Bundle
from allyouneed.config import DecodeConfig, ModelConfig
from allyouneed.config.export_limits import exportable
from allyouneed.errors import ExportError
from allyouneed.younger import build_model
from docs_programs import program
from twins import scatter
from vocabularies import VOCABULARIES

SETTINGS = program("pages").EXPORTED_SETTINGS  # those of the table in docs/export.md
EXAMPLES = {"ctranslate2": 15, "onnx": 2, "huggingface": 8, "html": 12}  # the graphs of ONNX take seconds
CI = os.environ.get("CI") == "true"


@st.composite
def bundles(draw: st.DrawFn, possible: str = "") -> Bundle:
    """Draw a tiny model with random weights; with any settings, or settings that the format `possible` can express."""
    sizes: dict[str, Any] = {}
    for values in SETTINGS:
        some = [one for one in values.values() if not possible or not exportable(ModelConfig(**one))[possible]]
        sizes |= draw(st.sampled_from(some))
    kinds = [kind for kind in VOCABULARIES if (possible, kind) != ("huggingface", "codes")]  # has <unk> more than once
    source = target = VOCABULARIES[draw(st.sampled_from(kinds))]()
    if "target_vocab_size" in sizes:
        target = VOCABULARIES["characters and tags" if draw(st.booleans()) else "characters"]()
        sizes |= {"target_vocab_size": len(target), "target_pad_id": target.pad_id}
    heads, width = draw(st.integers(1, 3)), draw(st.integers(1, 8))
    width *= 1 if sizes["positions"] == "learned" else 2  # sines and cosines are even in number
    config = ModelConfig(
        vocab_size=len(source), pad_id=source.pad_id, heads=heads, d_model=heads * width,
        d_ff=draw(st.integers(1, 20)), encoder_layers=draw(st.integers(1, 2)), decoder_layers=draw(st.integers(1, 2)),
        max_length=draw(st.integers(3, 20)), **sizes,
    )  # fmt: skip
    model = build_model(config).eval()
    torch.manual_seed(draw(st.integers(0, 99)))
    scatter(model)
    return Bundle(model, source, target, DecodeConfig(beam=draw(st.integers(1, 4))))


@pytest.mark.slow
@pytest.mark.parametrize("to", EXAMPLES)
def test_any_config_that_a_format_can_express_is_exported_and_proven(to: str) -> None:
    @settings(max_examples=EXAMPLES[to], deadline=None, database=None, derandomize=CI, phases=[Phase.generate])
    @given(bundles(possible=to))
    def export(bundle: Bundle) -> None:
        with TemporaryDirectory() as folder:
            assert export_bundle(bundle, Path(folder) / "out", to=to, precision="float32", sentences=3).passed

    export()


@settings(max_examples=60, deadline=None, database=None, derandomize=CI)
@given(bundles())
def test_any_other_is_refused_with_the_reason_before_anything_is_written(bundle: Bundle) -> None:
    with TemporaryDirectory() as folder:
        for to, reason in exportable(bundle.model.config).items():
            if reason:
                with pytest.raises(ExportError) as refusal:
                    export_bundle(bundle, Path(folder) / "out", to=to)
                assert str(refusal.value) == reason
        assert list(Path(folder).iterdir()) == []


def test_settings_of_the_table_are_one_change_from_the_usual_ones() -> None:
    for values in SETTINGS:
        for sizes in values.values():
            replace(ModelConfig(), **sizes)  # refuses what no model has
