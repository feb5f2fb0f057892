"""Advice on a poor model, with reasons from its run; and a prediction of the score after more minutes.

The thresholds are rules of thumb.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil, log
from statistics import linear_regression
from typing import Any, NamedTuple

from ...auto.choice_rules import FEW_SENTENCES
from ...run.state import MIN_UPDATES
from .record import COPY, MODEL, NEAREST, SCORE_TITLES, SYSTEMS, HeldOutResult, RunRecord

METRIC = "chrf"  # compares a model with the baselines
GOOD = {"exact": 90.0, "chrf": 75.0}  # a model that reaches either of these needs no advice
# The validation loss is still falling if it fell by 2 % in the last fifth of the updates.
LAST_PART, FALLING = 0.2, 0.02
RISING = 0.05  # the loss has risen if it is 5 % above its minimum
# A model has memorized its pairs if the training loss is at most this share of the validation loss.
LEARNED_BY_HEART = 0.6
MANY_DROPPED = 0.05  # share of the pairs that were read
CONTRADICTED = 0.3  # share of the test sources that occur in the training pairs, if at least 20 do
OUT_OF_TRAINING = (  # dropped, but not because of noise
    "max_train_samples", "max_valid_samples", "deduplicate", "overlap_source", "overlap_target",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Evidence:
    """How many test sources occur among the training pairs, and how many of them have a different target there."""

    seen: int = 0
    contradicted: int = 0


def advise(result: HeldOutResult, run: RunRecord, evidence: Evidence, *, pairs: int | None) -> list[str]:
    """Suggest what to try next, the most promising first; nothing for a good model.

    `pairs` is the number of the model's training pairs, or None if it is unknown.
    """
    is_good = any(result.scores[MODEL][name] >= limit for name, limit in GOOD.items())
    if as_good := _best_baseline(result):
        beside = (
            f"It is not clearly better than the {SYSTEMS[as_good]} ({SCORE_TITLES[METRIC]} "
            f"{result.scores[MODEL][METRIC]:.1f} against {result.scores[as_good][METRIC]:.1f})"
        )
        if result.scores[MODEL]["exact"] == 100:
            return [f"{beside}: both are right on all these pairs, so they need no model."]
        if is_good:
            return [f"{beside}: either these pairs need no model, or longer training helps ({_longer(run)})."]
        if run.last_step() < MIN_UPDATES:
            few_updates = f"after {run.last_step():,} of at least {MIN_UPDATES} updates it has learned little"
            return [f"{beside}: {few_updates}; train longer ({_longer(run)})."]
        first = [f"{beside}: check that {_alignment(run)}; if so, train longer ({_longer(run)})."]
    elif is_good:
        return []
    else:
        first = list(_course(run))
    few = (
        f"{pairs:,} training pairs are few: more pairs of the kind that fails help most; or start from a model of "
        "the same languages (--init-from)."
    )
    return [*first, *_noise(run, evidence), *([few] if pairs is not None and pairs < FEW_SENTENCES else [])]


def _best_baseline(result: HeldOutResult) -> str:
    """Return the better baseline if it reaches the lower end of the model's interval, else ""."""
    baselines = {name: result.scores[name][METRIC] for name in (COPY, NEAREST) if name in result.scores}
    best = max(baselines, key=lambda name: baselines[name])
    return best if baselines[best] >= result.intervals[METRIC][0] else ""


def _alignment(run: RunRecord) -> str:
    """Describe how the lines of aligned files belong together, with the files' names."""
    corpora = [run.settings.get("data", {}), *run.setting("data", "corpus", ())]
    is_two_files = any(isinstance(one.get("train"), list) and len(one["train"]) == 2 for one in corpora)
    if is_two_files:
        return "line n of the source belongs to line n of the target"
    return "both sides of each pair belong together, such as both columns of a line"


def _course(run: RunRecord) -> Iterator[str]:
    """Yield advice that follows from the training and validation loss."""
    validations = [line for line in run.checkpoints() if line["valid_loss"] is not None]
    if len(validations) < 3:
        return
    losses = [float(line["valid_loss"]) for line in validations]
    last, lowest, training = losses[-1], min(losses), validations[-1]["loss"]
    lowest_at = validations[losses.index(lowest)]["step"]
    fall = _last_fall(validations)
    if _learns_by_heart(losses):
        yield (
            f"The validation loss was lowest after update {lowest_at:,} ({lowest:.3f}) and then rose to {last:.3f}: "
            "the model learns its pairs by heart. Get more pairs, raise model.dropout, or take a smaller model."
        )
    elif fall >= FALLING:
        yield (
            f"The validation loss still fell by {fall:.0%} in the last fifth of the run, to {last:.3f}: train longer, "
            f"such as with {_longer(run)}."
        )
    elif look_ahead(run):
        return  # its scores show that the model is still improving
    elif run.has_comparable_losses() and training is not None and training < LEARNED_BY_HEART * last:
        yield (
            f"The training loss, {training:.3f}, is far below the validation loss, {last:.3f}: more pairs help, or "
            "more model.dropout."
        )
    else:
        yield (
            f"The validation loss has settled at {last:.3f}: longer training will change little. More pairs help most, "
            "then a larger model (model.d_model, model.encoder_layers, model.decoder_layers)."
        )


