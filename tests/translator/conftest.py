from dataclasses import replace

import pytest

from allyouneed.bundle import Bundle
from allyouneed.nn import Transformer
from allyouneed.text.tokenizer import Tokenizer
from allyouneed.translator.definition import DefinitionEngine


@pytest.fixture
def by_nn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `nn/` translate, whatever other engine there is."""
    monkeypatch.setattr(
        "allyouneed.translator.translator.make_engine", lambda bundles, *_, **__: DefinitionEngine(bundles[0].model)
    )


@pytest.fixture
def spaced(bundle: Bundle) -> Bundle:
    """Make an untrained model with a vocabulary of nine letters and the blank, so that it can write several words."""
    tokenizer = Tokenizer.characters("abcdefghi ")
    model = Transformer(replace(bundle.model.config, max_length=40)).eval()
    return replace(bundle, model=model, source_tokenizer=tokenizer, target_tokenizer=tokenizer)
