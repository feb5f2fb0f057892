"""What the Dockerfile, the systemd unit and the page about servers name exists."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from shutil import which

import pytest

from allyouneed.apps.serve.options import ServeConfig
from serve.live import running
from serve.stub import stub_app

ROOT = Path(__file__).parent.parent
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
UNIT = (ROOT / "deploy/allyouneed.service").read_text(encoding="utf-8")
PAGE = (ROOT / "docs/serving.md").read_text(encoding="utf-8")
FIELDS = ServeConfig.__dataclass_fields__


def test_the_image_installs_extras_that_exist_and_runs_as_a_user_without_rights() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (extras,) = re.findall(r"'\.\[(.+?)\]'", DOCKERFILE)
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
    for line in re.findall(r"^COPY (.+) \S+$", DOCKERFILE, re.MULTILINE):
        for name in line.split():
            assert (ROOT / name).exists()
            assert f"!{name}" in (ROOT / ".dockerignore").read_text().split()
    assert DOCKERFILE.index("\nUSER ") < DOCKERFILE.index("\nENTRYPOINT")
    assert re.findall(r'^ENTRYPOINT \["(\w+)", "serve"\]', DOCKERFILE, re.MULTILINE) == [*project["scripts"]]
    assert "HEALTHCHECK" in DOCKERFILE


@pytest.mark.parametrize("allowed_hosts", [(), ("translate.example",)])
def test_the_health_check_of_the_image_tells_a_server_from_none(
    allowed_hosts: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    (command,) = re.findall(r"^HEALTHCHECK .*CMD (\[.*\])$", DOCKERFILE, re.MULTILINE)
    check = [sys.executable, *json.loads(command)[1:]]
    with running(stub_app(host="0.0.0.0", allowed_hosts=allowed_hosts)) as url:
        monkeypatch.setenv("ALLYOUNEED_SERVE_PORT", url.rpartition(":")[2])
        assert subprocess.run(check, check=False).returncode == 0
    assert subprocess.run(check, check=False, stderr=subprocess.DEVNULL).returncode == 1


def test_every_variable_is_one_of_the_server() -> None:
    variables = re.findall(r"ALLYOUNEED_SERVE_(\w+)", DOCKERFILE + UNIT + PAGE)
    assert variables
    assert {name.lower() for name in variables} <= set(FIELDS)


def test_every_option_of_the_page_is_one_of_the_server() -> None:
    others = {"beam", "help", "replicas", "soak"}
    options = {name.removeprefix("no-").replace("-", "_") for name in re.findall(r"`[^`]*--([a-z][a-z-]+)", PAGE)}
    assert len(options) > 10
    assert options - others <= set(FIELDS)


def test_the_unit_waits_longer_for_the_end_than_the_server_for_its_requests() -> None:
    (seconds,) = re.findall(r"^TimeoutStopSec=(\d+)$", UNIT, re.MULTILINE)
    assert int(seconds) > ServeConfig().drain_timeout
    if which("systemd-analyze"):
        checked = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", ROOT / "deploy/allyouneed.service"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        mistakes = [line for line in checked.stderr.splitlines() if "allyouneed.service:" in line]
        assert [line for line in mistakes if "not executable" not in line] == []
