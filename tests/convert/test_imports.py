"""All imports: folders that are recognized, refusals, and the card of what was imported."""

from dataclasses import replace
from pathlib import Path

import pytest

from allyouneed.apps.convert.exports import export_bundle
from allyouneed.apps.convert.imports import import_checkpoint, imported_card, recognize
from allyouneed.bundle import Bundle
from allyouneed.errors import CheckpointError, OutputError
from allyouneed.translator import Translator
from bundles import make_bundle


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export") / "marian"
    export_bundle(make_bundle(), folder, to="huggingface", sentences=1)
    return folder


def test_a_folder_is_recognized_by_its_files(exported: Path) -> None:
    assert recognize(exported) == "huggingface"


def test_a_folder_of_no_known_kind_is_refused_with_the_kinds_that_are(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="Marian"):
        import_checkpoint(tmp_path, tmp_path / "out")
    with pytest.raises(CheckpointError, match="not a folder"):
        import_checkpoint(tmp_path / "missing", tmp_path / "out")


def test_an_output_that_exists_is_refused(exported: Path, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="already exists"):
        import_checkpoint(exported, tmp_path)


def test_languages_that_are_named_are_those_of_the_bundle(exported: Path, tmp_path: Path) -> None:
    import_checkpoint(exported, tmp_path / "out", source_language="en", target_language="it")
    assert Bundle.load(tmp_path / "out").languages == ("en", "it")


def test_characters_without_width_do_not_reach_an_imported_model(exported: Path, tmp_path: Path) -> None:
    translator = Translator(import_checkpoint(exported, tmp_path / "out"))

    def read(text: str) -> list[list[int]]:
        return [segment.request.source for segment in translator.split([text]).segments]

    assert read("a\u00adb\u200bc\ufeff") == read("abc")
    assert read("abc") != read("ab")


def test_a_failed_import_leaves_nothing(exported: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    for file in exported.iterdir():
        (damaged / file.name).write_bytes(file.read_bytes()[: 1000 if file.suffix == ".safetensors" else None])
    with pytest.raises(CheckpointError, match=r"model\.safetensors"):
        import_checkpoint(damaged, tmp_path / "out")
    assert [file.name for file in tmp_path.iterdir()] == ["damaged"]


def test_licence_and_languages_of_the_checkpoint_are_kept(tmp_path: Path) -> None:
    head = "---\nlanguage: \n- en\n- it\nlicense: apache-2.0\ntags:\n- translation\n---\n# x\nlicense: mit\n"
    (tmp_path / "README.md").write_text(head)
    card = imported_card(make_bundle(), tmp_path, program="Marian")
    assert card.startswith("---\nlanguage:\n- en\n- it\nlicense: apache-2.0\n---\n")
    assert "License: apache-2.0." in card
    assert "checkpoint of Marian" in card


def test_named_languages_come_first(tmp_path: Path) -> None:
    card = imported_card(replace(make_bundle(), languages=("de", "fr")), tmp_path, program="Marian")
    assert card.startswith("---\nlanguage:\n- de\n- fr\n---\n")
    assert "Translates de into fr." in card


def test_without_a_card_nothing_is_invented(tmp_path: Path) -> None:
    card = imported_card(make_bundle(), tmp_path, program="Marian")
    assert card.startswith(f"# {tmp_path.name}\n")
    assert "no license" in card


def test_a_card_that_is_no_card_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_bytes(b"---\nlicense: [" + b"\xff" * 1000 + b"\n---\n")
    assert "no license" in imported_card(make_bundle(), tmp_path, program="Marian")
