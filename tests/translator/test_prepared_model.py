"""A process that has not imported PyTorch translates in NumPy what was compared before."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from allyouneed import Translator
from bundles import make_bundle
from twins import scatter

PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
from allyouneed import Translator

translator = Translator.load(sys.argv[2], beam=3, nbest=2, copy_untranslatable=False, retry_repetition=False)
answers = [
    [one.text, one.log_probability, *(other.text for other in one.alternatives)]
    for one in translator.translations(["ab", "b"])
]
before = "torch" in sys.modules, translator.precision, translator.compiled
many = translator.translate(["ab", "b", "a"] * 5)
sampled = translator.using(sample=True)("ab")
after = "torch" in sys.modules, translator.model.config == translator.bundle.model.config
print(json.dumps([answers, before, many, sampled, after]))
"""


def translate(package: Path, run: Path) -> Any:
    """In another process, with the package in that folder."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-c", PROGRAM, str(package), str(run)]
    return json.loads(subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE).stdout)


def test_a_compared_bundle_is_translated_without_torch_and_an_edited_package_is_not(
    tmp_path: Path,
) -> None:
    from test_edits import HOUSE, copy_package

    bundle = make_bundle(max_length=12)
    scatter(bundle.model)
    bundle.save(tmp_path / "run")
    before_comparing, before, *rest = translate(HOUSE.parent, tmp_path / "run")
    assert before == [True, "float32", False]

    Translator(bundle).compare_with_numpy(tmp_path / "run")
    in_numpy, before, *rest_by_numpy = translate(HOUSE.parent, tmp_path / "run")
    assert before == [False, "float32", False]
    assert rest_by_numpy == rest
    for (text, total, *others), (expected_text, expected_total, *expected_others) in zip(
        in_numpy, before_comparing, strict=True
    ):
        assert (text, others) == (expected_text, expected_others)
        assert total == pytest.approx(expected_total, abs=1e-5)

    copy_package(tmp_path / "edited", "projection")
    edited, before, *_ = translate(tmp_path / "edited", tmp_path / "run")
    assert before[0]
    assert edited != before_comparing


def test_an_engine_that_is_not_the_usual_one_is_not_compared(tmp_path: Path, notes: Path) -> None:
    bundle = make_bundle()
    bundle.save(tmp_path / "run")
    Translator(bundle, precision="int8").compare_with_numpy(tmp_path / "run")
    Translator(bundle, bundle).compare_with_numpy(tmp_path / "run")
    bundle.model.encoder.register_forward_hook(lambda part, inputs, output: output * 2)
    with pytest.warns(match="Transformer"):
        Translator(bundle).compare_with_numpy(tmp_path / "run")
    assert not notes.exists()
