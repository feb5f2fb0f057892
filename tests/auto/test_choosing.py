import errno
import unicodedata
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
import torch

from allyouneed import DataError
from allyouneed.auto import Corpus, Draft, choose_from_pairs, choose_pairs, choosing, machine_speed
from allyouneed.config import CleanConfig, DataConfig
from allyouneed.errors import OutputError

CPU = torch.device("cpu")
RNG = Random(1)
WORDS = sorted({"".join(RNG.choices("abdefgiklmnoprstu", k=RNG.randint(4, 9))) for _ in range(300)})


def choose(path: Path, folder: Path, minutes: float) -> Draft:
    draft = Draft.from_tables({"data": {"train": str(path)}, "train": {"minutes": minutes}})
    return choose_from_pairs(draft, folder, device=CPU)


def test_a_budget_buys_a_model_by_the_speed_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, speeds = tmp_path / "pairs.tsv", iter([{64: 1e7, 128: 1e7, 192: 1e7, 256: 1e7}, {64: 1e5}])
    path.write_text("".join(f"{n}+{m}\t{n + m}\n" for n in range(40) for m in range(20)), encoding="utf-8")
    monkeypatch.setattr(machine_speed, "measure_speed", lambda minutes, workers: next(speeds))
    drafts = [choose(path, tmp_path / folder, 1.3) for folder in ("fast", "slow", "fast")]
    assert drafts[2] == drafts[0], "it was measured again"
    corpus = Corpus(30_000, 300_000, 30, has_valid=True, exact=True, gpu=False, minutes=1.3)
    recipes = [draft.complete(replace(corpus, speed=draft.speed))[0] for draft in drafts]
    assert [recipe.model.d_model for recipe in recipes] == [256, 64, 256]
    assert not choose(path, tmp_path / "unlimited", 0.0).speed


