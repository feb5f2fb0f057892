"""A run is replaced only by one that has ended, and two processes never write into one."""

import multiprocessing
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from allyouneed import DataError, OutputError, fit
from allyouneed.config import CleanConfig
from allyouneed.data.prepare import prepare
from allyouneed.run import replaced, source_paths
from allyouneed.run.replace import unrelated
from runs import TINY, Notebook, StopAt, prepare_in_store, read_weights, run_slowly
from shell import refusal, run_here
from waiting import wait_until

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
        pytest.raises(OutputError, match="there is no unfinished run that would replace .*run; --overwrite alone"),
        replaced(run, sources=(), resume=True),
    ):
        pass


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


def test_what_no_run_wrote_is_never_removed(run: Path) -> None:
    assert unrelated(run) == []
    for name in ("notes.txt", "data/corpus.tsv", "mine/letter"):
        (run / name).parent.mkdir(exist_ok=True)
        (run / name).write_text("dear")
        with pytest.raises(OutputError, match=f"contains files that no run wrote .{name}"), replaced(run, sources=()):
            pass
        (run / name).unlink()
    assert (run / "mine").exists()


def test_what_comes_while_the_new_run_grows_stays_beside(run: Path) -> None:
    with replaced(run, sources=()) as folder:
        fit(OTHER, folder)
        (run / "notes.txt").write_text("dear")
    assert contents(run.parent / ".run.old") == {"notes.txt": b"dear"}


def test_what_the_new_run_needs_is_not_replaced(run: Path) -> None:
    tuned = replace(TINY, train=replace(TINY.train, init_from=str(run)))
    stored = replace(TINY, data=replace(TINY.data, cache_dir=str(run / "store")))
    filed = replace(TINY, data=replace(TINY.data, train="pairs.tsv", data_dir=str(run)))
    before = contents(run)
    for recipe in (tuned, stored, filed):
        sources = source_paths(recipe)
        with (
            pytest.raises(OutputError, match="lies in .*run, which --overwrite would replace"),
            replaced(run, sources=sources),
        ):
            pass
    words = ("train", run / "recipe.toml", "--output", run, "--overwrite")
    assert "recipe.toml lies in" in refusal(*words)
    assert "lies in" in refusal(
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
    assert "is replaced when this run" in again.stderr.decode()
    assert "seed = 5" in (run / "recipe.toml").read_text()


def test_a_corpus_called_data_is_not_taken_for_prepared_pairs(tmp_path: Path) -> None:
    (tmp_path / "out/data").mkdir(parents=True)
    (tmp_path / "out/data/pairs.tsv").write_text("a\tb\n" * 9)
    with pytest.raises(OutputError, match="out exists already, and a run would be mixed up with it"):
        fit(TINY, tmp_path / "out")
    with pytest.raises(OutputError, match="data holds pairs.tsv, which is no file of prepared pairs"):
        prepare(TINY.data, CleanConfig(), tmp_path / "out/data", max_length=32)
    assert (tmp_path / "out/data/pairs.tsv").exists()


def test_a_second_process_is_refused_and_a_killed_one_holds_nothing(tmp_path: Path) -> None:
    longer = replace(TINY, train=replace(TINY.train, steps=100_000))
    process = FORKS.Process(target=run_slowly, args=(tmp_path / "run", longer), daemon=True)
    process.start()
    wait_until((tmp_path / "run/config.json").exists, process)
    with pytest.raises(OutputError, match="run is being written by another process"):
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
    (tmp_path / "pairs.tsv").write_text("".join(f"a {i} dog runs\tein {i} Hund rennt\n" for i in range(20_000)))
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
    with pytest.raises(OutputError, match="out.* (exists already|could not be written)"):
        fit(TINY, where)
    assert taken.exists()
