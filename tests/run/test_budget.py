"""A run with a time budget, on a clock that moves only when a test moves it."""

import re
import signal
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from allyouneed import Bundle, ConfigError, Recipe, fit
from allyouneed.config import DataConfig
from allyouneed.data.pairs import Pair
from allyouneed.errors import Interrupted, TrainingError
from allyouneed.run import Evaluation
from allyouneed.run.budget import USED_FILE, Stopwatch
from allyouneed.run.log import read_jsonl_lines, read_plans
from allyouneed.train import Update, learning_rate_at
from messages import numbers_in
from runs import TINY, Notebook, read_weights

LETTERS = ["".join(letters) for letters in product("abcde", repeat=3)]
PAIRS = [(text, text[::-1]) for text in LETTERS]


class Clock:
    """A clock in seconds."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Paced(Notebook):
    """A callback that lets an update take some seconds: `pace` of its number; it breaks off after update `last`."""

    def __init__(self, clock: Clock, pace: Any = lambda step: 1.0, last: int = 10**9) -> None:
        super().__init__()
        self.clock, self._pace, self._last = clock, pace, last
        self.updates: list[Update] = []
        self.planned: list[int] = []  # the last update, as planned after each

    def on_update(self, update: Update, steps: int) -> None:
        self.clock.now += self._pace(update.step)
        self.updates.append(update)
        self.planned.append(steps)
        if update.step == self._last:
            raise KeyboardInterrupt


def budget(minutes: float, **train: Any) -> Recipe:
    settings = {"steps": 1000, "warmup": 100, "validate_every": 200, "learning_rate": 0.001, "schedule": "constant"}
    settings |= {"minutes": minutes, "average_checkpoints": 1, "validate_samples": 0} | train
    data = DataConfig(vocabulary="characters")
    return replace(TINY, data=data, train=replace(TINY.train, **settings))  # type: ignore[arg-type]


def train(recipe: Recipe, folder: Path, watch: "Paced", valid: Any = PAIRS[:20], **options: Any) -> None:
    fit(recipe, folder, train=PAIRS, valid=valid, callback=watch, stopwatch=Stopwatch(watch.clock), **options)


def trained(folder: Path, recipe: Recipe, pace: Any = lambda step: 1.0, **options: Any) -> tuple[Paced, float]:
    """Return the callback of a run, and the seconds that it took."""
    clock = Clock()
    watch = Paced(clock, pace)
    train(recipe, folder, watch, **options)
    return watch, clock.now - 1000


@pytest.mark.slow
@pytest.mark.parametrize(
    "pace",
    [
        lambda step: 4.0 if step == 1 else 1.0,
        lambda step: 1.0 if step < 30 else 3.0,
        lambda step: 3.0 if step < 10 else 0.5 + step % 2,
    ],
    ids=["slow start", "slower", "faster and uneven"],
)
def test_the_run_ends_just_before_the_deadline_with_the_learning_rate_at_zero(tmp_path: Path, pace: Any) -> None:
    watch, seconds = trained(tmp_path / "run", budget(2), pace)
    assert 114 < seconds <= 120
    rates = [update.learning_rate for update in watch.updates]
    assert max(rates) > 0.0009
    assert rates[-1] < 0.01 * max(rates)
    top = rates.index(max(rates))
    assert rates[:top] == sorted(rates[:top])
    assert rates[top:] == sorted(rates[top:], reverse=True)
    assert Bundle.load(tmp_path / "run")


def test_every_update_was_made_with_the_plan_that_the_record_has(tmp_path: Path) -> None:
    recipe = budget(1, validate_every=100)
    watch, _ = trained(tmp_path / "run", recipe, lambda step: 1.0 + step % 3)
    plans = read_plans(tmp_path / "run")
    rates = []
    for update, steps in zip(watch.updates, watch.planned, strict=True):
        plan = [plan for plan in plans if plan.step < update.step][-1]
        rates.append(learning_rate_at(plan.position_at(update.step, recipe.train), recipe.train, d_model=8))
        assert steps == plan.steps
    assert rates == [update.learning_rate for update in watch.updates]
    recorded = {line["step"]: line["learning_rate"] for line in read_jsonl_lines(tmp_path / "run/updates.jsonl")}
    assert recorded == {step: rates[step - 1] for step in recorded}
    assert len(recorded) > 10


def test_with_time_for_all_steps_it_is_the_run_without_a_budget(tmp_path: Path) -> None:
    recipe = budget(1, steps=24, warmup=5, cooldown=10, validate_every=7)
    watch, _ = trained(tmp_path / "budget", recipe, lambda step: 0.01)
    plain = Paced(Clock())
    train(replace(recipe, train=replace(recipe.train, minutes=0.0)), tmp_path / "plain", plain)
    assert [update.learning_rate for update in watch.updates] == [update.learning_rate for update in plain.updates]
    assert [validation.step for validation in watch.validations] == [7, 14, 21, 24]
    assert read_weights(tmp_path / "budget") == read_weights(tmp_path / "plain")
    assert not (tmp_path / "plain/plans.jsonl").exists()


def test_time_is_kept_for_test_scores_only_as_long_as_these_may_take() -> None:
    command = Stopwatch(Clock(), closing=True)
    assert Stopwatch(Clock()).closing_seconds(600) == 0
    assert command.closing_seconds(600) == 36
    assert command.closing_seconds(600, validation=2) == 5 * 2 + 10
    assert command.closing_seconds(600, validation=20) == 36
    assert command.closing_seconds(6000) == 60


def test_a_command_that_was_slow_to_start_has_more_time_to_end() -> None:
    clock = Clock()
    assert Stopwatch(clock, begun=clock.now).left(1) == 60 - 0.5
    assert Stopwatch(clock, begun=clock.now - 8).left(1) == 60 - 8 - 4.5


@pytest.mark.parametrize(("test", "ends"), [(PAIRS[100:], (100, 112.5)), (None, (115, 120))])
def test_a_command_without_test_pairs_trains_to_the_end_of_its_budget(
    tmp_path: Path, test: Any, ends: tuple[float, float]
) -> None:
    clock = Clock()
    stopwatch = Stopwatch(clock, closing=True)
    fit(budget(2), tmp_path / "run", train=PAIRS[:90], valid=PAIRS[90:100], test=test, callback=Paced(clock),
        stopwatch=stopwatch)  # fmt: skip
    assert ends[0] < clock.now - 1000 < ends[1]


def test_validations_take_a_small_share_and_translate_fewer_pairs_for_it(tmp_path: Path) -> None:
    clock, sizes = Clock(), []

    def slow(_: Bundle, pairs: Sequence[Pair]) -> Evaluation:
        clock.now += 0.1 * len(pairs)
        sizes.append(len(pairs))
        return Evaluation({"luck": 7.0})

    recipe = budget(5, validate_every=50, validate_samples=150)
    recipe = replace(recipe, clean=replace(recipe.clean, overlap="none"))
    watch = Paced(clock)
    train(recipe, tmp_path / "run", watch, valid=[(source, source) for source, _ in PAIRS], evaluate=slow)
    assert sizes[:2] == [32, 32]
    assert set(sizes[2:]) == {
        32
    }  # 0.07 · 300 seconds for five validations of 0.1 seconds a pair: 41, and 32 evenly spaced
    assert 5 <= len(watch.validations) < 20
    assert 0.1 * sum(sizes) < 0.1 * 300
    assert 290 < clock.now - 1000 <= 300
    assert [32, 125, 7] in [numbers_in(line) for line in watch.lines if line.startswith("budget: ")]


def test_the_best_model_is_kept(tmp_path: Path) -> None:
    scores = iter([1.0, 5.0, 9.0, 8.0, 7.0, 6.0, *[2.0] * 9])
    recipe = budget(2, validate_every=100, validate_samples=5, early_stopping_metric="luck")
    watch, _ = trained(
        tmp_path / "run", recipe, lambda step: 0.3, evaluate=lambda *_: Evaluation({"luck": next(scores)})
    )
    steps = [validation.step for validation in watch.validations]
    assert len(steps) == 10
    assert steps[2] > 100
    assert f"for {steps[2]:,} updates" in Bundle.load(tmp_path / "run").card


class Stopped(Paced):
    """A callback that asks for a stop, by SIGTERM, after update `last`."""

    def on_update(self, update: Update, steps: int) -> None:
        last, self._last = self._last, 0
        super().on_update(update, steps)
        self._last = last
        if update.step == last:
            signal.raise_signal(signal.SIGTERM)


@pytest.mark.slow
def test_a_run_that_was_stopped_has_the_rest_of_its_budget_and_ends_with_the_same_weights(tmp_path: Path) -> None:
    recipe = budget(1, validate_every=100, average_checkpoints=2)
    straight, _ = trained(tmp_path / "straight", recipe)
    clock, updates = Clock(), []
    for last in (3, 20, 55, 0):
        watch = Stopped(clock, last=last)
        try:
            train(recipe, tmp_path / "run", watch, resume=True)
        except Interrupted:
            clock.now += 1e6  # the machine does something else
        updates += watch.updates
    assert [update.learning_rate for update in updates] == [update.learning_rate for update in straight.updates]
    assert read_weights(tmp_path / "run") == read_weights(tmp_path / "straight")
    assert read_plans(tmp_path / "run") == read_plans(tmp_path / "straight")


def test_a_killed_run_keeps_to_its_budget(tmp_path: Path) -> None:
    recipe, clock = budget(2, validate_every=100, validate_samples=20), Clock()

    def slow(*_: object) -> Evaluation:
        clock.now += 5
        return Evaluation({"luck": 7.0})

    with pytest.raises(KeyboardInterrupt):
        train(recipe, tmp_path / "run", Paced(clock, last=70), evaluate=slow)
    validated = read_jsonl_lines(tmp_path / "run/metrics.jsonl")[-1]["step"]
    watch = Paced(clock)
    train(recipe, tmp_path / "run", watch, evaluate=slow, resume=True)
    # Updates since the last checkpoint are lost, but their time counts. Not every checkpoint has a validation.
    assert validated + 2 < watch.updates[0].step < 70
    assert watch.updates[-1].learning_rate < 1e-5
    assert 115 < clock.now - 1000 <= 122


def test_a_longer_budget_continues_a_finished_run_and_a_shorter_one_is_refused(tmp_path: Path) -> None:
    first, seconds = trained(tmp_path / "run", budget(1))
    again, _ = trained(tmp_path / "run", budget(1), resume=True)
    assert "finished after" in again.lines[-1]
    longer, more = trained(tmp_path / "run", budget(2), resume=True)
    assert "resume: train.minutes was 1.0, is 2.0" in longer.lines
    assert longer.updates[0].step == first.updates[-1].step + 1
    assert 115 < seconds + more <= 120
    rates = [update.learning_rate for update in longer.updates]
    assert rates[0] == pytest.approx(0.0005, rel=0.15)  # as in the middle of the schedule
    assert rates[-1] < 1e-5
    with pytest.raises(ConfigError, match=r"train\.minutes=1\.5 .*(2|1\.9) minutes") as shorter:
        trained(tmp_path / "run", budget(1.5), resume=True)
    assert shorter.value.options == ("--minutes", "4")


def test_a_budget_cannot_be_taken_away(tmp_path: Path) -> None:
    """The position in the compressed schedule would be lost, and a finished run would train on."""
    trained(tmp_path / "run", budget(0.5))
    with pytest.raises(ConfigError, match=r"train\.minutes .*0\.5, .*0\.0"):
        trained(tmp_path / "run", budget(0), resume=True)


def test_a_budget_that_was_raised_goes_beyond_the_steps_and_can_be_resumed(tmp_path: Path) -> None:
    trained(tmp_path / "run", budget(0.5, steps=20, warmup=2))
    clock = Clock()
    with pytest.raises(KeyboardInterrupt):
        train(budget(1, steps=20, warmup=2), tmp_path / "run", Paced(clock, last=25), resume=True)
    trained(tmp_path / "run", budget(1, steps=20, warmup=2), resume=True)
    again, _ = trained(tmp_path / "run", budget(1, steps=20, warmup=2), resume=True)
    assert "finished" in again.lines[-1]
    assert numbers_in(again.lines[-1]) == [30]
    trained(tmp_path / "run", budget(2, steps=20, warmup=2), resume=True)
    assert read_plans(tmp_path / "run")[-1].steps > 30


def test_a_run_that_made_all_its_steps_without_a_budget_is_finished_with_one_too(tmp_path: Path) -> None:
    plain = budget(0, steps=10, warmup=2)
    trained(tmp_path / "run", plain)
    watch, _ = trained(tmp_path / "run", budget(1, steps=10, warmup=2), resume=True)
    assert "finished" in watch.lines[-1]
    assert numbers_in(watch.lines[-1]) == [10]


def test_the_length_of_a_compressed_schedule_stays(tmp_path: Path) -> None:
    """With another one, its position would be of another schedule, and the learning rate perhaps below zero."""
    trained(tmp_path / "run", budget(1))
    for steps in (900, 2000):
        with pytest.raises(ConfigError, match=f"train.steps .*1000, .*{steps}"):
            trained(tmp_path / "run", budget(2, steps=steps), resume=True)


class SlowToPrepare(Paced):
    """A callback of a run whose pairs take long to read."""

    def on_prepare(self, what: str, done: int, total: int | None) -> None:
        self.clock.now += 4


def test_a_budget_that_is_used_up_before_the_first_update_is_refused_in_a_line(tmp_path: Path) -> None:
    clock = Clock()
    line = r"train.minutes=0.05 leaves no time to train: preparing took \d.0 seconds; give at least 0.\d$"
    with pytest.raises(TrainingError, match=line):
        train(budget(0.05), tmp_path / "run", SlowToPrepare(clock))
    trained(tmp_path / "run", budget(0.05))


def test_the_end_of_the_process_is_part_of_a_budget_that_is_refused(tmp_path: Path) -> None:
    """Half of the time that the start took is kept for the end, so that 15 of 20 seconds leave none for updates."""
    clock = Clock()
    stopwatch = Stopwatch(clock, begun=clock.now - 14)
    line = r"train.minutes=0.3 leaves no time to train: preparing took 14.0 seconds; give at least 1$"
    pairs: dict[str, Any] = {"train": PAIRS, "valid": PAIRS[:20]}
    with pytest.raises(TrainingError, match=line):
        fit(budget(0.3), tmp_path / "run", **pairs, callback=Paced(clock), stopwatch=stopwatch)
    assert not (tmp_path / "run/recipe.toml").exists()
    fit(budget(1), tmp_path / "run", **pairs, callback=Paced(clock), stopwatch=stopwatch)
    assert 40 < clock.now + 14 - 1000 < 54


def test_a_process_that_ends_before_its_first_plan_has_used_its_part_of_the_budget(tmp_path: Path) -> None:
    clock = Clock()

    class EndedEarly(Paced):
        def on_prepare(self, what: str, done: int, total: int | None) -> None:
            self.clock.now += 20
            raise KeyboardInterrupt

    class EndedAfterASave(EndedEarly):
        def on_prepare(self, what: str, done: int, total: int | None) -> None:
            pass

        def on_train_begin(self, step: int, steps: int) -> None:
            super().on_prepare("", 0, None)

    with pytest.raises(KeyboardInterrupt):
        train(budget(2), tmp_path / "run", EndedEarly(clock))
    for ended in (EndedAfterASave(clock), EndedAfterASave(clock)):
        with pytest.raises(KeyboardInterrupt):
            train(budget(2), tmp_path / "run", ended, resume=True)
    watch = Paced(clock)
    train(budget(2), tmp_path / "run", watch, resume=True)
    assert 115 < clock.now - 1000 <= 120
    assert watch.updates[0].step == 1
    assert 50 < len(watch.updates) < 60


def test_the_seconds_of_a_process_are_noted_while_it_runs(tmp_path: Path) -> None:
    """The note is read before the block ends, as when the process is killed in it."""
    clock, file = Clock(), tmp_path / "run/used_seconds.txt"
    with Stopwatch(clock).noted(file, goes_on=False):
        clock.now += 30
        while float(file.read_text()) < 30:
            time.sleep(0.01)
        (tmp_path / "killed.txt").write_text(file.read_text())
    assert not file.parent.exists()  # nothing has begun there
    again = Stopwatch(clock)
    with again.noted(tmp_path / "killed.txt", goes_on=True):
        assert again.seconds() == 30
        clock.now += 5
    with again.noted(tmp_path / "killed.txt", goes_on=True):
        assert again.seconds() == 35  # the file has its own five
    with (new := Stopwatch(clock)).noted(tmp_path / "killed.txt", goes_on=False):
        assert new.seconds() == 0


def test_a_twin_has_used_as_many_seconds_unless_its_own_model_has_used_others(tmp_path: Path) -> None:
    stopwatch = Stopwatch(lambda: 10.0, begun=4.0)
    stopwatch.go_on_after(5.0)
    for number, (noted, seconds) in enumerate([("", 11.0), ("20.0", 26.0)]):
        file = tmp_path / str(number) / USED_FILE
        file.parent.mkdir()
        file.write_text(noted)
        with (
            stopwatch.noted(tmp_path / "first" / USED_FILE, goes_on=False),
            (twin := stopwatch.twin()).noted(file, goes_on=True),
        ):
            assert twin.seconds() == seconds
        assert (stopwatch.seconds(), twin.left(1)) == (11.0, stopwatch.left(1) + 11 - seconds)


def test_a_model_of_few_updates_is_called_untrained(tmp_path: Path) -> None:
    for name, settings in (("few", {"steps": 99}), ("enough", {"steps": 100}), ("more", {"steps": 1})):
        start = {"init_from": str(tmp_path / "enough")} if name == "more" else {}
        trained(tmp_path / name, budget(0, **settings, **start))
    few, enough, more = (Bundle.load(tmp_path / name).card for name in ("few", "enough", "more"))
    assert re.search("\nUntrained: .* 100 updates", few)
    assert "Untrained" not in enough + more


def test_a_budget_for_a_few_updates_is_used(tmp_path: Path) -> None:
    watch, seconds = trained(tmp_path / "run", budget(0.05), lambda step: 0.4)
    assert 4 <= len(watch.updates) <= 7
    assert seconds < 3
    assert [validation.step for validation in watch.validations][-1] == len(watch.updates)
    watch, _ = trained(tmp_path / "slow", budget(0.05), lambda step: 100.0)
    assert len(watch.updates) == 1


@pytest.mark.slow
def test_two_workers_follow_the_plans_of_the_first_and_save_between_validations(tmp_path: Path) -> None:
    recipe = budget(1, validate_every=50, workers=2, validate_samples=20)
    clock = Clock()

    def slow(*_: object) -> Evaluation:
        clock.now += 3
        return Evaluation({"luck": 7.0})

    watch = Paced(clock)
    train(recipe, tmp_path / "run", watch, evaluate=slow)
    assert len(watch.validations) < 15  # of 20; at the others, there is only a checkpoint
    assert watch.updates[-1].step == watch.planned[-1] == watch.validations[-1].step
    assert 50 < clock.now - 1000 <= 60


@pytest.mark.parametrize("minutes", [-1, float("nan"), float("inf"), "ten", True])
def test_nonsense_is_refused(minutes: Any) -> None:
    with pytest.raises(ConfigError, match="minutes"):
        budget(minutes)
