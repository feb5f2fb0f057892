"""A server as a process: it starts, reloads, drains and stops."""

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import copytree

import httpx
import pytest

from allyouneed import Translator
from allyouneed.apps.serve.server import listen, url
from allyouneed.bundle import Bundle
from allyouneed.errors import ConfigError
from shell import ENVIRONMENT, refusal
from waiting import PATIENCE, wait_until

LONG_TEXT = " ".join(["abc dig hij"] * 400)


class Server:
    """`allyouneed serve` in a process, and a client of it."""

    def __init__(self, *words: object) -> None:
        command = [sys.executable, "-m", "allyouneed", "serve", *map(str, words), "--port", "0", "--device", "cpu"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, env=ENVIRONMENT, text=True)
        self.lines = [self._read(), self._read()]
        (address,) = re.findall(r"http://[\d.:]+", self.lines[1])
        self.client = httpx.Client(base_url=address, timeout=PATIENCE)

    def _read(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.readline()

    def translate(self, *texts: str) -> list[str]:
        answer = self.client.post("/v1/translate", json={"texts": texts, "source": "en", "target": "it"})
        assert answer.status_code == 200, answer.text
        return [one["text"] for one in answer.json()["translations"]]

    def metric(self, name: str) -> float:
        lines = self.client.get("/metrics").text.splitlines()
        return next(float(line.split()[-1]) for line in lines if line.startswith(name))

    def accepts_connections(self) -> bool:
        address = self.client.base_url
        with socket.socket() as attempt:  # no request: one that the closing server has just accepted gets no answer
            return attempt.connect_ex((address.host, address.port)) == 0

    def kill(self) -> None:
        self.client.close()
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


@pytest.fixture
def server(served: tuple[Path, Path], tmp_path: Path) -> Iterator[Server]:
    server = Server(copytree(served[0], tmp_path / "bundle"))
    yield server
    server.kill()


def test_a_warning_of_a_library_is_a_line_of_json() -> None:
    code = "import warnings; from allyouneed.apps.serve import server; server._log_as_json(); warnings.warn('old')"
    result = subprocess.run([sys.executable, "-W", "always", "-c", code], capture_output=True, check=True)
    (line,) = map(json.loads, result.stderr.splitlines())
    assert line["level"] == "warning"
    assert "UserWarning: old" in line["message"]


def test_a_server_finishes_what_runs_and_stops(server: Server, served: tuple[Path, Path], tmp_path: Path) -> None:
    assert server.lines[0] == "Serving English → Italian (en-it)\n"
    before = Translator.load(served[0], device="cpu").translate(["abc dig"])
    assert server.translate("abc dig") == before
    form = {"Content-Type": "multipart/form-data; boundary=a"}
    assert server.client.post("/translate", content=b"xx", headers=form).status_code == 400  # a library warns of it

    Bundle.load(served[1]).save(tmp_path / "bundle")
    server.process.send_signal(signal.SIGHUP)
    wait_until(lambda: server.translate("abc dig") != before, server.process)
    assert server.translate("abc dig") == Translator.load(served[1], device="cpu").translate(["abc dig"])

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(server.translate, LONG_TEXT)
        while server.metric("allyouneed_queued_texts") == 0 and not running.done():
            pass
        server.process.terminate()
        assert len(running.result()) == 1
    _, errors = server.process.communicate(timeout=PATIENCE)
    assert server.process.returncode == 0
    lines = [json.loads(line) for line in errors.splitlines()]
    requests = [line for line in lines if line["message"] == "request" and line["route"] == "/v1/translate"]
    assert (requests[0]["status"], requests[0]["texts"], requests[0]["characters"]) == (200, 1, 7)
    assert "abc" not in errors
    assert ("info", "en-it: reloaded") in [(line["level"], line["message"]) for line in lines]


def test_a_second_signal_stops_at_once(server: Server) -> None:
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(server.client.post, "/v1/translate", json={
            "texts": [LONG_TEXT] * 20, "source": "en", "target": "it",
        })  # fmt: skip
        while server.metric("allyouneed_queued_texts") == 0:
            assert not running.done()
        server.process.terminate()
        while server.accepts_connections():  # two signals that come close together would count as one
            pass
        server.process.terminate()
        assert running.exception() or running.result().status_code == 503
    _, errors = server.process.communicate()
    assert server.process.returncode == 128 + signal.SIGTERM
    assert "second signal" in errors


def test_a_port_in_use_is_refused_in_one_line(served: tuple[Path, Path]) -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        assert f" 127.0.0.1, port {port}" in refusal("serve", served[0], "--port", port)
        with pytest.raises(ConfigError, match="--port chooses another"):
            listen("127.0.0.1", port)


def test_what_cannot_be_served_is_refused_in_one_line(served: tuple[Path, Path]) -> None:
    assert "both translate it-en" in refusal("serve", served[1], served[1], served[1])
    assert "port must" in refusal("serve", served[0], "--port", -1)


def test_the_address_is_one_that_a_browser_understands() -> None:
    with listen("0.0.0.0", 0) as listener:
        assert url(listener) == f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_an_address_of_ipv6_stands_in_brackets() -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no ::1")
    with listen("::1", 0) as listener:
        assert url(listener).startswith("http://[::1]:")
