from pathlib import Path
from typing import Any

import pytest

from allyouneed.config import DataConfig, ModelConfig
from allyouneed.errors import ConfigError
from allyouneed.text.tokenizer import Tokenizer
from allyouneed.text.vocabulary import Vocabulary, train_vocabulary, vocab_size

SOURCES = ["a brown dog runs", "two brown dogs ran"] * 5
TARGETS = ["ein brauner Hund rennt", "zwei braune Hunde rannten"] * 5


def learned(**settings: Any) -> Vocabulary:
    return train_vocabulary(DataConfig(**settings), lambda: iter(SOURCES), lambda: iter(TARGETS), pairs=10)


@pytest.mark.parametrize(
    "settings",
    [
        {"vocabulary": "bpe", "vocab_size": 300},
        {"vocabulary": "unigram", "vocab_size": 300},
        {"vocabulary": "bpe", "vocab_size": 300, "split": "spaces"},
        {"vocabulary": "unigram", "vocab_size": 300, "split": "spaces"},
        {"vocabulary": "characters", "byte_fallback": True},
    ],
    ids=lambda settings: settings["vocabulary"],
)
def test_no_text_is_unknowable(settings: dict[str, Any]) -> None:
    vocabulary = learned(**settings)
    assert vocabulary.joint
    for text in ("a brown dog", "☃ Ж\u0301 <pad> <0x41> <unk>", "zwei  Katzen"):
        ids = vocabulary.source.encode(text)
        assert vocabulary.source.unk_id not in ids
        assert vocabulary.source.decode(ids) == text


def test_words_are_whole_or_unknown() -> None:
    words = learned(vocabulary="words").source
    assert words.pieces(words.encode("brown dogs sing")[1:-1]) == ["␣brown", "␣dogs", "<unk>"]
    assert words.decode(words.encode("two dogs runs")) == "two dogs runs"
    assert words.unk_id == len(words) - 1


@pytest.mark.parametrize("kind", ["bpe", "words"])
def test_codes_of_letters_and_digits_are_whole_where_only_spaces_split(kind: Any, tmp_path: Path) -> None:
    texts = ["K AH0 T <pad>", "T OW1 L <pad> AH0", "K OW1 AH0 <pad>"] * 9
    data = DataConfig(vocabulary=kind, vocab_size=300, split="spaces")
    train_vocabulary(data, lambda: iter(texts), lambda: iter(texts), pairs=len(texts)).save(tmp_path)
    codes = Vocabulary.load(tmp_path, joint=True).source
    assert codes.pieces(codes.encode("T AH0 OW1")[1:-1]) == ["␣T", "␣AH0", "␣OW1"]
    ids = codes.encode("K <pad> AH0")[1:-1]
    assert codes.pad_id not in ids
    assert codes.decode(ids) == "K <pad> AH0"


def test_each_side_may_have_its_own_and_both_are_kept(tmp_path: Path) -> None:
    apart = learned(vocab_size=300, joint_vocabulary=False)
    apart.save(tmp_path)
    again = Vocabulary.load(tmp_path, joint=False)
    assert again.fingerprint() == apart.fingerprint()
    assert again.target.encode("Hunde") == apart.target.encode("Hunde") != apart.source.encode("Hunde")
    model = apart.with_vocab_size(ModelConfig(tied_embeddings="target"))
    assert (model.vocab_size, model.target_vocab_size) == (len(apart.source), len(apart.target))
    with pytest.raises(ConfigError, match='set model.tied_embeddings to "target" or "none"'):
        apart.with_vocab_size(ModelConfig(tied_embeddings="all"))


def test_the_size_follows_from_the_number_of_pairs_unless_it_is_set() -> None:
    sizes = [vocab_size(DataConfig(), pairs) for pairs in (1_000, 20_000, 30_000, 500_000, 1_000_000, 9_000_000)]
    assert sizes == [1_000, 4_000, 8_000, 8_000, 16_000, 32_000]
    assert vocab_size(DataConfig(vocab_size=700), 30_000) == 700


def test_vocabularies_differ_in_their_first_other_id() -> None:
    one, another = Tokenizer.characters("abc"), Tokenizer.characters("abd")
    longer = Tokenizer.train_bpe(SOURCES, vocab_size=262)
    shorter = Tokenizer.train_bpe(SOURCES, vocab_size=260)
    assert Vocabulary(one, one).first_difference(Vocabulary(one, Tokenizer.characters("abc"))) == ""
    assert Vocabulary(one, one).first_difference(Vocabulary(one, another)) == (
        "id 2 of the target is 'c' in one and 'd' in the other"
    )
    assert Vocabulary(longer, longer).first_difference(Vocabulary(shorter, shorter)) == (
        "the source has 262 ids in one and 260 in the other"
    )
