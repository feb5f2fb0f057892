"""What more minutes would bring: the curve of a run with a time budget, extrapolated."""

from math import log
from statistics import linear_regression
from typing import NamedTuple

from .held_out_result import SCORE_TITLES
from .record import RunRecord

TIMES = 4  # as many minutes as the run had
BEGIN, FEWEST = 1 / 3, 4  # the curve from this share of the time on, of at least so many validations
# In a run the learning rate falls to zero, which makes scores rise faster than from a short run to a longer one: of
# inflection, twice as fast in the logarithm of the error.
SHARE_OF_SLOPE = 0.5
SMALLEST_GAIN = 1.0  # points; less is not worth the time


class Prospect(NamedTuple):
    """The score that so many minutes in all would reach; `title` names it, `now` is that of the model there is."""

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
    """What TIMES the minutes would reach; None if nothing is to be gained, or the run has no budget or no curve.

    The error falls with a power of the time. It is 100 less the score by which the best model is kept, or less chrF if
    the loss decides.
    """
    minutes, metric = run.setting("train", "minutes", 0.0), run.setting("train", "early_stopping_metric", "")
    metric = metric if metric in SCORE_TITLES else "chrf"
    lines = [line for line in run.checkpoints() if metric in line["scores"]]
    curve = [(line["seconds"], 100 - line["scores"][metric]) for line in lines]
    curve = [(seconds, error) for seconds, error in curve if seconds >= BEGIN * curve[-1][0] and error > 0]
    if not minutes or len(curve) < FEWEST:
        return None
    slope = linear_regression(*zip(*((log(seconds), log(error)) for seconds, error in curve), strict=True)).slope
    error = min(error for _, error in curve)
    then = error * TIMES ** min(0.0, SHARE_OF_SLOPE * slope)
    if error - then < SMALLEST_GAIN:
        return None
    return Prospect(max(1, round(TIMES * minutes)), SCORE_TITLES[metric], 100 - error, 100 - then)
