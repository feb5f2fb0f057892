"""The examples run, and do what they say."""

import contextlib
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from allyouneed import Translator
from allyouneed.apps.serve.server import listen
from allyouneed.errors import ConfigError
from shell import EXAMPLES, run_example
from waiting import PATIENCE

pytestmark = pytest.mark.slow


def test_translate(saved: Path) -> None:
    lines = run_example("translate.py", saved, "abc", "").splitlines()
    assert lines[0].startswith("abc  →  ")
    assert lines[1] == "  →  "


def test_draw_attention(saved: Path, tmp_path: Path) -> None:
    run_example("draw_attention.py", saved, "abc", tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["translate.py", "draw_attention.py"])
def test_an_example_without_arguments_says_how_it_is_used(name: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refusal:
        run_example(name)
    (usage,) = refusal.value.stderr.splitlines()
    assert f"python examples/{name} runs/dates 1845-01-05" in usage


def test_train_tiny(tmp_path: Path) -> None:
    assert run_example("train_tiny.py", tmp_path / "run").splitlines() == [
        "abcd  →  dcba",
        "hgfa  →  afgh",
        "bee  →  eeb",
    ]


def test_extend(tmp_path: Path) -> None:
    assert run_example("extend.py", tmp_path / "run").splitlines() == ["abcd  →  dcba", "hgfa  →  afgh"]


def free_port() -> int:
    """Find a port that nobody uses; not one that Linux gives the sockets that Ray opens until its server starts."""
    for port in random.sample(range(20_000, 32_000), 100):
        with contextlib.suppress(ConfigError), listen("127.0.0.1", port):
            return port
    raise AssertionError


def test_ray_serve(saved: Path, tmp_path: Path) -> None:
    port = free_port()
    environment = {**os.environ, "HOME": str(tmp_path), "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
    command = [sys.executable, str(EXAMPLES / "ray_serve.py"), f"{saved}=en-it", "--cores", "0.5", "--port", str(port)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == f"Serving on http://127.0.0.1:{port}; Enter stops it.\n"
            body = {"texts": ["abc"], "source": "en", "target": "it"}
            replicas: dict[str, str] = {}
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE) as client:
                while len(replicas) < 2:
                    answer = client.post("/v1/translate", json=body)
                    (translation,) = answer.json()["translations"]
                    replicas[answer.headers["X-Request-ID"].partition("-")[0]] = translation["text"]
            assert set(replicas.values()) == {Translator.load(saved, device="cpu")("abc")}
        finally:
            process.communicate("\n")
    assert process.returncode == 0


def test_every_example_is_run() -> None:
    tests = Path(__file__).parent
    names = [path.stem for path in tests.glob("test_*.py")]  # examples with tests of their own
    for file in (Path(__file__), tests / "convert/test_onnx.py"):
        names += re.findall(r"^def (test_\w+)\(", file.read_text(encoding="utf-8"), re.MULTILINE)
    assert {f"test_{path.stem}" for path in EXAMPLES.glob("*.py")} <= set(names)
