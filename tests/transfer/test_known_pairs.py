"""What a model knows: the pairs of its run, or its own translations; and the split into three parts."""

import shutil
from itertools import chain
from pathlib import Path

import pytest

from allyouneed import Bundle, ConfigError, fit
from allyouneed.apps.transfer.known_pairs import find_known_pairs, split
from allyouneed.data.clean import dedup_key
from allyouneed.data.pairs import Pair
from allyouneed.data.readers import read_pairs
from allyouneed.evaluation.model_scores import greedy_translator
from runs import TINY


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("known") / "run"
    fit(TINY, folder)
    return folder


@pytest.mark.parametrize(("varied", "drawn"), [(10, 50), (70, 70), (10_000, 200)])
def test_a_run_knows_the_pairs_that_it_was_trained_on(
    run: Path, varied: int, drawn: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("allyouneed.apps.transfer.known_pairs.VARIED", varied)
    known = find_known_pairs(run, Bundle.load(run), (), count=50, seed=1)
    assert not known.are_outputs
    assert f"{run}/data" in known.origin
    assert len(known.parts.train) == drawn
    trained = read_pairs("dates:train", limit=TINY.data.max_train_samples, seed=TINY.data.seed)
    assert set(known.parts.train) <= set(trained)
    assert len(known.parts.valid) == TINY.data.max_valid_samples
    assert not set(known.parts.test) & set(trained)


def test_without_its_pairs_a_model_knows_its_own_translations(run: Path, tmp_path: Path) -> None:
    bundle = Bundle.load(run)
    bundle.save(tmp_path / "alone")
    texts = [f"1845-01-{day:02}" for day in range(1, 31)]
    for sources, expected in ((texts, texts), ((), bundle.probes)):
        known = find_known_pairs(tmp_path / "alone", bundle, sources, count=50, seed=1)
        outputs = greedy_translator(bundle).translate(list(expected))
        assert known.are_outputs
        pairs = [Pair(*pair) for pair in zip(expected, outputs, strict=True) if pair[1]]
        assert sorted(chain(*known.parts)) == sorted(pairs)
        assert not {*known.parts.test} & {*known.parts.train, *known.parts.valid}


def test_texts_count_more_than_the_pairs_of_the_run(run: Path) -> None:
    known = find_known_pairs(run, Bundle.load(run), ["1845-01-05"], count=50, seed=1)
    assert known.are_outputs


def test_a_model_that_says_nothing_of_what_it_knows_is_refused(run: Path, saved: Path) -> None:
    with pytest.raises(ConfigError, match="probes.*--sources"):
        find_known_pairs(saved, Bundle.load(saved), (), count=50, seed=1)


def test_pairs_with_unknown_tokens_are_not_mixed_in(run: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("".join(f"eins zwei {n}\tone two {n}\n" for n in range(40)) + "drei x\ty z\n")
    words = {"train": str(tmp_path / "pairs.tsv"), "vocabulary": "words", "vocab_size": 17, "held_out": 0.2}
    tables = TINY.tables() | {"data": words}
    bundle = fit(TINY.from_tables(tables), tmp_path / "run", evaluate=None)
    known = find_known_pairs(tmp_path / "run", bundle, (), count=50, seed=1)
    assert known.parts.train
    assert all("drei" not in pair.source for pair in known.parts.train)


def test_a_split_keeps_equal_sources_together_and_loses_nothing() -> None:
    pairs = [Pair(f"Text {number % 90}", str(number)) for number in range(180)]
    parts = split(pairs, seed=1)
    assert sorted(chain(*parts)) == sorted(pairs)
    keys = [{dedup_key(pair.source) for pair in part} for part in parts]
    assert [len(some) for some in keys] == [72, 9, 9]
    assert not keys[0] & (keys[1] | keys[2])


def test_too_few_pairs_are_not_split() -> None:
    pairs = [Pair(str(number), "x") for number in range(39)]
    assert split(pairs, seed=1) == (pairs, pairs, pairs)


def test_a_folder_of_a_copied_bundle_has_no_pairs(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "copy", ignore=shutil.ignore_patterns("data"))
    assert find_known_pairs(tmp_path / "copy", Bundle.load(run), (), count=5, seed=1).are_outputs
