"""What every test starts from: one thread, one seed, and a model small enough to think about."""

import ast
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from filelock import FileLock
from hypothesis import HealthCheck, settings
from playwright.sync_api import Browser

from allyouneed.bundle import Bundle
from allyouneed.config import DecodeConfig, ModelConfig
from allyouneed.machine.device import available_cores
from allyouneed.nn import Transformer
from allyouneed.text.tokenizer import Tokenizer
from catalogue import train
from chromium_page import open_browser

SMALL = ModelConfig(
    vocab_size=13,
    d_model=12,
    d_ff=20,
    heads=3,
    encoder_layers=2,
    decoder_layers=3,
    max_length=17,
    dropout=0.1,
)

# Options of the model that the paper does not have: alone, and together with heads of an odd width.
ALL_OPTIONS: dict[str, Any] = {"positions": "rotary", "query_key_norm": True, "d_k": 5, "d_v": 7}
ADJUSTED: list[dict[str, Any]] = [
    {"positions": "rotary"},
    {"query_key_norm": True},
    ALL_OPTIONS,
    {"positions": "sinusoidal-rotary", "query_key_norm": True},
]

# What a shell starts in the background ignores SIGINT, and so would the commands that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# What passes must not depend on how busy the machine is.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


# A browser, Ray, and the programs that exports and imports are compared with.
FOREIGN = {
    "chromium_page", "ctranslate2", "onnx", "onnxruntime", "playwright", "ray", "serve.browser", "transformers",
}  # fmt: skip


@cache
def uses_foreign_programs(test: Path) -> bool:
    """Return True if a file of tests imports a name of `FOREIGN`, at its top or within a test."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(test.read_text(encoding="utf-8"))):
        match node:
            case ast.ImportFrom(module=str(module)):
                names |= {module, module.partition(".")[0]}
            case ast.Import(names=aliases):
                names |= {alias.name.partition(".")[0] for alias in aliases}
            case ast.Call(func=ast.Attribute(attr="importorskip"), args=[ast.Constant(value=str(name)), *_]):
                names.add(name)
    return bool(names & FOREIGN)


@pytest.hookimpl(optionalhook=True)  # pytest-xdist may be switched off
def pytest_xdist_auto_num_workers() -> int:
    """Return how many processes test: one more than there are cores, because tests wait for what they start."""
    return available_cores() + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests of files that use foreign programs as slow; `make test` leaves slow tests out."""
    for item in items:
        if uses_foreign_programs(item.path):
            item.add_marker("slow")


@pytest.fixture(autouse=True)
def _one_thread_one_seed() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    torch.set_flush_denormal(False)  # the command `train` sets it; Hypothesis makes no floats then


@pytest.fixture(autouse=True, scope="session")
def _no_waiting_for_the_disk() -> Iterator[None]:
    """Skip waiting for the disk: power cuts are not tested, and a run of 12 updates would wait 120 times."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="module")  # two browsers cannot be open in one thread
def browser() -> Iterator[Browser]:
    """Open a browser for all tests of a file."""
    with open_browser() as browser:
        yield browser


@pytest.fixture
def config() -> ModelConfig:
    return SMALL


@pytest.fixture(params=["post", "pre"])
def model(request: pytest.FixtureRequest) -> Transformer:
    """Make an untrained model, of either norm, that is not in training."""
    return Transformer(replace(SMALL, norm=request.param)).eval()


@pytest.fixture
def source() -> torch.Tensor:
    """Return two sources, the second padded (pad is 0)."""
    return torch.tensor([[1, 5, 6, 7, 8, 2], [1, 9, 4, 2, 0, 0]])


@pytest.fixture
def target() -> torch.Tensor:
    return torch.tensor([[1, 7, 3, 11, 5, 12, 9], [1, 4, 10, 2, 0, 0, 0]])


@pytest.fixture
def bundle() -> Bundle:
    """Make an untrained model with a vocabulary of ten letters."""
    tokenizer = Tokenizer.characters("abcdefghij")
    config = replace(SMALL, vocab_size=len(tokenizer), pad_id=tokenizer.pad_id)
    return Bundle(
        Transformer(config).eval(),
        tokenizer,
        tokenizer,
        DecodeConfig(beam=2, batch_size=3, extra_length=5),
        card="# Untrained\n",
    )


@pytest.fixture
def saved(bundle: Bundle, tmp_path: Path) -> Path:
    """Save that bundle on disk."""
    bundle.save(tmp_path / "bundle")
    return tmp_path / "bundle"


class Demo(NamedTuple):
    """What `allyouneed demo` printed, in a folder where its model now stands in runs/dates."""

    folder: Path
    output: str


def made_once(tmp_path_factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Copy the folder that `make` fills, which the first of the processes of a test run does for all."""
    base, copy = tmp_path_factory.getbasetemp(), tmp_path_factory.mktemp(name)
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / f"{name}-of-all"
    with FileLock(shared.with_suffix(".lock")):
        if not shared.exists():
            unfinished = shared.with_suffix(".unfinished")
            unfinished.mkdir(exist_ok=True)
            make(unfinished)
            unfinished.rename(shared)
    return shutil.copytree(shared, copy, dirs_exist_ok=True)


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    folder = made_once(tmp_path_factory, "demo", _train_demo)
    return Demo(folder, (folder / "output.txt").read_text())


def _train_demo(folder: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-W", "error", "-m", "allyouneed", "demo"],
        cwd=folder, capture_output=True, env={**os.environ, "COLUMNS": "100"}, check=False, text=True,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    (folder / "output.txt").write_text(result.stdout)


@pytest.fixture(scope="session")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """Return a model that has learned from messages of programs, most of them with placeholders."""
    return Bundle.load(made_once(tmp_path_factory, "catalogue", train))
