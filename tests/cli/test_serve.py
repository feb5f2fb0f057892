"""The options of `allyouneed serve`: every setting once, also as an environment variable."""

from pathlib import Path

import pytest

from allyouneed.apps.cli.serve import SERVE_PANELS
from allyouneed.apps.serve.options import ServeConfig
from shell import refusal, run_here

FIELDS = ServeConfig.__dataclass_fields__


def test_every_setting_of_the_server_is_an_option_with_its_default() -> None:
    text = " ".join(run_here("serve", "--help").stdout.decode().replace("│", " ").split())
    for name in FIELDS:
        assert f"--{name.replace('_', '-')} " in text
    assert "Port to listen on; 0: any free one. Default: 5000." in text


def test_the_server_has_few_settings() -> None:
    assert len(FIELDS) <= 20


def test_the_panels_name_settings_that_exist_each_once() -> None:
    names = [name for names in SERVE_PANELS.values() for name in names]
    assert set(names) | {"host", "port"} == set(FIELDS)
    assert len(names) == len(set(names))


def test_an_environment_variable_sets_an_option(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shell.ENVIRONMENT", {"ALLYOUNEED_SERVE_WORKERS": "-2"})
    assert "workers must be at least 0" in refusal("serve", f"{saved}=en-it")
