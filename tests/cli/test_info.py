"""`allyouneed info`."""

import json
import re
from pathlib import Path

import pytest

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
    here = described["translates here"]
    assert here["precision"] == "float32"  # a small model, so int8 does not pay
    assert re.fullmatch(
        r"[\d.e-]+ ms a token for one sentence, [\d.e-]+ in a batch of 32 by \d+ threads?(, chosen)?", here["PyTorch"]
    )
    assert here["PyTorch"] in page  # it is not timed again


@pytest.mark.parametrize("command", ["translate", "evaluate"])
def test_what_compiled_makes_is_used_from_then_on(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: set[str] = set()
    monkeypatch.setattr("allyouneed.fast.kernel_cache.is_compiled", made.__contains__)
    monkeypatch.setattr("allyouneed.fast.kernel_cache.fill_kernel_cache", made.add)
    make_bundle().save(tmp_path / "bundle")
    (tmp_path / "pairs.tsv").write_text("abc\tcab\n")

    def engines() -> dict[str, str]:
        described: dict[str, str] = json.loads(run_here("info", tmp_path / "bundle", "--json").stdout)[
            "translates here"
        ]
        return described

    assert engines()["compiled kernels"] == "not compiled yet: allyouneed translate BUNDLE --compiled"
    words = [command, "--compiled", tmp_path / "bundle", "abc" if command == "translate" else tmp_path / "pairs.tsv"]
    assert [b"Compiling the kernels" in run_here(*words).stderr for _ in range(2)] == [True, False]
    assert made == {"float32"}
    assert " ms a token for one sentence" in engines()["compiled kernels"]


def test_info_of_what_is_no_bundle_is_one_line(tmp_path: Path) -> None:
    assert "expected a bundle" in refusal("info", tmp_path / "nothing")


def test_info_says_whether_the_files_are_as_they_were_written(tmp_path: Path) -> None:
    make_bundle().save(tmp_path / "bundle")
    assert "Checksums: all files are as they were written" in run_here("info", tmp_path / "bundle").stdout.decode()
    (tmp_path / "bundle/README.md").write_text("# Mine\n")
    described = json.loads(run_here("info", tmp_path / "bundle", "--json").stdout)
    assert described["checksums"].startswith("README.md was changed since")
    assert described["card"] == "# Mine\n"
    strip_checksums(tmp_path / "bundle")
    assert "Checksums: none; " in run_here("info", tmp_path / "bundle").stdout.decode()
    (tmp_path / "bundle/weights.safetensors").write_bytes(b"")
    assert "does not hold this model's weights" in refusal("info", tmp_path / "bundle")
