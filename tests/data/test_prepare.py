import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from allyouneed.config import CleanConfig, CorpusConfig, DataConfig
from allyouneed.data.batch import batches, epoch_of_batches
from allyouneed.data.prepare import prepare
from allyouneed.data.prepared import PreparedData
from allyouneed.errors import ConfigError, DataError
from allyouneed.machine.files import locked
from messages import numbers_in

CLEAN = CleanConfig()


@pytest.fixture
def data(tmp_path: Path) -> DataConfig:
    lines = [f"a {i} dog runs\tein {i} Hund rennt\n" for i in range(60)]
    (tmp_path / "pairs.tsv").write_text("".join(lines))
    return DataConfig(train="pairs.tsv", data_dir=str(tmp_path), held_out=0.2, vocab_size=300)


def prepared(data: DataConfig, **how: object) -> PreparedData:
    return prepare(data, CLEAN, Path(data.data_dir) / "data", max_length=64, **how)  # type: ignore[arg-type]


def texts(pairs: PreparedData) -> list[str]:
    return [pairs.vocabulary.source.decode(pairs.train.source[i]) for i in range(len(pairs.train))]


def test_pairs_are_encoded_once_and_found_again(data: DataConfig) -> None:
    first = prepared(data)
    ids = Path(data.data_dir) / "data/train.source.ids"
    written = ids.stat().st_mtime_ns
    again = prepared(data)
    assert ids.stat().st_mtime_ns == written
    assert texts(first) == texts(again)
    assert first.report == again.report
    assert len(first.train) + len(first.valid_pairs) + len(first.test_pairs) == 60
    assert first.report.train.excluded() == 0  # what is held out is not left out
    assert first.train.source.ids.dtype == np.uint16
    assert isinstance(first.train.source.ids.base, memoryview)  # of the file, mapped


@pytest.mark.parametrize("part", ["train", "valid"])
def test_an_empty_file_is_refused_as_such(data: DataConfig, part: str) -> None:
    Path(data.data_dir, "none.tsv").touch()
    with pytest.raises(DataError, match=f"none.tsv .*data.{part}"):
        prepared(replace(data, train="none.tsv") if part == "train" else replace(data, valid="none.tsv"))


def test_another_content_or_setting_is_noticed_and_under_resume_refused(data: DataConfig) -> None:
    first = prepared(data)
    with pytest.raises(DataError, match="data.vocab_size .*300 .*301"):
        prepared(replace(data, vocab_size=301), resume=True)
    path = Path(data.data_dir) / "pairs.tsv"
    path.write_text(path.read_text() + "a new dog\tein neuer Hund\n")
    with pytest.raises(DataError, match=r"data\.train .*\.tsv [0-9a-f]+"):
        prepared(data, resume=True)
    assert texts(first) == [*texts(first)]
    assert prepared(data).fingerprint != first.fingerprint


def test_what_happens_to_validation_and_test_pairs_is_reported(data: DataConfig, tmp_path: Path) -> None:
    (tmp_path / "valid.tsv").write_text("e\u0301\tf\n \tg\n" + "x " * 40 + "\ty\n" + "h\ti\n" * 3)
    (tmp_path / "test.tsv").write_text("a\tb\n" * 200 + "c\n")
    data = replace(data, valid="valid.tsv", test="test.tsv", max_valid_samples=4)
    report = prepared(data).report
    counts = {
        name: {rule: dropped.count for rule, dropped in part.dropped.items() if dropped.count}
        for name, part in report.parts().items()
    }
    assert counts["train"] == {}
    assert counts["valid"] == {"empty": 1, "max_valid_samples": 1, "max_length": 1}
    assert counts["test"] == {"malformed": 1}
    assert (report.valid.read, report.valid.used, report.test.read, report.test.used) == (6, 3, 200, 200)
    assert report.valid.normalized == {"unicode": 1, "strip_control": 0}
    assert re.match("1 .*data.test: 1 malformed ", report.left_out()[1])


def test_pairs_that_an_earlier_version_prepared_are_prepared_again(data: DataConfig) -> None:
    prepared(data)
    path = Path(data.data_dir) / "data/prepared.json"
    stored = json.loads(path.read_text())
    stored["made_of"] = stored.pop("provenance")
    path.write_text(json.dumps(stored))
    prepared(data, resume=True)
    assert "provenance" in json.loads(path.read_text())


def test_where_files_are_does_not_change_what_they_are(data: DataConfig, tmp_path: Path) -> None:
    first = prepared(data)
    moved = tmp_path / "moved"
    moved.mkdir()
    (tmp_path / "pairs.tsv").rename(moved / "pairs.tsv")
    data = replace(data, data_dir=str(moved), cache_dir=str(tmp_path / "cache"))
    assert prepared(data).fingerprint == first.fingerprint


def test_the_same_bytes_read_in_another_way_are_other_pairs(data: DataConfig, tmp_path: Path) -> None:
    """The ending of a file says how it is read: a comma separates the columns of a .csv and none of a .tsv."""
    lines = [f"a {i} dog,ein {i}\tHund {i}\n" for i in range(60)]
    for ending in ("csv", "tsv"):
        (tmp_path / f"pairs.{ending}").write_text("".join(lines))
    data = replace(data, cache_dir=str(tmp_path / "cache"))
    one, other = (prepared(replace(data, train=f"pairs.{ending}")) for ending in ("csv", "tsv"))
    assert all("," in text for text in texts(other))
    assert not any("," in text for text in texts(one))


