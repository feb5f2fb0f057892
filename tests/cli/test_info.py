"""`allyouneed info`."""

import json
from pathlib import Path

from bundles import make_bundle, strip_checksums
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
    assert described["translates here"].endswith("float32")  # a small model, so int8 does not pay
    assert described["translates here"] in page


def test_info_of_what_is_no_bundle_is_one_line(tmp_path: Path) -> None:
    assert str(tmp_path / "nothing") in refusal("info", tmp_path / "nothing")


def test_info_says_whether_the_files_are_as_they_were_written(tmp_path: Path) -> None:
    make_bundle().save(tmp_path / "bundle")
    assert "Checksums: all files" in run_here("info", tmp_path / "bundle").stdout.decode()
    (tmp_path / "bundle/README.md").write_text("# Mine\n")
    described = json.loads(run_here("info", tmp_path / "bundle", "--json").stdout)
    assert described["checksums"].startswith("README.md was changed")
    assert described["card"] == "# Mine\n"
    strip_checksums(tmp_path / "bundle")
    assert "Checksums: none; " in run_here("info", tmp_path / "bundle").stdout.decode()
    (tmp_path / "bundle/weights.safetensors").write_bytes(b"")
    assert "weights" in refusal("info", tmp_path / "bundle")
