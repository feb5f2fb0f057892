"""The engine is compared with the definition as it is now."""

from pathlib import Path

import pytest

from allyouneed.native import definition


def test_the_noted_definition_is_the_one_that_these_tests_compare() -> None:
    """After an edit of nn/ or younger/: run tests/native, then `python -m allyouneed.native.definition`."""
    assert definition.is_as_compared()


def test_an_edit_of_any_part_of_the_model_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for part in ("nn/attention.py", "younger/rotary.py"):
        (tmp_path / part).parent.mkdir()
        (tmp_path / part).write_text("x = 1\n")
    monkeypatch.setattr(definition, "PACKAGE", tmp_path)
    before = definition.definition_digest()
    for part in ("nn/attention.py", "younger/rotary.py"):
        (tmp_path / part).write_text("x = 2\n")
        after = definition.definition_digest()
        assert after != before
        before = after
