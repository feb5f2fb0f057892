"""Bundles that versions of this program wrote, kept with what they translated then: every later version agrees.

Before a release, train two small models with different parts, move their five files to tests/released/NAME, and run
tests/released/store_outputs.py on that folder. Stored folders are never changed again.
"""

import json
import shutil
from itertools import groupby, product
from pathlib import Path

import pytest

from allyouneed import Translator
from allyouneed.bundle import Bundle
from allyouneed.checksums import Checksums

HERE = Path(__file__).parent
STORED = sorted(path.parent for root in ("v01", "released") for path in (HERE / root).glob("*/outputs.jsonl"))
# Another processor multiplies and sums in another order; int8 rounds what it gets.
TOLERANCE = {"float32": 1e-4, "int8": 0.02}


def test_there_are_bundles_of_both_formats_and_all_kinds_of_parts() -> None:
    configs = [json.loads((folder / "config.json").read_text(encoding="utf-8")) for folder in STORED]
    assert {config["format"] for config in configs} == {1, 2}
    now = [config["model"] for config in configs if config["format"] == 2]
    for setting, kinds in (
        ("norm", {"pre", "post"}),
        ("positions", {"sinusoidal", "learned"}),
        ("tied_embeddings", {"all", "target"}),
    ):
        assert {model[setting] for model in now} == kinds
    for folder in (HERE / "released").glob("0.*"):
        rows = [json.loads(line) for line in (folder / "outputs.jsonl").read_text(encoding="utf-8").splitlines()]
        assert {(row["precision"], row["beam"]) for row in rows} == set(product(("float32", "int8"), (1, 4)))
    assert sum(file.stat().st_size for folder in STORED for file in folder.iterdir()) < 2_000_000


@pytest.mark.parametrize("folder", STORED, ids=lambda folder: folder.name)
def test_a_stored_bundle_translates_as_it_did(folder: Path) -> None:
    rows = [json.loads(line) for line in (folder / "outputs.jsonl").read_text(encoding="utf-8").splitlines()]
    for (precision, beam), then in groupby(rows, key=lambda row: (row["precision"], row["beam"])):
        stored = list(then)
        translator = Translator.load(folder, device="cpu", precision=precision, beam=beam)
        now = list(translator.translations([row["source"] for row in stored]))
        assert [translation.text for translation in now] == [row["text"] for row in stored]
        assert [translation.confidence for translation in now] == pytest.approx(
            [row["confidence"] for row in stored], abs=TOLERANCE[precision]
        )


@pytest.mark.parametrize("folder", STORED, ids=lambda folder: folder.name)
def test_a_stored_bundle_that_is_saved_again_is_one_of_the_present(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "old")
    Bundle.load(tmp_path / "old").save(tmp_path / "new")
    (row, *_) = map(json.loads, (folder / "outputs.jsonl").read_text(encoding="utf-8").splitlines())
    translator = Translator.load(tmp_path / "new", device="cpu", precision=row["precision"], beam=row["beam"])
    assert translator(row["source"]) == row["text"]
    assert Checksums(tmp_path / "new").present