def test_what_fails_leaves_nothing(data: DataConfig, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="60 .* 0 .* 36 dropped"):
        prepare(data, CLEAN, tmp_path / "run/data", max_length=2)
    assert not (tmp_path / "run").exists()
    with pytest.raises(ConfigError, match=r"data\.train"):
        prepare(DataConfig(), CLEAN, tmp_path / "run/data", max_length=2)


def test_a_store_serves_several_runs(data: DataConfig, tmp_path: Path) -> None:
    data = replace(data, cache_dir=str(tmp_path / "store"))
    for run in ("a", "b"):
        prepare(data, CLEAN, tmp_path / run, max_length=64)
    assert len(list((tmp_path / "store").iterdir())) == 1
    assert not (tmp_path / "a").exists()


def test_a_store_loses_what_killed_processes_left_and_nothing_else(data: DataConfig, tmp_path: Path) -> None:
    store = tmp_path / "store"
    for name in ("." + "a" * 16, "." + "b" * 16, ".mine"):
        (store / f"{name}.partial").mkdir(parents=True)
    (store / f".{'a' * 16}.lock").touch()
    with locked(store / ("b" * 16), what="another process"):
        prepared(replace(data, cache_dir=str(store)))
        hidden = {path.name for path in store.glob(".*")}
    assert hidden == {f".{'b' * 16}.partial", f".{'b' * 16}.lock", ".mine.partial"}


def test_a_character_of_validation_alone_is_named_or_refused_where_the_alphabet_is_set(
    data: DataConfig, tmp_path: Path
) -> None:
    (tmp_path / "valid.tsv").write_text("a dog\tein Hünd\n")
    data = replace(data, valid="valid.tsv", vocabulary="characters", vocab_size=0)
    pairs = prepared(data)
    assert pairs.valid_pairs == [("a dog", "ein Hünd")]
    (line,) = [line for line in pairs.describe() if "'ein Hünd'" in line]
    assert "never written" in line
    assert numbers_in(line) == [1, 1]
    copying = prepared(replace(data, made_up=0.1)).describe()
    assert [line for line in copying if "'ein Hünd'" in line and "never written" not in line]
    with pytest.raises(DataError, match="data.valid: 'ü' .*data.alphabet"):
        prepared(replace(data, alphabet="abcdefghijklmnopqrstuvwxyzH 0123456789"))


def test_weights_say_how_often_an_epoch_shows_a_pair(data: DataConfig, tmp_path: Path) -> None:
    (tmp_path / "more.tsv").write_text("".join(f"b {i}\tc {i}\n" for i in range(40)))
    data = replace(data, held_out=0, corpus=(CorpusConfig(train="more.tsv", weight=2.5),))
    pairs = prepared(data).train
    assert pairs.weights == ((60, 1.0), (100, 2.5))
    epochs = [
        np.concatenate(list(epoch_of_batches(pairs, batch_tokens=200, seed=1, epoch=epoch))) for epoch in range(4)
    ]
    counts = np.bincount(epochs[0], minlength=100)
    assert set(counts[:60]) == {1}
    assert set(counts[60:]) == {2, 3}
    assert len({len(epoch) for epoch in epochs}) > 1


@pytest.mark.parametrize("vocabulary", ["bpe", "unigram"])
def test_pairs_are_spelled_anew_in_every_epoch_and_the_same_when_gone_on_with(
    data: DataConfig, vocabulary: str
) -> None:
    data = replace(data, vocabulary=vocabulary, subword_sampling=0.3)  # type: ignore[arg-type]
    pairs = prepared(data)

    def spelled(skip: int = 0, count: int = 24) -> list[list[list[int]]]:
        feed = batches(prepared(data).train, batch_tokens=100, seed=1, pad_id=0, skip=skip)
        return [next(feed).source.tolist() for _ in range(count)]

    straight = spelled()
    assert spelled(skip=11, count=13) == straight[11:]
    assert pairs.train.resample is not None
    epochs = [pairs.train.resample(np.array([0]), epoch).source[0] for epoch in range(10)]
    assert len({tuple(ids) for ids in epochs}) > 1
    assert {pairs.vocabulary.source.decode(ids) for ids in epochs} == {texts(pairs)[0]}


def test_either_side_may_have_its_own_vocabulary(data: DataConfig) -> None:
    pairs = prepared(replace(data, joint_vocabulary=False))
    assert not pairs.vocabulary.joint
    assert pairs.vocabulary.target.decode(pairs.train.target[0]).startswith("ein ")
    again = prepared(replace(data, joint_vocabulary=False))
    assert again.vocabulary.fingerprint() == pairs.vocabulary.fingerprint()
    assert json.loads((Path(data.data_dir) / "data/prepared.json").read_text())["report"]["vocabulary"] == [
        len(pairs.vocabulary.source),
        len(pairs.vocabulary.target),
    ]