def _last_fall(validations: list[dict[str, Any]]) -> float:
    """Return the share by which the lowest validation loss fell in the last fifth of the updates."""
    begin = (1 - LAST_PART) * validations[-1]["step"]
    before = min((line["valid_loss"] for line in validations if line["step"] <= begin), default=None)
    after = min(line["valid_loss"] for line in validations)
    return 0.0 if not before else float(1 - after / before)


def _learns_by_heart(losses: list[float]) -> bool:
    return losses[-1] > (1 + RISING) * min(losses)


def longer_options(run: RunRecord) -> tuple[str, ...]:
    """Return the command-line words that train a run for longer. All places that suggest it use these."""
    patience = run.setting("train", "patience", 0)
    if minutes := run.setting("train", "minutes", 0.0):
        prospect = look_ahead(run)
        used = max([line["seconds"] / 60 for line in run.checkpoints() if "seconds" in line], default=0.0)
        more = prospect.minutes if prospect else 2 * max(minutes, used)
        return ("--resume", "--minutes", f"{more if more < 1 else ceil(more):g}")
    if patience and run.last_step() < run.setting("train", "steps", 0):
        return ("--resume", f"train.patience={2 * patience}")
    return ("--resume", f"train.steps={2 * run.last_step()}")


def _longer(run: RunRecord) -> str:
    return " ".join(longer_options(run))


def _noise(run: RunRecord, evidence: Evidence) -> Iterator[str]:
    if evidence.contradicted >= max(1, 20 * CONTRADICTED) and evidence.contradicted >= CONTRADICTED * evidence.seen:
        yield (
            f"{evidence.contradicted:,} of the {evidence.seen:,} test sources that occur in the training pairs have "
            "another target there. If one answer is right, clean the pairs; if several are, score with several "
            "references (allyouneed evaluate BUNDLE --pairs FILE: more columns)."
        )
    if run.data and (read := run.data.train.read):
        rules = {name: rule for name, rule in run.data.train.dropped.items() if name not in OUT_OF_TRAINING}
        dropped = sum(rule.count for rule in rules.values())
        if dropped >= MANY_DROPPED * read:
            which = replace(run.data.train, dropped=rules).sentence()
            yield (
                f"{dropped / read:.0%} of the pairs were dropped as faulty ({which}), so others "
                "may also be noisy: look at data-report.json, and clean the pairs."
            )


TIMES = 4  # times the minutes that the run had
BEGIN, FEWEST = 1 / 3, 4  # the curve is used from this share of the time on, with at least this many validations
# Within a run the learning rate falls to zero, so scores rise faster than from a short run to a longer one: on
# inflection, twice as fast in the logarithm of the error.
SHARE_OF_SLOPE = 0.5
SMALLEST_GAIN = 1.0  # in points; a smaller gain is not worth the time


class Prospect(NamedTuple):
    """The score that a run of so many minutes is expected to reach.

    `title` names the score, and `now` is the present score.
    """

    minutes: int
    title: str
    now: float
    then: float

    def __str__(self) -> str:
        return (
            f"Too short to be as good as it can be: by the curve of this run about {self.minutes} minutes reach "
            f"{self.then:.0f} in {self.title}, {self.now:.0f} now."
        )


def look_ahead(run: RunRecord) -> Prospect | None:
    """Predict the score after `TIMES` as many minutes; None without an expected gain, a time budget or a curve.

    A run that memorizes its pairs gains nothing.

    The error, 100 minus the score, is expected to fall with a power of the time. The score is the one that selects the
    best model: exact match if token accuracy selects it, and chrF if the loss does.
    """
    minutes, metric = run.setting("train", "minutes", 0.0), run.setting("train", "early_stopping_metric", "")
    metric = "exact" if metric == "accuracy" else metric if metric in SCORE_TITLES else "chrf"
    lines = [line for line in run.checkpoints() if metric in line["scores"]]
    curve = [(line["seconds"], 100 - line["scores"][metric]) for line in lines]
    curve = [(seconds, error) for seconds, error in curve if seconds >= BEGIN * curve[-1][0] and error > 0]
    losses = [line["valid_loss"] for line in lines if line.get("valid_loss") is not None]
    if not minutes or len(curve) < FEWEST or (losses and _learns_by_heart(losses)):
        return None
    slope = linear_regression(*zip(*((log(seconds), log(error)) for seconds, error in curve), strict=True)).slope
    error = min(error for _, error in curve)
    then = error * TIMES ** min(0.0, SHARE_OF_SLOPE * slope)
    if error - then < SMALLEST_GAIN:
        return None
    return Prospect(max(1, round(TIMES * minutes)), SCORE_TITLES[metric], 100 - error, 100 - then)
