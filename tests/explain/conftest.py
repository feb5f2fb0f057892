"""One trace, told once, that the tests of this room look at."""

from dataclasses import replace

import pytest
import torch

from allyouneed.apps.explain import Trace, trace_translation
from allyouneed.bundle import Bundle
from allyouneed.config import DecodeConfig
from allyouneed.nn import Transformer
from allyouneed.text.tokenizer import Tokenizer
from allyouneed.translator import Translator
from conftest import SMALL


@pytest.fixture(scope="session")
def translator_of_tests() -> Translator:
    """Make a translator of an untrained model with a vocabulary of ten letters; nobody may change it."""
    torch.manual_seed(0)
    tokenizer = Tokenizer.characters("abcdefghij")
    config = replace(SMALL, vocab_size=len(tokenizer), pad_id=tokenizer.pad_id, encoder_layers=1, decoder_layers=2)
    return Translator(Bundle(Transformer(config).eval(), tokenizer, tokenizer, DecodeConfig(beam=2, extra_length=5)))


@pytest.fixture(scope="session")
def trace(translator_of_tests: Translator) -> Trace:
    return trace_translation(translator_of_tests, "abcd")
