from pathlib import Path

from allyouneed.apps.serve.keys import KeyFile
from shell import refusal, run_here


def test_a_key_is_made_listed_and_removed(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    made = run_here("keys", "add", path, "--name", "weblate", "--requests-per-minute", 60)
    key = made.stdout.decode().strip()
    entry = KeyFile(path).find(key)
    assert entry is not None
    assert (entry.name, entry.requests_per_minute, entry.characters_per_day) == ("weblate", 60, 0)
    listed = run_here("keys", "list", path).stdout.decode()
    assert "weblate" in listed
    assert key not in listed
    assert entry.sha256 not in listed
    assert run_here("keys", "remove", path, "--name", "weblate").returncode == 0
    assert KeyFile(path).find(key) is None


def test_what_cannot_be_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    assert "No such file" in refusal("keys", "list", path)
    assert "keys add --help shows its arguments" in refusal("keys", "add", path)
    assert "whole numbers of at least 0" in refusal("keys", "add", path, "-n", "one", "--characters-per-day", -1)
    path.write_text("no keys")
    assert "is no file of API keys" in refusal("keys", "add", path, "--name", "one")
    assert path.read_text() == "no keys"
