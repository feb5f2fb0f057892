"""The options of `allyouneed serve`: every setting once, also as an environment variable."""

import re
import sys
from pathlib import Path

import pytest
import uvicorn

from allyouneed.apps.cli.serve import SERVE_PANELS
from allyouneed.apps.serve.keys import KeyFile
from allyouneed.apps.serve.options import ServeConfig
from allyouneed.apps.serve.suggestions import SuggestionStore
from allyouneed.data.readers import read_pairs
from shell import refusal, run_here

FIELDS = ServeConfig.__dataclass_fields__


def test_every_setting_of_the_server_is_an_option_with_its_default() -> None:
    text = " ".join(run_here("serve", "--help").stdout.decode().replace("│", " ").split())
    for name in FIELDS:
        assert f"--{name.replace('_', '-')} " in text
    assert re.search("--port .* Default: 5000", text)


def test_the_server_has_few_settings() -> None:
    assert len(FIELDS) <= 20


def test_the_panels_name_settings_that_exist_each_once() -> None:
    names = [name for names in SERVE_PANELS.values() for name in names]
    assert set(names) | {"host", "port"} == set(FIELDS)
    assert len(names) == len(set(names))


def test_an_environment_variable_sets_an_option(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shell.ENVIRONMENT", {"ALLYOUNEED_SERVE_WORKERS": "-2"})
    assert "workers must" in refusal("serve", f"{saved}=en-it")


def test_settings_of_the_search_are_refused_as_translate_refuses_them(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A setting that is not refused would serve, and the test would wait forever.
    monkeypatch.setattr(uvicorn.Server, "run", lambda *_, **__: pytest.fail("it serves"))
    for words in (
        ["decode.beam=0"],
        ["decode.nonsense=1"],
        ["decode.beam=2", "decode.nbest=9"],
        ["decode.beam=2", "decode.alpha=-1"],
    ):
        assert refusal("serve", saved, *words) == refusal("translate", saved, "-", *words)


def test_settings_of_the_search_reach_the_models(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[dict[str, object]] = []
    module = sys.modules["allyouneed.apps.cli.serve"]
    monkeypatch.setattr(module, "serve_bundles", lambda _, __, decode: served.append(decode))
    assert run_here("serve", saved, "--port", "0", "decode.max_length=3", "decode.copy_spans=urls,tags").returncode == 0
    assert served == [{"max_length": 3, "copy_spans": "urls,tags"}]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    store = SuggestionStore(tmp_path / "suggestions.jsonl", max_size=10_000)
    store.add("one\ttwo\nthree", "uno due tre", "en", "it")
    store.add("four", "for", "en", "it")
    store.add("uno", "one", "it", "en")
    store.add("four", "quattro", "en", "it")
    return store.path


def test_the_latest_suggestions_come_out_as_pairs(path: Path) -> None:
    output = path.with_name("pairs.tsv")
    result = run_here("suggestions", "export", path, "--output", output, "--source", "en")
    assert b"pairs.tsv has 2 pairs" in result.stderr.replace(b"\n", b"")
    assert read_pairs(str(output)) == [("one two three", "uno due tre"), ("four", "quattro")]


def test_suggestions_that_cannot_be_are_refused_in_one_line(path: Path) -> None:
    output = path.with_name("pairs.tsv")
    assert "--source and --target" in refusal("suggestions", "export", path, "-o", output)
    assert "these languages" in refusal("suggestions", "export", path, "-o", output, "--source", "de")
    assert "no file" in refusal("suggestions", "export", output, "-o", path.with_name("x.tsv"))
    output.write_text("a\tb\n")
    assert "already exists" in refusal("suggestions", "export", path, "-o", output, "--source", "en")
    assert str(output) in refusal("suggestions", "export", output, "-o", path.with_name("x.tsv"))


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


def test_keys_that_cannot_be_are_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    assert "No such" in refusal("keys", "list", path)
    assert "keys add --help" in refusal("keys", "add", path)
    assert "at least 0" in refusal("keys", "add", path, "-n", "one", "--characters-per-day", -1)
    path.write_text("no keys")
    assert "API keys" in refusal("keys", "add", path, "--name", "one")
    assert path.read_text() == "no keys"


def test_a_pattern_of_hosts_that_cannot_be_is_refused_in_one_line(saved: Path) -> None:
    for names in ("a*b", "good.org,*b"):
        line = refusal("serve", saved, "--allowed-hosts", names)
        assert re.search(r"'a?\*b'", line)
