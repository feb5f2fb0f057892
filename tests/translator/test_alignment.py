"""Alignments, and what they are good for."""

import unicodedata

import pytest
import torch

from allyouneed.bundle import Bundle
from allyouneed.config import DecodeConfig, ModelConfig
from allyouneed.decode import Hypothesis
from allyouneed.errors import ConfigError
from allyouneed.nn import Transformer
from allyouneed.text.backends import character_backend, word_backend
from allyouneed.text.tokenizer import Tokenizer
from allyouneed.translator import Translator
from allyouneed.translator.alignment import Aligner, Unit
from untrained import spaced


def test_tokens_are_aligned_as_well_as_words() -> None:
    translator = spaced(extra_length=3)
    (words,) = translator.translations(["ab cde"], align="words")
    (tokens,) = translator.translations(["ab cde"], align="tokens")
    assert words.alignment is not None
    assert tokens.alignment is not None
    assert words.alignment.source == ("ab", "cde")
    assert words.alignment.target == tuple(words.text.split())
    assert tokens.alignment.source == ("a", "b", "␣", "c", "d", "e")
    assert "".join(tokens.alignment.target).replace("␣", " ") == tokens.text
    assert [j for _, j in tokens.alignment.links] == list(range(len(tokens.text)))
    assert all(0 <= i < 6 for i, _ in tokens.alignment.links)
    for i, j in tokens.alignment.links:  # the words are those of the tokens
        if tokens.text[j] != " ":
            word = len("".join(tokens.alignment.target[: j + 1]).replace("␣", " ").split()) - 1
            assert ((0, 0, 0, 1, 1, 1)[i], word) in words.alignment.links
    with pytest.raises(ConfigError, match='"words" or "tokens"; .*True'):
        list(translator.translations(["a"], align=True))  # type: ignore[arg-type]


def test_an_unknown_word_becomes_the_one_it_looked_at() -> None:
    texts = ["a dog sees a cat .", "the dog sleeps ."] * 5
    tokenizer = Tokenizer(word_backend(texts, vocab_size=40))
    assert tokenizer.unk_id is not None
    config = ModelConfig(
        vocab_size=len(tokenizer), pad_id=tokenizer.pad_id, d_model=8, d_ff=8, heads=1,
        encoder_layers=1, decoder_layers=1, max_length=17, dropout=0.0,
    )  # fmt: skip
    model = Transformer(config).eval()
    with torch.no_grad():  # looks at unknown words alone, and says them whenever it may
        model.source_embedding.table.mul_(0.01)
        model.source_embedding.table[tokenizer.unk_id] = 1.0
        last = model.get_submodule("decoder.layers.0.feed_forward_residual.norm")
        last.get_parameter("gain").zero_()
        last.get_parameter("bias").fill_(1.0)
    translator = Translator(
        Bundle(
            model,
            tokenizer,
            tokenizer,
            DecodeConfig(beam=1, max_length=3, copy_untranslatable=False, retry_repetition=False),
        )
    )
    (plain,) = translator.translations(["the okapi sees a dog"])
    assert "<unk>" not in plain.text
    (result,) = translator.using(replace_unknown=True).translations(["the okapi sees a dog"])
    assert "<unk>" not in result.text
    assert set(result.text.split()) <= {"the", "okapi", "sees", "a", "dog"}
    assert len(result.text.split()) == 3


@pytest.mark.parametrize(
    ("source", "written", "expected"),
    [
        ("Kata N;PL", "<unk>aták", "Katák"),
        ("ŵoŵ N;PL", "<unk>o<unk>ok", "ŵoŵok"),
        ("ŵ N;PL", "<unk>a<unk>", "ŵaŵ"),
        ("ŵaŷ N;PL", "<unk>a<unk>a", "ŵaŷa"),
        ("aa N;PL", "<unk>a", "<unk>a"),
    ],
)
@pytest.mark.parametrize("decomposed", [True, False])
def test_an_unknown_character_is_copied_the_second_where_the_second_is_written(
    source: str, written: str, expected: str, decomposed: bool
) -> None:
    known = "aáko N;PL"
    form = unicodedata.normalize("NFD", known) if decomposed else known
    tokenizer = Tokenizer(character_backend(sorted(set(form)), tags=[";PL"], unknown=True, decomposed=decomposed))
    config = ModelConfig(vocab_size=len(tokenizer), pad_id=tokenizer.pad_id, d_model=8, d_ff=8, heads=2)
    translator = Translator(Bundle(Transformer(config).eval(), tokenizer, tokenizer, DecodeConfig()))
    if decomposed:  # w is unknown and the accent is not, or the other way round
        source, written, expected = source.replace("ŵ", "w"), written, expected.replace("ŵ", "w")
        source, expected = source.replace("ŷ", "y"), expected.replace("ŷ", "y")
    assert tokenizer.unk_id is not None
    best = Hypothesis([tokenizer.unk_id], -1.0, -1.0)
    aligner = Aligner(lambda: [translator.model], translator._generator, tokenizer)
    assert aligner.replace_unknown(written, source, tokenizer.encode(source), best) == expected


def test_what_has_no_tokens_is_aligned_with_nothing() -> None:
    translator = spaced()
    aligner = Aligner(lambda: [translator.model], translator._generator, Tokenizer.characters("a"))
    units: tuple[Unit, ...] = ("words", "tokens")
    for unit in units:
        alignment = aligner._align_pair([1, 2], [5, 6], [0, 0], unit)  # <sos> and <eos> alone
        assert (alignment.source, alignment.links) == ((), ())


@pytest.mark.parametrize("source", ["the cat zebra lion", "the\u00a0 cat   zebra  lion"])
def test_each_token_belongs_to_its_word_however_many_blanks_there_are(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = Tokenizer(word_backend(["the cat zebra lion"], vocab_size=20))
    config = ModelConfig(vocab_size=len(tokenizer), pad_id=tokenizer.pad_id, d_model=8, d_ff=8, heads=2)
    translator = Translator(Bundle(Transformer(config).eval(), tokenizer, tokenizer, DecodeConfig()))
    aligner, ids = Aligner(lambda: [translator.model], translator._generator, tokenizer), tokenizer.encode(source)
    assert tokenizer.unk_id is not None
    best = Hypothesis([tokenizer.unk_id], -1.0, -1.0)
    words = {}
    for position, token in enumerate(ids[1:-1], start=1):
        monkeypatch.setattr(aligner, "_attended_positions", lambda *_, at=position: [[at]])
        words[tokenizer.decode([token])] = aligner.replace_unknown("<unk>", source, ids, best)
    assert {token: words[token] for token in source.split()} == {token: token for token in source.split()}
    assert aligner.replace_unknown("<unk> <unk>", source, ids, best).endswith(" <unk>")  # the text names it itself
