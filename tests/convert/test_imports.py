"""How a checkpoint is recognized, and how an import is written."""

from pathlib import Path

import pytest

from allyouneed.apps.convert.formats import export_bundle
from allyouneed.apps.convert.imports import IMPORTERS, import_checkpoint, importer, recognize
from allyouneed.bundle import Bundle
from allyouneed.errors import CheckpointError, OutputError
from bundles import make_bundle


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export") / "marian"
    export_bundle(make_bundle(), folder, to="huggingface", sentences=1)
    return folder


def test_a_folder_is_recognized_by_its_files(exported: Path) -> None:
    assert recognize(exported).program == "Hugging Face Marian"


def test_every_importer_says_what_it_reads(tmp_path: Path) -> None:
    for module in IMPORTERS:
        one = importer(module)
        assert one.program
        assert one.looks_like
        assert not one.recognizes(tmp_path)


def test_a_folder_of_no_known_kind_is_refused_with_the_kinds_that_are(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no checkpoint of a known kind. Known are Hugging Face Marian"):
        import_checkpoint(tmp_path, tmp_path / "out")
    with pytest.raises(CheckpointError, match="is no folder"):
        import_checkpoint(tmp_path / "missing", tmp_path / "out")


def test_an_output_that_exists_is_refused(exported: Path, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="exists already"):
        import_checkpoint(exported, tmp_path)


def test_languages_that_are_named_are_those_of_the_bundle(exported: Path, tmp_path: Path) -> None:
    import_checkpoint(exported, tmp_path / "out", source_language="en", target_language="it")
    assert Bundle.load(tmp_path / "out").languages == ("en", "it")


def test_a_failed_import_leaves_nothing(exported: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    for file in exported.iterdir():
        (damaged / file.name).write_bytes(file.read_bytes()[: 1000 if file.suffix == ".safetensors" else None])
    with pytest.raises(CheckpointError, match=r"model\.safetensors cannot be read"):
        import_checkpoint(damaged, tmp_path / "out")
    assert [file.name for file in tmp_path.iterdir()] == ["damaged"]
