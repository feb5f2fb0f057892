"""The card of an imported model."""

from dataclasses import replace
from pathlib import Path

from allyouneed.apps.convert.imported_card import imported_card
from bundles import make_bundle


def test_licence_and_languages_of_the_checkpoint_are_kept(tmp_path: Path) -> None:
    head = "---\nlanguage: \n- en\n- it\nlicense: apache-2.0\ntags:\n- translation\n---\n# x\nlicense: mit\n"
    (tmp_path / "README.md").write_text(head)
    card = imported_card(make_bundle(), tmp_path, program="Marian")
    assert card.startswith("---\nlanguage:\n- en\n- it\nlicense: apache-2.0\n---\n")
    assert "License: apache-2.0." in card
    assert "Imported from a checkpoint of Marian" in card


def test_named_languages_come_first(tmp_path: Path) -> None:
    card = imported_card(replace(make_bundle(), languages=("de", "fr")), tmp_path, program="Marian")
    assert card.startswith("---\nlanguage:\n- de\n- fr\n---\n")
    assert "Translates de into fr." in card


def test_without_a_card_nothing_is_invented(tmp_path: Path) -> None:
    card = imported_card(make_bundle(), tmp_path, program="Marian")
    assert card.startswith(f"# {tmp_path.name}\n")
    assert "names no license" in card


def test_a_card_that_is_no_card_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_bytes(b"---\nlicense: [" + b"\xff" * 1000 + b"\n---\n")
    assert "names no license" in imported_card(make_bundle(), tmp_path, program="Marian")
