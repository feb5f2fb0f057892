"""A browser, and a server whose page it visits."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from allyouneed.apps.serve.app import create_app
from allyouneed.apps.serve.options import ServeConfig
from serve.browser import Visitor, save_successors
from serve.live import running


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return save_successors(tmp_path_factory.mktemp("bundles"))


@pytest.fixture(scope="module")
def suggestions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("suggestions") / "pairs.jsonl"


@pytest.fixture(scope="module")
def url(bundles: list[Path], suggestions: Path) -> Iterator[str]:
    config = ServeConfig(device="cpu", workers=2, suggestions=str(suggestions), max_characters=500)
    with running(create_app(bundles, config)) as address:
        yield address


@pytest.fixture
def visit(browser: Browser, url: str) -> Iterator[Visitor]:
    visitor = Visitor(browser, url)
    yield visitor
    visitor.close()
    assert visitor.errors == []
