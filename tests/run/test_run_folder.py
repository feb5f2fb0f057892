"""A run that was stopped, however it was, ends with the weights of one that never was."""

import json
import multiprocessing
import os
import random
import shutil
import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from allyouneed import ConfigError, DataError, OutputError, Recipe, Translator, fit
from allyouneed.config import CleanConfig
from allyouneed.data.prepare import prepare
from allyouneed.errors import Interrupted
from allyouneed.machine.files import locked
from allyouneed.run import Validation, replaced, source_paths
from allyouneed.run.run_folder import is_running, unrelated
from allyouneed.train import Update
from messages import numbers_in
from runs import TINY, Notebook, StopAt, eventful, prepare_in_store, read_weights, run_slowly, run_until_write
from shell import refusal, run_here
from waiting import wait_until

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["allyouneed.train", "torch._dynamo"])  # the second, Adam imports in its first call


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train a run that nothing ever stops."""
    folder = tmp_path_factory.mktemp("straight") / "run"
    fit(eventful(), folder)
    return folder


def metrics(folder: Path) -> list[dict[str, object]]:
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{key: line[key] for key in line if key not in ("seconds", "tokens_per_second")} for line in lines]


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.mark.slow
@pytest.mark.parametrize("step", [2, 3, 7, 11])
def test_broken_off_after_an_update(straight: Path, tmp_path: Path, step: int) -> None:
    with pytest.raises(KeyboardInterrupt):
        fit(eventful(), tmp_path / "run", callback=StopAt(step))
    fit(eventful(), tmp_path / "run", resume=True)
    assert read_weights(tmp_path / "run") == read_weights(straight)
    assert metrics(tmp_path / "run") == metrics(straight)


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"ema_decay": 0.9, "average_checkpoints": 1},
        {"optimizer": "muon", "weight_decay": 0.1, "precision": "bfloat16"},
        {"optimizer": "adamw"},
    ],
)
def test_with_other_settings(tmp_path: Path, settings: dict[str, Any]) -> None:
    recipe = eventful(**settings)
    fit(recipe, tmp_path / "straight")
    with pytest.raises(KeyboardInterrupt):
        fit(recipe, tmp_path / "run", callback=StopAt(8))
    fit(recipe, tmp_path / "run", resume=True)
    assert read_weights(tmp_path / "run") == read_weights(tmp_path / "straight")


@pytest.mark.slow
def test_killed_in_the_middle_of_writing(straight: Path, tmp_path: Path) -> None:
    """Each process goes on with what the one before left, and dies at a later one of its own writes."""
    deaths = 0
    for number in range(1, 60, 3):
        half = number % 2 == 1
        process = FORKS.Process(target=run_until_write, args=(tmp_path / "run", eventful(), number, half))
        process.start()
        process.join()
        if process.exitcode == 0:
            break
        assert process.exitcode == -signal.SIGKILL
        deaths += 1
        if (tmp_path / "run/config.json").exists():
            assert isinstance(Translator.load(tmp_path / "run")("1845-01-05"), str)
    assert process.exitcode == 0
    assert deaths > 4
    assert read_weights(tmp_path / "run") == read_weights(straight)
    assert metrics(tmp_path / "run") == metrics(straight)
    assert files(tmp_path / "run") == files(straight)


@pytest.mark.parametrize("number", [1, 3, 5])
def test_killed_while_it_prepares_it_learns_the_same_vocabulary(tmp_path: Path, number: int) -> None:
    data = replace(TINY.data, vocabulary="unigram", vocab_size=330, alphabet="")
    recipe = replace(TINY, data=data, train=replace(TINY.train, steps=2, validate_every=2, average_checkpoints=1))
    process = FORKS.Process(target=run_until_write, args=(tmp_path / "run", recipe, number, True))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    fit(recipe, tmp_path / "run", resume=True, evaluate=None)
    fit(recipe, tmp_path / "straight", evaluate=None)
    for name in ("tokenizer.json", "weights.safetensors"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "straight" / name).read_bytes()


def test_a_batch_that_is_too_small_for_a_sentence_is_refused_before_there_is_a_run(tmp_path: Path) -> None:
    small = replace(TINY, train=replace(TINY.train, batch_tokens=10))
    with pytest.raises(ConfigError, match=r"train.batch_tokens .*\d+ tokens; got 10"):
        fit(small, tmp_path / "run", evaluate=None)
    fit(TINY, tmp_path / "run", evaluate=None)


def test_damaged_pairs_are_refused_and_prepared_again_once_removed(straight: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        fit(eventful(), tmp_path / "run", callback=StopAt(7))
    ids = tmp_path / "run/data/train.source.ids"
    ids.write_bytes(ids.read_bytes()[:-2] + b"xx")
    with pytest.raises(DataError, match=r"train\.source\.ids"):
        fit(eventful(), tmp_path / "run", resume=True)
    shutil.rmtree(tmp_path / "run/data")
    fit(eventful(), tmp_path / "run", resume=True)
    assert read_weights(tmp_path / "run") == read_weights(straight)


@pytest.mark.slow
def test_killed_at_random_moments(straight: Path, tmp_path: Path) -> None:
    rng, deaths = random.Random(), 0
    process = FORKS.Process(target=run_slowly, args=(tmp_path / "run", eventful()))
    process.start()
    while deaths < 6 and process.exitcode is None:
        process.join(rng.uniform(0.3, 1.5))
        if process.exitcode is None:
            process.kill()
            process.join()  # its lock ends with it, and the system lets it end only after a write that is under way
            deaths += 1
            process = FORKS.Process(target=run_slowly, args=(tmp_path / "run", eventful()))
            process.start()
    process.join()
    assert process.exitcode == 0
    assert read_weights(tmp_path / "run") == read_weights(straight)
    assert metrics(tmp_path / "run") == metrics(straight)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "step"), [(signal.SIGINT, 2), (signal.SIGTERM, 5), (signal.SIGTERM, 6)])
def test_asked_to_stop(straight: Path, tmp_path: Path, number: signal.Signals, step: int) -> None:
    class Ask(Notebook):
        def on_update(self, update: Update, steps: int) -> None:
            if update.step == step - 1:  # what comes while the next one is computed
                os.kill(os.getpid(), number)

    before = signal.getsignal(number)
    with pytest.raises(Interrupted, match=f"update {step} ") as stop:
        fit(eventful(), tmp_path / "run", callback=Ask())
    assert stop.value.signal == number
    assert signal.getsignal(number) == before
    watch = Notebook()
    fit(eventful(), tmp_path / "run", resume=True, callback=watch)
    assert [numbers_in(line) for line in watch.lines if line.startswith("resume: ")] == [[step]]
    assert read_weights(tmp_path / "run") == read_weights(straight)
    assert metrics(tmp_path / "run") == metrics(straight)


def test_asked_to_stop_during_the_last_validation_it_ends_before_what_comes_after_the_run(tmp_path: Path) -> None:
    class Ask(Notebook):
        def on_validation(self, validation: Validation) -> None:
            if validation.averaged > 1:  # the last one is that of the mean
                os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Interrupted, match="update 12 "):
        fit(TINY, tmp_path / "run", callback=Ask())
    watch = Notebook()
    fit(TINY, tmp_path / "run", resume=True, callback=watch)
    (line,) = watch.lines
    assert "finished" in line
    assert numbers_in(line) == [12]


def test_a_second_signal_does_not_wait(tmp_path: Path) -> None:
    class AskTwice(Notebook):
        def on_update(self, update: Update, steps: int) -> None:
            signal.raise_signal(signal.SIGINT)  # done with when it returns, so that two are never one
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start what is in the background without
    try:
        with pytest.raises(KeyboardInterrupt):
            fit(TINY, tmp_path / "run", callback=AskTwice())
    finally:
        signal.signal(signal.SIGINT, before)


def test_in_another_thread_signals_are_left_alone(tmp_path: Path) -> None:
    thread = threading.Thread(target=fit, args=(TINY, tmp_path / "run"))
    thread.start()
    thread.join()
    assert (tmp_path / "run/config.json").exists()


def test_where_nothing_was_begun_resume_begins(tmp_path: Path) -> None:
    fit(TINY, tmp_path / "a", resume=True)
    fit(TINY, tmp_path / "b")
    assert read_weights(tmp_path / "a") == read_weights(tmp_path / "b")


def test_a_finished_run_is_left_as_it_is(straight: Path) -> None:
    before, watch = {path: path.stat().st_mtime_ns for path in straight.iterdir()}, Notebook()
    result = fit(eventful(), straight, resume=True, callback=watch)
    (line,) = watch.lines
    assert "finished" in line
    assert numbers_in(line) == [12]
    changed = replace(eventful(), decode=replace(eventful().decode, beam=3))
    changed = replace(changed, train=replace(changed.train, tensorboard=not changed.train.tensorboard))
    fit(changed, straight, resume=True, callback=watch)
    assert watch.lines[1].startswith(line)
    assert watch.lines[1].endswith(": decode.beam was 4, is 3")
    assert {path: path.stat().st_mtime_ns for path in straight.iterdir()} == before
    assert not result.model.training


def test_a_finished_run_may_be_lengthened(tmp_path: Path) -> None:
    fit(TINY, tmp_path / "run")
    watch = Notebook()
    longer = replace(TINY, train=replace(TINY.train, steps=16, threads=0))
    fit(longer, tmp_path / "run", resume=True, callback=watch)
    assert "resume: train.steps was 12, is 16" in watch.lines
    assert [(validation.step, validation.averaged) for validation in watch.validations] == [(16, 1), (16, 2)]
    assert Recipe.read(tmp_path / "run/recipe.toml") == longer
    assert [line["step"] for line in metrics(tmp_path / "run")] == [4, 8, 12, 16, 16]
    with pytest.raises(ConfigError, match="train.steps=12 .*16 updates") as shorter:
        fit(TINY, tmp_path / "run", resume=True)
    assert shorter.value.options == ("train.steps=32",)


def test_resuming_is_proposed_only_where_it_works(tmp_path: Path) -> None:
    def proposed(recipe: Recipe) -> tuple[str, ...]:
        with pytest.raises(OutputError, match="already contains") as refused:
            fit(recipe, tmp_path / "run")
        return refused.value.options

    (tmp_path / "pairs.tsv").write_text("".join(f"ab {i}\tcd {i}\n" for i in range(50)))
    recipe = replace(TINY, data=replace(TINY.data, train=str(tmp_path / "pairs.tsv"), valid=(), held_out=0))
    fit(recipe, tmp_path / "run")
    elsewhere = ("--output", str(tmp_path / "run-2"))
    assert proposed(recipe) == proposed(replace(recipe, train=replace(recipe.train, steps=16))) == ("--resume",)
    assert proposed(replace(recipe, train=replace(recipe.train, steps=8))) == elsewhere
    assert proposed(replace(recipe, train=replace(recipe.train, batch_tokens=300))) == elsewhere
    (tmp_path / "pairs.tsv").write_text("".join(f"ab {i}\tde {i}\n" for i in range(50)))
    assert proposed(recipe) == elsewhere
    with pytest.raises(DataError, match=r"data.train was \.tsv") as refused:
        fit(recipe, tmp_path / "run", resume=True)
    assert refused.value.options == elsewhere


def test_other_settings_are_refused_all_at_once(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        fit(TINY, tmp_path / "run", callback=StopAt(6))
    other = replace(TINY, train=replace(TINY.train, batch_tokens=300), data=replace(TINY.data, max_train_samples=100))
    with pytest.raises(ConfigError, match="data.max_train_samples .*200, .*100; train.batch_tokens .*200, .*300"):
        fit(other, tmp_path / "run", resume=True)


def test_other_pairs_are_refused_with_the_difference(tmp_path: Path) -> None:
    for name in ("source", "target"):
        (tmp_path / name).write_text("ab\nba\n" * 30)
    data = replace(TINY.data, train=("source", "target"), data_dir=str(tmp_path), max_train_samples=0)
    recipe = replace(TINY, data=replace(data, valid=(), held_out=0, alphabet="ab"))
    with pytest.raises(KeyboardInterrupt):
        fit(recipe, tmp_path / "run", callback=StopAt(6))
    (tmp_path / "source").write_text("ab\nab\n" * 30)
    with pytest.raises(DataError, match=r"data\.train .*\w+ \+ \w+ .*\w+ \+ \w+$"):
        fit(recipe, tmp_path / "run", resume=True)


def test_another_vocabulary_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        fit(TINY, tmp_path / "run", callback=StopAt(6))
    fit(replace(TINY, data=replace(TINY.data, alphabet="0123456789-, abcdefghijklmnoprstuvyDFJMNSAO")), tmp_path / "b")
    (tmp_path / "run/data/tokenizer.json").write_bytes((tmp_path / "b/tokenizer.json").read_bytes())
    with pytest.raises(DataError, match="tokenizer.json has changed"):
        fit(TINY, tmp_path / "run", resume=True)


def test_a_run_does_not_begin_where_something_stands(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/letter").write_text("dear")
    with pytest.raises(OutputError, match="already exists"):
        fit(TINY, tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["letter"]


def test_a_run_is_running_while_its_folder_is_locked(tmp_path: Path) -> None:
    fit(TINY, tmp_path / "run")
    assert not is_running(tmp_path / "run")
    with locked(tmp_path / "run", what="the run"):
        assert is_running(tmp_path / "run")
    assert not is_running(tmp_path / "run")


FORKS = multiprocessing.get_context("forkserver")
OTHER = replace(TINY, train=replace(TINY.train, seed=2))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    fit(TINY, tmp_path / "run")
    return tmp_path / "run"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_new_run_takes_the_place_of_the_old_one_when_it_has_ended(run: Path) -> None:
    before = read_weights(run)
    with replaced(run, sources=()) as folder:
        fit(OTHER, folder)
        assert read_weights(run) == before
    assert read_weights(run) != before
    assert (run / "README.md").read_text().startswith("# run\n")
    assert [path.name for path in run.parent.iterdir()] == ["run"]


def test_a_new_run_that_fails_or_is_killed_leaves_the_old_one_and_can_be_gone_on_with(run: Path) -> None:
    before = contents(run)
    with pytest.raises(DataError), replaced(run, sources=()) as folder:
        fit(replace(TINY, data=replace(TINY.data, train="typo.tsv")), folder)
    assert [path.name for path in run.parent.iterdir()] == ["run"]
    with pytest.raises(KeyboardInterrupt), replaced(run, sources=()) as folder:
        fit(OTHER, folder, callback=StopAt(6))
    assert contents(run) == before
    fit(OTHER, run.parent / "straight")
    with replaced(run, sources=(), resume=True) as folder:
        fit(OTHER, folder, resume=True)
    assert read_weights(run) == read_weights(run.parent / "straight")
    with (
        pytest.raises(OutputError, match="--overwrite"),
        replaced(run, sources=(), resume=True),
    ):
        pass


def test_a_run_that_replaces_none_is_resumed_by_the_same_words(tmp_path: Path) -> None:
    """`--overwrite` of nothing, stopped, and then `--overwrite --resume`."""
    run = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt), replaced(run, sources=()) as folder:
        fit(TINY, folder, callback=StopAt(6))
    watch = Notebook()
    with replaced(run, sources=(), resume=True) as folder:
        fit(TINY, folder, resume=True, callback=watch)
    assert [4] in [numbers_in(line) for line in watch.lines if line.startswith("resume: ")]
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_kill_between_the_two_renames_is_made_good(run: Path) -> None:
    def killed() -> None:
        with replaced(run, sources=()) as folder:
            fit(OTHER, folder)
            run.rename(run.parent / ".run.old")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        killed()
    with replaced(run, sources=(), resume=True) as folder:
        fit(OTHER, folder, resume=True)
    assert (run / "config.json").exists()
    assert [path.name for path in run.parent.iterdir()] == ["run"]


def test_what_no_run_wrote_moves_to_the_new_run(run: Path) -> None:
    assert unrelated(run) == []
    others = [run / name for name in ("explained.html", "data/corpus.tsv", "mine/letter", "later.txt")]
    for path in others[:3]:
        path.parent.mkdir(exist_ok=True)
        path.write_text(path.name)
    with replaced(run, sources=()) as folder:
        fit(OTHER, folder)
        others[3].write_text("later.txt")
    assert unrelated(run) == sorted(others)
    assert [path.read_text() for path in others] == [path.name for path in others]
    assert Recipe.read(run / "recipe.toml") == OTHER
    assert [path.name for path in run.parent.iterdir()] == ["run"]


def test_what_the_new_run_needs_is_not_replaced(run: Path) -> None:
    tuned = replace(TINY, train=replace(TINY.train, init_from=str(run)))
    stored = replace(TINY, data=replace(TINY.data, cache_dir=str(run / "store")))
    filed = replace(TINY, data=replace(TINY.data, train="pairs.tsv", data_dir=str(run)))
    before = contents(run)
    for recipe in (tuned, stored, filed):
        sources = source_paths(recipe)
        with (
            pytest.raises(OutputError, match="run.*--overwrite"),
            replaced(run, sources=sources),
        ):
            pass
    words = ("train", run / "recipe.toml", "--output", run, "--overwrite")
    assert "recipe.toml is in" in refusal(*words)
    assert "is in" in refusal(
        "train", "dates", "--init-from", run, "--output", run, "--overwrite", "data.max_train_samples=200"
    )
    assert contents(run) == before


def test_the_command_replaces_a_run(run: Path) -> None:
    again = run_here("train", run.parent / "again.toml", "--output", run, "--overwrite")
    assert again.returncode == 2
    (run / "recipe.toml").rename(run.parent / "again.toml")
    (run / "recipe.toml").write_bytes((run.parent / "again.toml").read_bytes())
    again = run_here("train", run.parent / "again.toml", "train.seed=5", "--output", run, "--overwrite")
    assert again.returncode == 0, again.stderr.decode()
    assert "is replaced" in again.stderr.decode()
    assert "seed = 5" in (run / "recipe.toml").read_text()


def test_a_corpus_called_data_is_not_taken_for_prepared_pairs(tmp_path: Path) -> None:
    (tmp_path / "out/data").mkdir(parents=True)
    (tmp_path / "out/data/pairs.tsv").write_text("a\tb\n" * 9)
    with pytest.raises(OutputError, match="already exists"):
        fit(TINY, tmp_path / "out")
    with pytest.raises(OutputError, match=r"pairs\.tsv"):
        prepare(TINY.data, CleanConfig(), tmp_path / "out/data", max_length=32)
    assert (tmp_path / "out/data/pairs.tsv").exists()


def test_a_second_process_is_refused_and_a_killed_one_holds_nothing(tmp_path: Path) -> None:
    longer = replace(TINY, train=replace(TINY.train, steps=100_000))
    process = FORKS.Process(target=run_slowly, args=(tmp_path / "run", longer), daemon=True)
    process.start()
    wait_until((tmp_path / "run/config.json").exists, process)
    with pytest.raises(OutputError, match="another process"):
        fit(longer, tmp_path / "run", resume=True, callback=StopAtOnce())
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    with pytest.raises(KeyboardInterrupt):
        fit(longer, tmp_path / "run", resume=True, callback=StopAtOnce())


class StopAtOnce(Notebook):
    def on_train_begin(self, step: int, steps: int) -> None:
        raise KeyboardInterrupt


def test_several_runs_that_begin_on_one_store_prepare_it_once(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("".join(f"a {i} dog runs\tein {i} Hund rennt\n" for i in range(5_000)))
    several = [FORKS.Process(target=prepare_in_store, args=(tmp_path, name)) for name in "abcd"]
    for process in several:
        process.start()
    for process in several:
        process.join()
    assert [process.exitcode for process in several] == [0] * 4
    (folder,) = (tmp_path / "store").iterdir()
    assert (folder / "prepared.json").exists()


@pytest.mark.parametrize("kind", ["file", "pipe", "under"])
def test_a_place_where_no_folder_can_be_is_refused(tmp_path: Path, kind: str) -> None:
    taken = tmp_path / "out"
    os.mkfifo(taken) if kind == "pipe" else taken.write_text("dear")
    where = taken / "run" if kind == "under" else taken
    with pytest.raises(OutputError, match="out"):
        fit(TINY, where)
    assert taken.exists()