@pytest.mark.parametrize(
    ("train", "at_once"),
    [({}, 2), ({"minutes": 0.1}, 1), ({"ensemble": 1}, 1), ({"ensemble": 5}, 2), ({"parallel_models": 1}, 1)],
)
def test_each_core_trains_a_model_of_an_ensemble_of_strings_and_its_speed_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, train: dict[str, float], at_once: int
) -> None:
    path, workers = tmp_path / "pairs.tsv", list[int]()
    path.write_text("".join(f"{word} PL\t{word}ek\n" for word in WORDS), encoding="utf-8")

    def measured(folder: Path, minutes: float, count: int) -> dict[int, float]:
        workers.append(count)
        return {64: 1e5}

    monkeypatch.setattr(choosing, "recorded_speed", measured)
    draft = Draft.from_tables({"data": {"train": str(path)}, "train": {"minutes": 1, **train}})
    draft = choose_from_pairs(draft, tmp_path, device=CPU, workers=2, parallel_models=2)
    assert draft.tables["train"].get("parallel_models", 1) == at_once
    assert workers == [2 // at_once]


def test_texts_train_at_the_same_time_only_in_an_ensemble_that_was_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{n}+{n % 7}\t{n + n % 7}\n" for n in range(900)), encoding="utf-8")
    for train, at_once in (({}, None), ({"ensemble": 2}, 2)):
        draft = Draft.from_tables({"data": {"train": str(path)}, "train": train})
        draft = choose_from_pairs(draft, tmp_path, device=CPU, workers=2, parallel_models=2)
        assert draft.tables["train"].get("parallel_models") == at_once


@pytest.mark.parametrize(("count", "share"), [(70, 0.25), (100, 0.2), (200, 0.1), (800, 0.05), (6_000, None)])
def test_few_pairs_hold_out_a_larger_share_of_themselves(
    saved: Path, tmp_path: Path, count: int, share: float | None
) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{n}\t{n + 1}\n" for n in range(count)) * 2, encoding="utf-8")
    assert choose(path, tmp_path / "run", 0.0).tables["data"].get("held_out") == share
    from_a_model = Draft.from_tables({"data": {"train": str(path)}, "train": {"init_from": str(saved)}})
    chosen, statistics = choose_pairs(from_a_model)
    assert chosen.tables["data"].get("held_out") == share
    assert statistics is None


def test_a_full_folder_for_temporary_files_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(choosing, "read_part", fill)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(OutputError, match=f"{tmp_path}/"):
        choosing.measure_sample(DataConfig(train="pairs.tsv"), CleanConfig())


def test_nothing_is_chosen_to_hold_out_beside_validation_pairs_of_a_corpus(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("".join(f"{n}\t{n + 1}\n" for n in range(100)), encoding="utf-8")
    corpus = {"train": str(tmp_path / "pairs.tsv"), "valid": str(tmp_path / "pairs.tsv")}
    draft = Draft.from_tables({"data": {"corpus": [corpus]}})
    assert "held_out" not in choose_pairs(draft)[0].tables["data"]


def test_the_share_that_is_named_is_held_out(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{n}\t{n + 1}\n" for n in range(50)), encoding="utf-8")
    draft = Draft.from_tables({"data": {"train": str(path), "held_out": 0.02}})
    with pytest.raises(DataError, match="too small"):
        choose_from_pairs(draft, tmp_path, device=CPU)


def test_the_share_to_hold_out_depends_on_the_pairs_that_may_be_held_out(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("".join(f"a {n}\tb {n}\n" for n in range(150)))
    (tmp_path / "made.tsv").write_text("".join(f"c {n}\td {n}\n" for n in range(6_000)))
    corpus = [{"train": "made.tsv", "synthetic": True}]
    data = DataConfig(train="pairs.tsv", corpus=corpus, data_dir=str(tmp_path))  # type: ignore[arg-type]
    statistics, held_out = choosing.measure_sample(data, CleanConfig(), choose_held_out=True)
    assert statistics
    assert (held_out, statistics.pairs > 6_000) == (0.2, True)


@pytest.mark.parametrize(
    ("clean", "target", "kept"),
    [({}, "the cat sat on the mat", 0), ({"drop_copies": 3}, "the cat sat on the mat", 3), ({}, "die Katze", None)],
)
def test_texts_that_may_stay_as_they_are_are_kept_where_most_words_do(
    tmp_path: Path, clean: dict[str, int], target: str, kept: int | None
) -> None:
    path = tmp_path / "pairs.tsv"
    sources = ["the cat sat on the mat", "teh cat sat on the mat"] * 200
    path.write_text("".join(f"{source} {n}\t{target} {n}\n" for n, source in enumerate(sources)), encoding="utf-8")
    draft = Draft.from_tables({"data": {"train": str(path)}, "clean": clean})
    chosen = choose_from_pairs(draft, tmp_path, device=CPU)
    assert chosen.tables.get("clean", {}).get("drop_copies") == kept
    assert chosen.statistics
    assert (chosen.statistics.pairs > 200) == (kept != 3)


@pytest.mark.parametrize(
    ("clean", "expected"),
    [
        ({}, {"max_length_ratio": 0, "overlap": "source"}),
        ({"max_length_ratio": 3.0}, {"max_length_ratio": 3.0, "overlap": "source"}),
        ({"overlap": "either"}, {"max_length_ratio": 0, "overlap": "either"}),
    ],
)
def test_where_one_target_is_right_pairs_of_any_lengths_and_with_a_held_out_target_are_kept(
    saved: Path, tmp_path: Path, clean: dict[str, object], expected: dict[str, object]
) -> None:
    stems = ["".join(Random(n).choices("aeioulmnrst", k=6)) for n in range(300)]
    cases = ("NOM", "ACC", "VOC")  # with one form
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{stem} N;{case}\t{stem}u\n" for stem in stems for case in cases), encoding="utf-8")
    for train in ({}, {"init_from": str(saved)}):
        draft, _ = choose_pairs(Draft.from_tables({"data": {"train": str(path)}, "clean": clean, "train": train}))
        assert draft.tables["clean"] == expected


def test_texts_are_cleaned_by_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    words = ["".join(Random(n).choices("aeioulmnrst", k=3 + n % 7)) for n in range(2_000)]
    texts = [" ".join(Random(n).choices(words, k=4 + n % 5)) for n in range(900)]
    rows = (f"{source}\t{target}\n" for source, target in zip(texts, reversed(texts), strict=True))
    path.write_text("".join(rows), encoding="utf-8")
    assert "clean" not in choose_pairs(Draft.from_tables({"data": {"train": str(path)}}))[0].tables


MARKED = "\u0631\u0651\u0650"  # an Arabic letter and its marks in the order of typing; NFC has the opposite order


@pytest.mark.parametrize(
    ("clean", "words", "chosen_form"),
    [
        ({}, [MARKED], "none"),
        ({"unicode": "NFKC"}, [MARKED], "NFKC"),
        ({}, [MARKED, unicodedata.normalize("NFC", MARKED)], None),
        ({}, [unicodedata.normalize("NFC", MARKED)], None),
    ],
    ids=["consistent", "set", "mixed", "all in NFC"],
)
def test_strings_keep_their_form_where_equal_characters_have_one(
    tmp_path: Path, clean: dict[str, str], words: list[str], chosen_form: str | None
) -> None:
    letters = "\u0628\u062a\u062f\u0633"
    stems = ["".join(Random(n).choices(letters, k=5)) for n in range(300)]
    path = tmp_path / "pairs.tsv"
    rows = (f"{stem} V;PST\t{stem}{words[n % len(words)]}\n" for n, stem in enumerate(stems))
    path.write_text("".join(rows), encoding="utf-8")
    chosen = choose_from_pairs(Draft.from_tables({"data": {"train": str(path)}, "clean": clean}), tmp_path, device=CPU)
    assert chosen.tables["clean"].get("unicode") == chosen_form
    assert chosen.statistics
    assert (chosen.statistics.unicode_form == "NFC") == (chosen_form is None or chosen_form == "NFKC")
