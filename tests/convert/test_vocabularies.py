"""The tokenizer beside an export spells what the bundle spells."""

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Backend

from allyouneed.apps.convert.vocabularies import save_tokenizer
from allyouneed.text.normalize import Normalization
from allyouneed.text.tokenizer import Tokenizer
from vocabularies import TEXTS, UNSEEN, VOCABULARIES


@pytest.fixture(scope="module", params=[kind for kind in VOCABULARIES if kind != "characters"])
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Tokenizer, Backend]:
    tokenizer, path = VOCABULARIES[request.param](), tmp_path_factory.mktemp("out") / "tokenizer.json"
    save_tokenizer(tokenizer, Normalization(), path)
    return tokenizer, Backend.from_file(str(path))


@settings(max_examples=50, deadline=None)
@given(st.one_of(st.text("abcdefghij the,.é\u0301 日²\t\n\x07", max_size=30), st.text(UNSEEN), st.sampled_from(TEXTS)))
def test_it_normalizes_and_spells_as_the_bundle_does(saved: tuple[Tokenizer, Backend], text: str) -> None:
    tokenizer, backend = saved
    ids = tokenizer.encode(Normalization()(text))
    unknown = len(tokenizer) - 1 if tokenizer.unk_id is None else tokenizer.unk_id
    assert [min(i, unknown) for i in backend.encode(text).ids] == ids
    decoded = backend.decode(ids)  # the library takes letters apart, but does not put them together
    assert tokenizer.decode(ids) == (unicodedata.normalize("NFC", decoded) if "NFD" in tokenizer.to_json() else decoded)


def test_a_vocabulary_of_characters_knows_no_other(tmp_path: Path) -> None:
    tokenizer = VOCABULARIES["characters"]()
    save_tokenizer(tokenizer, Normalization(), tmp_path / "tokenizer.json")
    backend = Backend.from_file(str(tmp_path / "tokenizer.json"))
    assert backend.encode("a\tb").ids == tokenizer.encode("a b")
    with pytest.raises(Exception, match=r"Missing \[UNK\] token"):
        backend.encode("ax")
