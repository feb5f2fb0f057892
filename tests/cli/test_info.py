"""`allyouneed info`."""

import json
from pathlib import Path

from bundles import make_bundle
from shell import refusal, run_here


def test_info_shows_languages_parameters_and_exports(tmp_path: Path) -> None:
    bundle = make_bundle(norm="pre")
    bundle.save(tmp_path / "bundle")
    described = json.loads(run_here("info", tmp_path / "bundle", "--json").stdout)
    counts = described["parameters"]
    assert counts["all"] == bundle.model.parameter_count()
    assert sum(counts.values()) == 2 * counts["all"]  # the parts share no parameter
    assert described["export"]["onnx"] == "yes"
    assert "post-norm" in described["export"]["huggingface"]
    page = run_here("info", tmp_path / "bundle").stdout.decode()
    assert f"{counts['encoder']:,}" in page
    assert "weights.safetensors" in page


def test_info_of_what_is_no_bundle_is_one_line(tmp_path: Path) -> None:
    assert "expected a bundle" in refusal("info", tmp_path / "nothing")
