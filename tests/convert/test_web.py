"""The JavaScript of the exported model in V8: its tokenizer has the ids, texts and pieces of the tokenizers library."""

import json
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from py_mini_racer import MiniRacer
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, normalizers, pre_tokenizers

from allyouneed.apps.convert.html import web_library
from allyouneed.text.normalize import Normalization
from allyouneed.text.sentencepiece import SentencePieceModel, make_tokenizer
from allyouneed.text.tokenizer import Tokenizer
from allyouneed.text.tokenizer_adaptation import adapt_tokenizer
from foreign_tokenizers import foreign_tokenizers
from marian_checkpoints import ENGLISH, ITALIAN, train_spm
from vocabularies import TEXTS, UNSEEN, VOCABULARIES

# Those of Unicode 3.2, whose properties all programs know.
ASSIGNED = [chr(i) for i in range(2**16 + 2**12) if unicodedata.ucd_3_2_0.category(chr(i)) not in ("Cn", "Cs", "Co")]
SPM: dict[str, dict[str, Any]] = {
    "spm": {},
    "spm, small letters": {"normalization_rule_name": "nmt_nfkc_cf"},
    "spm, no map": {"normalization_rule_name": "identity"},
    "spm, pieces across words": {"split_by_whitespace": False},
    "spm of merges": {"model_type": "bpe"},
    "spm of merges across words": {"model_type": "bpe", "split_by_whitespace": False},
}


def sentencepiece(folder: Path, options: dict[str, Any]) -> Tokenizer:
    """Import a model. As where two models share the ids, `symbols` lack some pieces, and have a tag and others."""
    train_spm([*ENGLISH, *ITALIAN], folder / "a.spm", 130, **options)
    model = SentencePieceModel.load(folder / "a.spm")
    pieces = [piece for i, (piece, _) in enumerate(model.pieces) if i % 7]
    return make_tokenizer(model, ["<eos>", ">>ita<<", "<unk>", "ß", "日本", *pieces, "<pad>"], start=None)


def adapted(backend: Backend) -> Tokenizer:
    return Tokenizer.from_json(adapt_tokenizer(backend.to_str())[0])


def with_ties() -> Tokenizer:
    """Make a tokenizer where several segmentations of many words have equal scores, without bytes."""
    pieces = {
        "<unk>": 0.0,
        "a": -1.0,
        "b": -1.0,
        "ab": -2.0,
        "ba": -2.0,
        "aba": -3.0,
        "aa": -2.0,
        "▁": -1.0,
        "▁a": -2.0,
    }
    backend = Backend(models.Unigram(list(pieces.items()), unk_id=0))
    backend.normalizer = normalizers.Sequence([normalizers.Strip(), normalizers.NFD(), normalizers.Lowercase()])
    backend.pre_tokenizer = pre_tokenizers.Metaspace(split=False)
    backend.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return adapted(backend)


def with_first() -> Tokenizer:
    """Make a tokenizer where only the first word of a text begins with ▁, and `<unk>` comes first."""
    words = {"<unk>": 0, "▁a": 1, "b": 2, "▁": 3, "the": 4}
    backend = Backend(models.WordLevel(words, unk_token="<unk>"))
    backend.normalizer = normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    return adapted(backend)


OTHERS: dict[str, Callable[[], Tokenizer]] = {
    "foreign unigram": lambda: adapted(foreign_tokenizers()["unigram"]),
    "foreign merges": lambda: adapted(foreign_tokenizers()["BPE"]),
    "ties": with_ties,
    "first": with_first,
}


class Page:
    """A tokenizer and the page's."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.engine = MiniRacer()
        self.engine.eval(web_library())
        normalization = {"unicode": "NFC", "strip_control": True}
        self.engine.eval(f"var tokenizer = new Tokenizer({tokenizer.to_json()}, {json.dumps(normalization)})")

    def differences(self, texts: list[str]) -> list[str]:
        """Return the texts that the page encodes otherwise, or whose ids it decodes or shows otherwise."""
        tokenizer = self.tokenizer
        if tokenizer.unk_id is None and tokenizer._spellable is not None:
            texts = ["".join(letter for letter in text if letter in "abcdefghij ") for text in texts]
        all_ids = tokenizer.encode_all([Normalization()(text) for text in texts])
        script = """JSON.stringify(%s.map(([text, ids]) => [
            tokenizer.encode(text), tokenizer.decode(ids), ids.map((id) => tokenizer.piece(id))]))"""
        answers = json.loads(str(self.engine.eval(script % json.dumps([*zip(texts, all_ids, strict=True)]))))
        expected = [[ids, tokenizer.decode(ids), tokenizer.pieces(ids)] for ids in all_ids]
        return [ascii(text) for text, *pair in zip(texts, answers, expected, strict=True) if pair[0] != pair[1]]


@pytest.fixture(scope="module", params=[*VOCABULARIES, *OTHERS, *SPM])
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    kind = request.param
    if kind in SPM:
        page = Page(sentencepiece(tmp_path_factory.mktemp("spm"), SPM[kind]))
    else:
        page = Page({**VOCABULARIES, **OTHERS}[kind]())
    assert page.tokenizer.foreign_part() == ""
    yield page
    page.engine.close()


TAGGED = [
    ">>ita<< the river",
    ">>ita<<",
    ">>fra<< a",
    " >>ita<< a",
    ">>ita<<<eos>",
    "<unk> a<sos>",
    "a<pad>b",
    "x\ufeffy \x85z",
    "a\xadb \u0628\u200cb a\u200cb \u0915\u200d\x07\u200c \U0001f469\ufe0f\u200d\U0001f467\u200d",
]


@settings(max_examples=30, deadline=None)
@given(st.one_of(st.text(max_size=20), st.text("abcdefghij the,.é\u0301 日²▁", max_size=30), st.sampled_from(TEXTS)))
def test_the_tokenizer_of_the_page_is_ours(page: Page, text: str) -> None:
    assert page.differences([text]) == []


def test_many_texts_have_the_same_ids(page: Page) -> None:
    rng = Random(1)
    alphabets = [
        ASSIGNED,
        ASSIGNED[:700],
        UNSEEN,
        "ab",
        "ab ▁",
        " \n\t\u3000abé",
        "the rivAB e\u0301日本ﬁ½①ｆ",
        ["<pad>", "<eos>", "a", "<"],
    ]
    mixed = ["".join(rng.choices(rng.choice(alphabets), k=rng.randint(1, 25))) for _ in range(300)]
    words = [" ".join(rng.choices([*ENGLISH[0].split(), "ÀÉ", "㎏", "  ", "the"], k=8)) for _ in range(100)]
    assert page.differences([*TAGGED, *ENGLISH[:20], *ITALIAN[:20], *TEXTS, *mixed, *words]) == []
