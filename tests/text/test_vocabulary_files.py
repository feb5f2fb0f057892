"""A run with the vocabulary of a file instead of one learned."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from sentencepiece import SentencePieceProcessor

from allyouneed import Bundle, ConfigError, DataError, Recipe, Translator, fit
from allyouneed.errors import CheckpointError
from allyouneed.run import source_paths
from allyouneed.text.tokenizer import Tokenizer
from allyouneed.text.vocabulary_files import load_vocabulary
from foreign_tokenizers import LINES, foreign_tokenizers
from marian_checkpoints import ENGLISH, train_spm
from runs import TINY, Notebook, StopAt
from shell import refusal, run_here


def recipe(**data: object) -> Recipe:
    """A run of a few updates on dates, with the vocabulary of a file."""
    return replace(TINY, data=replace(TINY.data, vocabulary="bpe", **data))  # type: ignore[arg-type]


def learned(path: Path, text: str = "0123456789-") -> str:
    """The file of a small vocabulary of ours."""
    Tokenizer.train_bpe([text], vocab_size=264).save(path)
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
    with pytest.raises(DataError, match="empty has no tokenizer.json; name a file, or the folder of a bundle"):
        load_vocabulary(str(tmp_path / "empty"))
    with pytest.raises(DataError, match="nothing does not exist"):
        load_vocabulary(str(tmp_path / "nothing"))
    for content in (b"\xff", b"{", b"{}", b"[" * 100_000, b'{"model": {"type": "BPE", "vocab": {"a": 0}}}'):
        (tmp_path / "file").write_bytes(content)
        with pytest.raises(DataError, match="file cannot be used as a vocabulary: "):
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
    ours, reference = vocabulary.source, SentencePieceProcessor(model_file=str(tmp_path / "a.model"))
    assert [note.rpartition(": ")[2] for note in notes] == [
        "'<s>' is <sos>, with id 1", "'</s>' is <eos>, with id 2", f"<pad> was added, with id {len(reference)}",
    ]  # fmt: skip
    assert (ours.unk_id, ours.sos_id, ours.eos_id, ours.pad_id) == (0, 1, 2, len(reference))
    for line in [*ENGLISH, "Ünknown ☃ <s> </s> <eos>", "  a  b ", ""]:
        assert ours.encode(line) == [1, *reference.encode(line), 2]
    assert [ours.decode(ours.encode(line)) for line in ENGLISH] == reference.decode(reference.encode(ENGLISH))
    bundle = fit(recipe(tokenizer=str(tmp_path / "a.model")), tmp_path / "run")
    assert bundle.source_tokenizer.fingerprint() == ours.fingerprint()
    train_spm(ENGLISH, tmp_path / "b.model", 120, model_type="word")
    with pytest.raises(
        CheckpointError, match="b.model is no SentencePiece model .*: it must be a unigram model or BPE"
    ):
        load_vocabulary(str(tmp_path / "b.model"))


def test_each_side_may_have_a_file_and_then_the_targets_embeddings_alone_are_tied(tmp_path: Path) -> None:
    files = (learned(tmp_path / "a.json"), learned(tmp_path / "b.json", "January February March"))
    bundle = fit(recipe(tokenizer=files), tmp_path / "run")
    assert bundle.model.config.tied_embeddings == "target"
    assert bundle.source_tokenizer.names() != bundle.target_tokenizer.names()


def test_a_resumed_run_notices_another_content_of_the_file(tmp_path: Path) -> None:
    plan = recipe(tokenizer=learned(tmp_path / "tokenizer.json"))
    with pytest.raises(KeyboardInterrupt):
        fit(plan, tmp_path / "run", callback=StopAt(6))
    learned(tmp_path / "tokenizer.json", "January February")
    with pytest.raises(DataError, match="prepared from other data or settings: vocabulary was .* and is "):
        fit(plan, tmp_path / "run", resume=True)
    learned(tmp_path / "tokenizer.json")
    fit(plan, tmp_path / "run", resume=True)


def test_a_shared_store_has_the_pairs_of_each_vocabulary(tmp_path: Path) -> None:
    plan = recipe(tokenizer=learned(tmp_path / "tokenizer.json"), cache_dir=str(tmp_path / "store"))
    fit(plan, tmp_path / "one")
    learned(tmp_path / "tokenizer.json", "January February")
    fit(plan, tmp_path / "two")
    assert len([folder for folder in (tmp_path / "store").iterdir() if folder.is_dir()]) == 2


def test_subwords_of_a_file_are_sampled_where_words_have_some(tmp_path: Path) -> None:
    foreign_tokenizers()["words"].save(str(tmp_path / "words.json"))
    with pytest.raises(ConfigError, match="data.subword_sampling .* which this vocabulary cannot"):
        fit(recipe(tokenizer=str(tmp_path / "words.json"), subword_sampling=0.1), tmp_path / "run")
    foreign_tokenizers()["unigram"].save(str(tmp_path / "unigram.json"))
    fit(recipe(tokenizer=str(tmp_path / "unigram.json"), subword_sampling=0.1), tmp_path / "other")


@pytest.mark.slow
def test_the_command_takes_it_and_refuses_in_a_line(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("".join(f"a dog {i}\tein Hund {i}\n" for i in range(600)))
    path = learned(tmp_path / "tokenizer.json")
    sizes = [f"model.{name}={size}" for name, size in (("d_model", 8), ("d_ff", 8), ("heads", 2))]
    words = ["train", tmp_path / "pairs.tsv", *sizes, "train.steps=2", "-o", tmp_path / "run", "--tokenizer", path]
    result = run_here(*words)
    assert result.returncode == 0, result.stderr.decode()
    stored = json.loads((tmp_path / "run/tokenizer.json").read_text())
    assert stored == json.loads(Path(path).read_text())
    assert Path(path) in source_paths(Recipe.read(tmp_path / "run/recipe.toml"))
    assert "leave out data.tokenizer or train.init_from" in refusal(
        *words[:-4], "-o", tmp_path / "other", "--tokenizer", path, "--init-from", tmp_path / "run"
    )
    assert "vocab_size=500" in refusal(
        *words[:-4], "-o", tmp_path / "other", "--tokenizer", path, "data.vocab_size=500"
    )
