import json
import re
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sentencepiece import SentencePieceProcessor

from allyouneed import Bundle, ConfigError, DataError, Recipe, Translator, fit
from allyouneed.config import DataConfig, ModelConfig
from allyouneed.run import source_paths
from allyouneed.text.backends import bpe_backend
from allyouneed.text.tokenizer import Tokenizer
from allyouneed.text.vocabulary import Vocabulary
from allyouneed.text.vocabulary_files import load_vocabulary
from allyouneed.text.vocabulary_training import train_vocabulary, vocab_size
from foreign_tokenizers import LINES, foreign_tokenizers
from marian_checkpoints import ENGLISH, train_spm
from messages import numbers_in
from runs import TINY, Notebook, StopAt
from shell import refusal, run_here

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
    assert tokenizer.unknown_characters("oŵ V;PST") == ["o", "ŵ"]


def test_an_unknown_tag_is_unknown_even_if_it_begins_as_a_known_one() -> None:
    sources = [f"{word} {tags}" for word in ("run", "Walk") for tags in ("V;PST", "V;PRS;3", "N;PL")] * 3
    source = train_vocabulary(
        DataConfig(vocabulary="characters"), lambda: iter(sources), lambda: iter(["ran"] * 18), pairs=18
    ).source
    pieces = source.pieces(source.encode("run V;PRT")[1:-1])
    assert pieces[:4] == ["r", "u", "n", "␣V"]
    assert set(pieces[4:]) == {"<unk>"}
    seen = {i for text in (*sources, "ran") for i in source.encode(text)}
    never = {source.pad_id, source.unk_id}
    assert set(range(len(source))) - seen == never, "every other token occurs in the texts"


def test_characters_are_taken_apart_where_many_of_them_occur_in_one_text_alone() -> None:
    syllables = [chr(0xAC00 + 588 * first + 28 * vowel) for first in range(10) for vowel in range(10)]
    data = DataConfig(vocabulary="characters")

    def pieces(texts: list[str]) -> list[str]:
        source = train_vocabulary(data, lambda: iter(texts), lambda: iter(["a"] * len(texts)), pairs=len(texts)).source
        return source.pieces(source.encode(f"{syllables[7]}é V;PL")[1:-1])

    letters = list(unicodedata.normalize("NFD", syllables[7]))
    assert pieces([f"{one}é V;PL" for one in syllables]) == [*letters, "e", "\N{COMBINING ACUTE ACCENT}", "␣V", ";PL"]
    assert pieces([f"{one}é V;PL" for one in syllables * 2]) == [syllables[7], "é", "␣V", ";PL"]


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
    longer = Tokenizer(bpe_backend(SOURCES, vocab_size=262))
    shorter = Tokenizer(bpe_backend(SOURCES, vocab_size=260))
    assert Vocabulary(one, one).first_difference(Vocabulary(one, Tokenizer.characters("abc"))) == ""
    difference = Vocabulary(one, one).first_difference(Vocabulary(one, another))
    assert re.match("id 2 .*target .*'c' .*'d' ", difference)
    difference = Vocabulary(longer, longer).first_difference(Vocabulary(shorter, shorter))
    assert "source" in difference
    assert numbers_in(difference) == [262, 260]


def recipe(**data: object) -> Recipe:
    """Make a recipe of a few updates on dates, with the vocabulary of a file."""
    return replace(TINY, data=replace(TINY.data, vocabulary="bpe", **data))  # type: ignore[arg-type]


def save_learned(path: Path, text: str = "0123456789-") -> str:
    """Save a small vocabulary of ours, and return its file."""
    Tokenizer(bpe_backend([text], vocab_size=264)).save(path)
    return str(path)


def test_a_folder_has_the_vocabularies_of_its_model(saved: Path, tmp_path: Path) -> None:
    one, another = Tokenizer.characters("abc"), Tokenizer.characters("xyz")
    (tmp_path / "two").mkdir()
    one.save(tmp_path / "two/tokenizer.json")
    another.save(tmp_path / "two/tokenizer.target.json")
    assert load_vocabulary(str(saved)).vocabulary.joint
    vocabulary, notes = load_vocabulary(str(tmp_path / "two"))
    assert (vocabulary.source.names(), vocabulary.target.names(), notes) == (one.names(), another.names(), [])
    both = load_vocabulary((str(tmp_path / "two/tokenizer.target.json"), str(saved / "tokenizer.json"))).vocabulary
    assert both.source.names() == another.names()


def test_what_is_no_vocabulary_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"empty .*tokenizer\.json"):
        load_vocabulary(str(tmp_path / "empty"))
    with pytest.raises(DataError, match="nothing"):
        load_vocabulary(str(tmp_path / "nothing"))
    for content in (b"\xff", b"{", b"{}", b"[" * 100_000, b'{"model": {"type": "BPE", "vocab": {"a": 0}}}'):
        (tmp_path / "file").write_bytes(content)
        with pytest.raises(DataError, match="file"):
            load_vocabulary(str(tmp_path / "file"))


