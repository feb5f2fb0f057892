from pathlib import Path

import pytest

from allyouneed.config import CleanConfig, DataConfig
from allyouneed.data.clean import CleanPairs, read_part
from allyouneed.data.filter import SelectedPairs, select_pairs
from allyouneed.data.report import DataReport
from allyouneed.errors import DataError

Lines = list[tuple[str, str]]
NOTHING: Lines = []


def load_pairs(count: int) -> Lines:
    return [(f"source {i}", f"target {i}") for i in range(count)]


def chosen(
    folder: Path, train: Lines, valid: Lines = NOTHING, *, clean: CleanConfig | None = None, **data: object
) -> tuple[SelectedPairs, list[str], DataReport]:
    clean, report = clean or CleanConfig(), DataReport()
    for name, lines in (("train", train), ("valid", valid)):
        (folder / f"{name}.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in lines))
    config = DataConfig(train="train.tsv", valid="valid.tsv" if valid else (), data_dir=str(folder), **data)  # type: ignore[arg-type]
    pairs, named, test = (read_part(part, config, clean, folder, report) for part in ("train", "valid", "test"))
    selected = select_pairs(config, clean, pairs, named, test, report)
    return selected, [pair.source for pair in pairs.texts(selected.train)], report


def test_no_pair_is_in_two_parts(tmp_path: Path) -> None:
    selected, train, report = chosen(tmp_path, load_pairs(2_000))
    valid, test = ([pair.source for pair in part] for part in (selected.valid, selected.test))
    assert sorted(train + valid + test) == sorted(source for source, _ in load_pairs(2_000))
    assert 20 < len(valid) < 60
    assert 20 < len(test) < 60
    assert (report.valid.used, report.test.used) == (len(valid), len(test))


def test_more_lines_move_no_pair_to_another_part(tmp_path: Path) -> None:
    few, train_few, _ = chosen(tmp_path, load_pairs(1_000))
    many, train_many, _ = chosen(tmp_path, [*load_pairs(3_000)[::-1], ("SOURCE  7", "Target 7")])
    assert set(few.valid) <= set(many.valid)
    assert set(few.test) <= set(many.test)
    assert set(train_few) <= set(train_many)


def test_what_exceeds_a_held_out_part_is_not_trained_on(tmp_path: Path) -> None:
    all_of_them, train, _ = chosen(tmp_path, load_pairs(2_000))
    some, same, report = chosen(tmp_path, load_pairs(2_000), max_valid_samples=10)
    assert len(some.valid) == len(some.test) == 10
    assert set(some.valid) <= set(all_of_them.valid)
    assert same == train
    back = report.train.dropped["max_valid_samples"]
    assert back.count == len(all_of_them.valid) + len(all_of_them.test) - 20
    assert not {f"{source} → {target}" for source, target in [*some.valid, *some.test]} & set(back.examples)


def test_duplicates_and_overlap_are_dropped_and_shown(tmp_path: Path) -> None:
    train = [*load_pairs(20), ("source 1", "target 1"), ("In  VALID", "other"), ("other", "auch in valid")]
    _, kept, report = chosen(tmp_path, train, [("in valid", "auch in valid")])
    assert kept == [source for source, _ in load_pairs(20)]
    dropped = {rule: (rows.count, rows.examples) for rule, rows in report.train.dropped.items() if rows.count}
    assert dropped == {
        "deduplicate": (1, ["source 1 → target 1"]),
        "overlap_source": (1, ["In  VALID → other"]),
        "overlap_target": (1, ["other → auch in valid"]),
    }
    off = CleanConfig(deduplicate=False, overlap="none")
    assert len(chosen(tmp_path, train, [("in valid", "auch in valid")], clean=off)[1]) == len(train)


def test_a_rule_that_would_drop_most_pairs_is_left_out(tmp_path: Path) -> None:
    """A few classes as targets: every one of them is in valid too, and that is the task."""
    train = [(f"source {i}", "yes" if i % 2 else "no") for i in range(50)]
    _, kept, report = chosen(tmp_path, train, [("one", "yes"), ("two", "no")])
    assert len(kept) == 50
    assert report.skipped_rules == {"overlap_target": 1.0}
    only_targets = chosen(tmp_path, train, [("one", "yes"), ("two", "no")], clean=CleanConfig(overlap="target"))
    assert only_targets[2].skipped_rules == {"overlap_target": 1.0}


def test_a_rule_that_drops_just_as_many_as_it_may_is_applied(tmp_path: Path) -> None:
    _, kept, report = chosen(
        tmp_path, load_pairs(10), load_pairs(3), clean=CleanConfig(overlap="source", max_dropped=0.3)
    )
    assert (len(kept), report.skipped_rules) == (7, {})


def test_a_corpus_too_small_to_split_is_refused_with_advice(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"100 usable pairs.*0\.24"):
        chosen(tmp_path, load_pairs(100))
    with pytest.raises(DataError, match="1 usable pairs?.*300"):
        chosen(tmp_path, [("hello", "hallo"), *((f"a {i}", "") for i in range(300))])
    with pytest.raises(DataError, match="300 usable .*1 different.* 0,"):
        chosen(tmp_path, [("hello world", "hallo welt")] * 300)
    selected, train, _ = chosen(tmp_path, load_pairs(100), held_out=0)
    assert (len(train), selected.valid) == (100, [])


def test_fewer_pairs_are_enough_where_no_more_are_wanted(tmp_path: Path) -> None:
    selected, _, _ = chosen(tmp_path, load_pairs(300), max_valid_samples=4)
    assert len(selected.valid) == len(selected.test) == 4
    with pytest.raises(DataError, match="[0-3], .* 4 "):
        chosen(tmp_path, load_pairs(20), max_valid_samples=4)


def test_named_validation_pairs_of_which_none_is_left_are_refused(tmp_path: Path) -> None:
    """Without them the run would train without validation."""
    with pytest.raises(DataError, match="data.valid .*2 read, 0 used; 2 "):
        chosen(tmp_path, load_pairs(100), [("a", " "), (" ", "b")])


def test_a_limit_draws_by_seed(tmp_path: Path) -> None:
    _, some, report = chosen(tmp_path, load_pairs(100), held_out=0, max_train_samples=10)
    assert len(some) == 10
    assert report.train.dropped["max_train_samples"].count == 90
    assert some == chosen(tmp_path, load_pairs(100), held_out=0, max_train_samples=10)[1]
    assert some != chosen(tmp_path, load_pairs(100), held_out=0, max_train_samples=10, seed=2)[1]


def test_a_part_is_what_was_read(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("a\tb\n \tc\n")
    report = DataReport()
    data = DataConfig(train="train.tsv", data_dir=str(tmp_path))
    part: CleanPairs = read_part("train", data, CleanConfig(), tmp_path, report)
    assert list(part.texts()) == [("a", "b")]
    assert report.train.dropped["empty"].count == 1


def test_synthetic_pairs_are_trained_on_and_not_held_out(tmp_path: Path) -> None:
    lines = "".join(f"made {i}\tmade by a program {i}\n" for i in range(1_000))
    (tmp_path / "made.tsv").write_text(lines + "made again\ttarget 7\n")
    corpus = [{"train": "made.tsv", "synthetic": True}]
    selected, train, _ = chosen(tmp_path, load_pairs(1_000), corpus=corpus)
    alone, real, _ = chosen(tmp_path, load_pairs(1_000))
    assert (selected.valid, selected.test) == (alone.valid, alone.test)
    held_out = {pair.target for pair in selected.valid + selected.test}
    again = [] if "target 7" in held_out else ["made again"]
    assert train == [*real, *(f"made {i}" for i in range(1_000)), *again]
    with pytest.raises(DataError, match="100 usable pairs"):
        chosen(tmp_path, load_pairs(100), corpus=corpus)
    made = DataConfig(corpus=corpus, data_dir=str(tmp_path))  # type: ignore[arg-type]
    parts = [read_part(part, made, CleanConfig(), tmp_path, DataReport()) for part in ("train", "valid", "test")]
    with pytest.raises(DataError, match="data.valid"):
        select_pairs(made, CleanConfig(), parts[0], parts[1], parts[2], DataReport())
