"""The commands that a command prints can be copied into the shell that called it."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from allyouneed import Bundle
from allyouneed.apps.cli.program import command_with_extra, mended_command, next_steps, shell_command
from allyouneed.errors import install_command


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a script, called by its path, in a shell that finds no such program."""
    script = tmp_path / "bin/allyouneed"
    script.parent.mkdir()
    script.touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.defpath)
    monkeypatch.setattr(sys, "argv", ["bin/allyouneed"])
    return script


def test_a_program_that_is_not_on_the_path_is_named_as_it_was_called(script: Path) -> None:
    assert shell_command("train", "--help") == "bin/allyouneed train --help"


def test_a_program_on_the_path_is_named_by_its_name(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(script.parent))
    monkeypatch.setattr(sys, "argv", [str(script)])  # the shell hands on the whole path
    assert shell_command("train", "--help") == "allyouneed train --help"


def test_another_program_of_the_same_name_on_the_path_is_not_taken(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = script.parent.parent / "other"
    other.mkdir()
    (other / "allyouneed").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(other))
    assert shell_command("demo") == "bin/allyouneed demo"


def test_a_module_is_named_with_its_python(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/somewhere/allyouneed/__main__.py"])
    monkeypatch.setattr(sys, "executable", str(script.parent / "python"))
    assert shell_command("demo") == f"{script.parent}/python -m allyouneed demo"
    (script.parent / "python").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(script.parent))
    assert shell_command("demo") == "python -m allyouneed demo"


def test_words_are_quoted_for_the_shell() -> None:
    assert shell_command("translate", Path("my runs/one")).endswith("translate 'my runs/one'")


def test_a_mended_command_has_other_options_in_the_place_of_its_own(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["bin/allyouneed", "train", "a.csv", "--columns", "a,b", "data.columns=c,d", "--minutes=2", "--columns=e,f"]
    monkeypatch.setattr(sys, "argv", words)
    assert mended_command(["--columns", "Text 1,3"]) == "bin/allyouneed train a.csv --minutes=2 --columns 'Text 1,3'"


def test_a_longer_training_comes_first_where_it_helps(bundle: Bundle, tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text("[data]\n")
    first, *rest = next_steps(tmp_path, bundle, longer="train my pairs")
    assert first.startswith("  train longer ")
    assert first.endswith(" train my pairs")
    assert rest == list(next_steps(tmp_path, bundle))


@pytest.mark.parametrize(
    ("words", "extra"), [(("serve", "runs/a"), "serve"), (("export", "runs/a", "a-page", "--to", "html"), "html")]
)
def test_a_command_whose_extra_is_missing_installs_it_first(
    words: Sequence[str], extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command_with_extra(*words) == shell_command(*words)
    monkeypatch.setattr("allyouneed.apps.cli.program.is_installed", lambda library: False)
    assert command_with_extra(*words) == f"{install_command(extra)} && {shell_command(*words)}"


def test_an_export_is_proposed_into_a_new_folder(bundle: Bundle, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/recipe.toml").write_text("[data]\n")
    for name in ("run-page", "run-page-2"):
        (step,) = (step for step in next_steps(tmp_path / "run", bundle) if "allyouneed export" in step)
        assert f"{name} --to html" in step
        (tmp_path / name).mkdir()
