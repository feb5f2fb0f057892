from pathlib import Path
from typing import Any

import pytest

from allyouneed.config import DataConfig, ModelConfig
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


def test_symbols_are_what_stands_between_spaces_wherever_in_the_text(tmp_path: Path) -> None:
    texts = ["K AH0 T <pad>", "T OW1 L <pad> AH0", "K OW1 AH0 <pad>"]
    data = DataConfig(vocabulary="symbols")
    train_vocabulary(data, lambda: iter(texts), lambda: iter(texts), pairs=len(texts)).save(tmp_path)
    codes = Vocabulary.load(tmp_path, joint=True).source
    assert codes.pieces(codes.encode("T AH0 OW1")[1:-1]) == ["␣T", "␣AH0", "␣OW1"]
    assert codes.unk_id in codes.encode("T AH1 OW1")
    ids = codes.encode("K <pad> AH0")[1:-1]
    assert codes.pad_id not in ids
    assert codes.decode(ids) == "K <pad> AH0"


def test_a_tag_is_one_token_and_an_unknown_character_another(tmp_path: Path) -> None:
    sources = [f"{word} {tags}" for word in ("run", "walk", "ßäen") for tags in ("V;PST", "V;PRS;3", "N;PL")] * 3
    data = DataConfig(vocabulary="characters")
    learned = train_vocabulary(data, lambda: iter(sources), lambda: iter(["ran", "walks"] * 9), pairs=27)
    learned.save(tmp_path)
    tokenizer = Vocabulary.load(tmp_path, joint=True).source
    ids = tokenizer.encode("warn V;PRS;PL")[1:-1]
    assert tokenizer.pieces(ids) == ["w", "a", "r", "n", "␣V", ";PRS", ";PL"]
    assert tokenizer.decode(ids) == "warn V;PRS;PL"
    assert tokenizer.pieces(tokenizer.encode("oŵ V;PST")[1:-1]) == ["<unk>", "<unk>", "␣V", ";PST"]


def test_the_kinds_of_the_sides_may_differ_and_then_nothing_is_shared() -> None:
    vocabulary = learned(source_vocabulary="characters", target_vocabulary="symbols")
    assert vocabulary.source.pieces(vocabulary.source.encode("dog")[1:-1]) == ["d", "o", "g"]
    assert vocabulary.target.pieces(vocabulary.target.encode("zwei Katzen")[1:-1]) == ["␣zwei", "<unk>"]
    assert vocabulary.with_vocab_size(ModelConfig()).tied_embeddings == "target"
    assert vocabulary.with_vocab_size(ModelConfig(tied_embeddings="none")).tied_embeddings == "none"


def test_each_side_may_have_its_own_and_both_are_kept(tmp_path: Path) -> None:
    apart = learned(vocab_size=300, joint_vocabulary=False)
    apart.save(tmp_path)
    again = Vocabulary.load(tmp_path, joint=False)
    assert again.fingerprint() == apart.fingerprint()
    assert again.target.encode("Hunde") == apart.target.encode("Hunde") != apart.source.encode("Hunde")
    model = apart.with_vocab_size(ModelConfig(tied_embeddings="target"))
    assert (model.vocab_size, model.target_vocab_size) == (len(apart.source), len(apart.target))


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
