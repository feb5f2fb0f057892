"""A running application over an untrained model that translates the letters a to j."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from fastapi.testclient import TestClient

from allyouneed.apps.serve.app import create_app
from allyouneed.apps.serve.options import ServeConfig
from allyouneed.bundle import Bundle
from allyouneed.config import DecodeConfig
from allyouneed.nn import Transformer
from allyouneed.text.tokenizer import Tokenizer
from conftest import SMALL


@pytest.fixture
def anyio_backend() -> str:
    """Name the backend of tests that are coroutines."""
    return "asyncio"


LETTERS = "abcdefghij "


def save_bundle(folder: Path, languages: tuple[str, str], *, seed: int = 0) -> Path:
    """Save an untrained bundle whose translations are gibberish, but always the same."""
    torch.manual_seed(seed)
    tokenizer = Tokenizer.characters(LETTERS)
    sizes = replace(SMALL, vocab_size=len(tokenizer), pad_id=tokenizer.pad_id, max_length=40)
    decode = DecodeConfig(beam=2, batch_size=8, extra_length=5)
    Bundle(Transformer(sizes).eval(), tokenizer, tokenizer, decode, languages=languages).save(folder)
    return folder


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Save bundles of en-it and it-en on disk."""
    folder = tmp_path_factory.mktemp("served")
    return save_bundle(folder / "en-it", ("en", "it")), save_bundle(folder / "it-en", ("it", "en"), seed=1)


@pytest.fixture
def client(served: tuple[Path, Path]) -> Iterator[TestClient]:
    """Make a client of a server of both."""
    with TestClient(create_app(served, ServeConfig(workers=2, device="cpu")), base_url="http://localhost") as client:
        yield client
