"""What the Dockerfile, the systemd unit and the page about servers name exists."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from shutil import which

import pytest

from allyouneed.apps.serve import health
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


def test_the_container_has_nothing_to_compile_at_its_start() -> None:
    """Its user cannot write what it compiles, so that every start, and every health check, would compile it again."""
    (install,) = re.findall(r"uv pip install(?:.*\\\n)*?.*'\.\[(.+?)\]'", DOCKERFILE)
    assert "fast" not in install.split(",")  # which compiles kernels
    assert "--compile-bytecode" in DOCKERFILE  # uv does not without it
    assert {"pyproject.toml", "hatch_build.py", "src"} <= set(DOCKERFILE.replace("\n", " ").split())  # the engine


@pytest.mark.parametrize("allowed_hosts", [(), ("translate.example",)])
def test_the_health_check_of_the_image_finds_the_server_at_any_port(allowed_hosts: tuple[str, ...]) -> None:
    (command,) = re.findall(r"^HEALTHCHECK .*CMD (\[.*\])$", DOCKERFILE, re.MULTILINE)
    assert json.loads(command) == ["python", "-m", health.__name__]
    with running(stub_app(host="0.0.0.0", allowed_hosts=allowed_hosts)) as url:
        port = int(url.rpartition(":")[2])
        tables = [table for table in health.SOCKET_TABLES if table.exists()]
        addresses = [one for table in tables for one in health.listening_addresses(table.read_text(), os.getuid())]
        (address,) = [one for one in addresses if one.port == port]
        assert health.answers(address)
        assert subprocess.run([sys.executable, *json.loads(command)[1:]], check=False).returncode == 0
    assert not health.answers(address)


def test_the_health_check_reads_what_the_user_listens_on(tmp_path: Path) -> None:
    rest = "00000000:0000 {} 00000000:00000000 00:00000000 00000000 {} 0 35 1 0"
    rows = [
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode",
        f"   0: 00000000:1770 {rest.format('0A', 10001)}",
        f"   1: 020011AC:1388 {rest.format('0A', 10001)}",
        f"   2: {'0' * 32}:1389 {rest.format('0A', 10001)}",
        f"   3: 00000000:1770 {rest.format('0A', 0)}",  # of another user
        f"   4: 00000000:1770 {rest.format('01', 10001)}",  # a connection
    ]
    assert [*health.listening_addresses("\n".join(rows), 10001)] == [
        ("127.0.0.1", 6000), ("172.17.0.2", 5000), ("::1", 5001),
    ]  # fmt: skip
    (tmp_path / "tcp").write_text("\n".join([rows[0], f"   0: 0100007F:0001 {rest.format('0A', os.getuid())}"]))
    assert health.exit_code([tmp_path / "tcp", tmp_path / "tcp6"]) == 1


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
