import errno
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch

from allyouneed import DataError, Evaluation, Recipe, fit
from allyouneed.apps.reports.report import write_report
from allyouneed.auto import Corpus, Draft, choose_from_pairs, choose_pairs, choosing, corpus_sample, machine_speed
from allyouneed.auto.candidates import Change
from allyouneed.auto.halving import Trial, TrialRecord
from allyouneed.auto.trial_records import TRIALS, read_trials
from allyouneed.auto.trials import Trials
from allyouneed.config import CleanConfig, DataConfig
from allyouneed.errors import OutputError
from allyouneed.text.vocabulary import train_vocabulary
from allyouneed.train import add_gradients
from runs import Notebook

SIZES = {"d_model": 32, "d_ff": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{n}+{m}\t{n + m}\n" for n in range(40) for m in range(20)), encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def speed(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the machine is measured to have, one number for each time, then 1."""
    speeds = list[float]()
    monkeypatch.setattr(machine_speed, "measure_speed", lambda workers: speeds.pop(0) if speeds else 1.0)
    return speeds


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The candidates that are trained; a clock that goes on by a quarter of a second whenever it is read."""
    ticks, candidates = count(), list[int]()
    monkeypatch.setattr(choosing, "Trials", partial(Trials, now=lambda: next(ticks) / 4))
    run = Trials.run

    def counted(self: Trials, trial: Trial, settings: Change, recipe: Recipe) -> TrialRecord:
        candidates.append(trial.candidate)
        return run(self, trial, settings, recipe)

    monkeypatch.setattr(Trials, "run", counted)
    return candidates


def choose(path: Path, folder: Path, **train: object) -> Draft:
    draft = Draft.from_tables(
        {"data": {"train": str(path)}, "model": SIZES, "train": {"minutes": 6.0, "threads": 1, **train}}
    )
    cpu = torch.device("cpu")
    return choose_from_pairs(
        draft, folder, evaluate=lambda *_: Evaluation({"exact": 0.0}), device=cpu, progress=lambda *_: None
    )


@pytest.mark.slow
def test_trials_decide_and_the_same_records_decide_the_same(pairs: Path, tmp_path: Path, trained: list[int]) -> None:
    first = choose(pairs, tmp_path / "run")
    assert trained == [0, 1, 2, 3, 0, trained[-1]]
    assert "6 trials in" in first.outcome
    assert choose(pairs, tmp_path / "run") == first
    assert len(trained) == 6, "recorded trials were repeated"


@pytest.mark.slow
def test_trials_that_were_stopped_go_on_after_the_last_recorded_one(
    pairs: Path, tmp_path: Path, trained: list[int]
) -> None:
    first = choose(pairs, tmp_path / "run")
    file = tmp_path / "run" / TRIALS
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:4]))
    assert choose(pairs, tmp_path / "run").tables == first.tables
    assert len(trained) == 6 + 3
    assert len(read_trials(tmp_path / "run")) == 6


def test_a_budget_counts_by_the_speed_of_the_machine(pairs: Path, tmp_path: Path, speed: list[float]) -> None:
    """1.3 minutes of a machine as fast as 16 cores buy the model of 20.8."""
    speed[:] = [16.0]
    draft = Draft.from_tables({"data": {"train": str(pairs)}, "train": {"minutes": 1.3}})
    cpu = torch.device("cpu")
    fast, slow = (
        choose_from_pairs(draft, tmp_path / f"{n}", evaluate=None, device=cpu, progress=lambda *_: None)
        for n in range(2)
    )
    assert (fast.cores, slow.cores) == (16.0, 1.0)
    corpus = Corpus(30_000, 300_000, 30, has_valid=True, exact=True, gpu=False, minutes=1.3)
    widths = [draft.complete(replace(corpus, cores=draft.cores))[0].model.d_model for draft in (fast, slow)]
    assert widths == [256, 64]


def test_a_run_that_is_started_again_keeps_the_speed_with_which_it_was_begun(
    pairs: Path, tmp_path: Path, trained: list[int], speed: list[float]
) -> None:
    speed[:] = [0.5, 8.0]
    first = choose(pairs, tmp_path / "run")
    assert choose(pairs, tmp_path / "run") == first
    assert first.cores == 0.5
    assert len(trained) == 6
    assert speed == [8.0], "it was measured again"


@pytest.mark.slow
def test_other_pairs_or_another_budget_are_tried_anew(pairs: Path, tmp_path: Path, trained: list[int]) -> None:
    choose(pairs, tmp_path / "run")
    choose(pairs, tmp_path / "run", minutes=6.1)
    assert len(trained) == 12


def test_without_a_budget_or_room_in_it_nothing_is_tried(pairs: Path, tmp_path: Path, trained: list[int]) -> None:
    for minutes in (0.0, 0.5):
        assert choose(pairs, tmp_path / "run", minutes=minutes).outcome == ""
    assert not trained
    assert not (tmp_path / "run" / TRIALS).exists()


@pytest.mark.parametrize(("count", "share"), [(100, 0.25), (800, 0.1), (3_000, 0.05), (6_000, None)])
def test_few_pairs_hold_out_a_larger_share_of_themselves(
    saved: Path, tmp_path: Path, count: int, share: float | None
) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{n}\t{n + 1}\n" for n in range(count)), encoding="utf-8")
    assert choose(path, tmp_path / "run", minutes=0.0).tables["data"].get("held_out") == share
    from_a_model = Draft.from_tables({"data": {"train": str(path)}, "train": {"init_from": str(saved)}})
    chosen, sample = choose_pairs(from_a_model)
    assert chosen.tables["data"].get("held_out") == share
    assert sample is None


@pytest.mark.parametrize(("most", "limit", "total"), [(0, 0, 2_000), (0, 600, 600), (2_000, 0, 2_000)])
def test_the_number_of_pairs_is_estimated_where_only_the_first_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, limit: int, total: int
) -> None:
    """Without it trials of a large corpus would choose for a small one."""
    monkeypatch.setattr(corpus_sample, "MOST_READ", most or 500)
    (tmp_path / "pairs.tsv").write_text("".join(f"a{n}\tb{n}\n" for n in range(2_000)))
    (tmp_path / "valid.tsv").write_text("a\tb\n")
    data = DataConfig(
        train=str(tmp_path / "pairs.tsv"), valid=str(tmp_path / "valid.tsv"), held_out=0, max_train_samples=limit
    )
    sample = corpus_sample.read_corpus_sample(data, CleanConfig())
    assert corpus_sample.estimate_total(sample, data) == total
    assert len(sample.train) == min(most or 500, total)


def test_a_full_folder_for_temporary_files_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(corpus_sample, "read_part", fill)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(OutputError, match=f"the disk is full: {tmp_path}/"):
        corpus_sample.read_corpus_sample(DataConfig(train="pairs.tsv"), CleanConfig())


def test_nothing_is_chosen_to_hold_out_beside_validation_pairs_of_a_corpus(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("".join(f"{n}\t{n + 1}\n" for n in range(100)), encoding="utf-8")
    corpus = {"train": str(tmp_path / "pairs.tsv"), "valid": str(tmp_path / "pairs.tsv")}
    draft = Draft.from_tables({"data": {"corpus": [corpus]}})
    assert choose_pairs(draft)[0] == draft


def test_the_share_that_is_named_is_held_out(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{n}\t{n + 1}\n" for n in range(50)), encoding="utf-8")
    draft = Draft.from_tables({"data": {"train": str(path), "held_out": 0.02}})
    with pytest.raises(DataError, match="the corpus is too small to split"):
        choose_from_pairs(draft, tmp_path, evaluate=None, device=torch.device("cpu"), progress=lambda *_: None)


def test_the_share_to_hold_out_depends_on_the_pairs_that_may_be_held_out(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("".join(f"a {n}\tb {n}\n" for n in range(150)))
    (tmp_path / "made.tsv").write_text("".join(f"c {n}\td {n}\n" for n in range(6_000)))
    corpus = [{"train": "made.tsv", "synthetic": True}]
    data = DataConfig(train="pairs.tsv", corpus=corpus, data_dir=str(tmp_path))  # type: ignore[arg-type]
    sample = corpus_sample.read_corpus_sample(data, CleanConfig(), choose_held_out=True)
    assert (sample.held_out, len(sample.valid) > 20) == (0.25, True)


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
    chosen = choose_from_pairs(draft, tmp_path, evaluate=None, device=torch.device("cpu"), progress=lambda *_: None)
    assert chosen.tables.get("clean", {}).get("drop_copies") == kept
    assert chosen.statistics
    assert (chosen.statistics.pairs > 200) == (kept != 3)


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"learning_rate": 0.02}, {"batch_tokens": 300}])
def test_settings_of_the_user_are_not_varied(
    pairs: Path, tmp_path: Path, trained: list[int], settings: dict[str, float]
) -> None:
    draft = choose(pairs, tmp_path / "run", **settings)
    names = {name for record in read_trials(tmp_path / "run") for name in record.settings}
    varied = {"train.learning_rate", "train.batch_tokens"} - {f"train.{name}" for name in settings}
    assert names == varied
    assert trained
    assert settings.items() <= draft.tables["train"].items()


@pytest.mark.parametrize(("vocabulary", "update", "translation"), [(0.0, 1.0, 0.01), (3.0, 0.5, 0.05), (8.0, 0.5, 1.0)])
def test_trials_keep_to_their_share_of_the_budget_however_slow_the_machine(
    pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vocabulary: float, update: float, translation: float
) -> None:
    seconds = 0.0

    def slow(function: Callable[..., Any], lasting: Callable[..., float]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            nonlocal seconds
            seconds += lasting(*args, **kwargs)
            return function(*args, **kwargs)

        return run

    monkeypatch.setattr(choosing, "Trials", partial(Trials, now=lambda: seconds))
    monkeypatch.setattr("allyouneed.auto.trials.train_vocabulary", slow(train_vocabulary, lambda *_, **__: vocabulary))
    monkeypatch.setattr("allyouneed.auto.trials.add_gradients", slow(add_gradients, lambda *_: update))
    evaluate = slow(lambda *_: Evaluation({"exact": 0.0}), lambda _, some: translation * len(some))
    draft = Draft.from_tables({"data": {"train": str(pairs)}, "model": SIZES, "train": {"minutes": 6.0}})
    choose_from_pairs(draft, tmp_path / "run", evaluate=evaluate, device=torch.device("cpu"), progress=lambda *_: None)
    records = read_trials(tmp_path / "run")
    assert sum(record.seconds for record in records) <= seconds + 1e-6 <= 0.15 * 60 * 6 + update + 8 * translation
    for number in {record.round for record in records[:-1]}:
        updates = [record.updates for record in records[:-1] if record.round == number]
        assert max(updates) - min(updates) <= 1, "trials of a round must train for the same time"


def test_damaged_records_are_refused_in_one_line(pairs: Path, tmp_path: Path, trained: list[int]) -> None:
    (tmp_path / "run").mkdir()
    for text in ("no json\n", '{"a": 1}\n{"b": 2}\n'):
        (tmp_path / "run" / TRIALS).write_text(text)
        with pytest.raises(DataError, match=r"trials\.jsonl is damaged: .*; remove it to try the settings again"):
            choose(pairs, tmp_path / "run")


@pytest.mark.slow
def test_a_run_shows_its_trials(pairs: Path, tmp_path: Path, trained: list[int]) -> None:
    draft = Draft.from_tables(
        {
            "data": {"train": str(pairs)},
            "model": SIZES,
            "train": {"minutes": 6.0, "steps": 2, "threads": 1, "tensorboard": False},
        }
    )
    watch = Notebook()
    fit(draft, tmp_path / "run", callback=watch)
    assert any(line.startswith("trials: 6 trials in") for line in watch.lines)
    assert any(line.startswith("statistics: ") for line in watch.lines)
    write_report(tmp_path / "run")
    page = (tmp_path / "run/report.html").read_text(encoding="utf-8")
    assert "<h2>Trials</h2>" in page
    assert page.count("those of the rules") == 2  # a round each


@pytest.mark.slow
def test_pairs_that_are_too_long_for_the_model_leave_the_decision_to_the_rules(
    tmp_path: Path, trained: list[int]
) -> None:
    path = tmp_path / "long.tsv"
    path.write_text("".join(f"{n} {'x ' * 700}\t{'y ' * 700}{n}\n" for n in range(900)), encoding="utf-8")
    draft = choose(path, tmp_path / "run")
    assert "nothing was better than the rules, no finite loss" in draft.outcome