@pytest.mark.parametrize("kind", ["byte-level BPE", "words"])
def test_a_run_has_the_vocabulary_of_the_file_and_says_what_was_added(kind: str, tmp_path: Path) -> None:
    foreign_tokenizers()[kind].save(str(tmp_path / "theirs.json"))
    notebook = Notebook()
    bundle = fit(recipe(tokenizer=str(tmp_path / "theirs.json")), tmp_path / "run", callback=notebook)
    expected, notes = load_vocabulary(str(tmp_path / "theirs.json"))
    assert bundle.source_tokenizer.encode_all(LINES) == expected.source.encode_all(LINES)
    assert [line.removeprefix("vocabulary: ") for line in notebook.lines if line.startswith("vocabulary")] == notes
    assert isinstance(Translator(Bundle.load(tmp_path / "run"))("1845-01-05"), str)


def test_a_sentencepiece_model_keeps_its_ids(tmp_path: Path) -> None:
    train_spm(ENGLISH, tmp_path / "a.model", 120)
    vocabulary, notes = load_vocabulary(str(tmp_path / "a.model"))
    ours = vocabulary.source
    reference = SentencePieceProcessor(model_file=str(tmp_path / "a.model"))
    expected = ["'<s>' .*<sos>.* 1", "'</s>' .*<eos>.* 2", f"<pad> .* {len(reference)}"]
    assert all(re.fullmatch(f".*: {part}", note) for part, note in zip(expected, notes, strict=True))
    assert (ours.unk_id, ours.sos_id, ours.eos_id, ours.pad_id) == (0, 1, 2, len(reference))
    for line in [*ENGLISH, "Ünknown ☃ <s> </s> <eos>", "  a  b ", ""]:
        assert ours.encode(line) == [1, *reference.encode(line), 2]
    assert [ours.decode(ours.encode(line)) for line in ENGLISH] == reference.decode(reference.encode(ENGLISH))
    bundle = fit(recipe(tokenizer=str(tmp_path / "a.model")), tmp_path / "run")
    assert bundle.source_tokenizer.fingerprint() == ours.fingerprint()
    train_spm(ENGLISH, tmp_path / "b.model", 120, model_type="word")
    with pytest.raises(DataError, match=r"b\.model .*BPE"):
        load_vocabulary(str(tmp_path / "b.model"))


def test_each_side_may_have_a_file_and_then_the_targets_embeddings_alone_are_tied(tmp_path: Path) -> None:
    files = (save_learned(tmp_path / "a.json"), save_learned(tmp_path / "b.json", "January February March"))
    bundle = fit(recipe(tokenizer=files), tmp_path / "run")
    assert bundle.model.config.tied_embeddings == "target"
    assert bundle.source_tokenizer.names() != bundle.target_tokenizer.names()


def test_a_resumed_run_notices_another_content_of_the_file(tmp_path: Path) -> None:
    plan = recipe(tokenizer=save_learned(tmp_path / "tokenizer.json"))
    with pytest.raises(KeyboardInterrupt):
        fit(plan, tmp_path / "run", callback=StopAt(6))
    save_learned(tmp_path / "tokenizer.json", "January February")
    with pytest.raises(DataError, match="vocabulary was"):
        fit(plan, tmp_path / "run", resume=True)
    save_learned(tmp_path / "tokenizer.json")
    fit(plan, tmp_path / "run", resume=True)


def test_a_shared_store_has_the_pairs_of_each_vocabulary(tmp_path: Path) -> None:
    plan = recipe(tokenizer=save_learned(tmp_path / "tokenizer.json"), cache_dir=str(tmp_path / "store"))
    fit(plan, tmp_path / "one")
    save_learned(tmp_path / "tokenizer.json", "January February")
    fit(plan, tmp_path / "two")
    assert len([folder for folder in (tmp_path / "store").iterdir() if folder.is_dir()]) == 2


def test_subwords_of_a_file_are_sampled_where_words_have_some(tmp_path: Path) -> None:
    foreign_tokenizers()["words"].save(str(tmp_path / "words.json"))
    with pytest.raises(ConfigError, match=r"data\.subword_sampling"):
        fit(recipe(tokenizer=str(tmp_path / "words.json"), subword_sampling=0.1), tmp_path / "run")
    foreign_tokenizers()["unigram"].save(str(tmp_path / "unigram.json"))
    fit(recipe(tokenizer=str(tmp_path / "unigram.json"), subword_sampling=0.1), tmp_path / "other")


@pytest.mark.slow
def test_the_command_takes_it_and_refuses_in_a_line(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("".join(f"a dog {i}\tein Hund {i}\n" for i in range(600)))
    path = save_learned(tmp_path / "tokenizer.json")
    sizes = [f"model.{name}={size}" for name, size in (("d_model", 8), ("d_ff", 8), ("heads", 2))]
    words = ["train", tmp_path / "pairs.tsv", *sizes, "train.steps=2", "-o", tmp_path / "run", "--tokenizer", path]
    result = run_here(*words)
    assert result.returncode == 0, result.stderr.decode()
    stored = json.loads((tmp_path / "run/tokenizer.json").read_text())
    assert stored == json.loads(Path(path).read_text())
    assert Path(path) in source_paths(Recipe.read(tmp_path / "run/recipe.toml"))
    assert "data.tokenizer or train.init_from" in refusal(
        *words[:-4], "-o", tmp_path / "other", "--tokenizer", path, "--init-from", tmp_path / "run"
    )
    assert "vocab_size=500" in refusal(
        *words[:-4], "-o", tmp_path / "other", "--tokenizer", path, "data.vocab_size=500"
    )
