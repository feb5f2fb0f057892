"""Successive halving (Jamieson and Talwalkar, 2016): which candidate to try next, for how long, and which to take.

All of it follows from the candidates, the records of finished trials and the time, so that a decision can be
repeated from the records. The first candidate, which the rules chose, stays until the end: the other one in the last
round has to be better by more than the noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .candidates import Change

# Seconds of a trial in the first round, at least: after a few seconds all models of text still have the same scores.
SHORTEST, SHORTEST_TEXT = 4.0, 15.0
COUNTS = (8, 4)  # candidates, as many as the time allows; two are not worth the time of the updates that they replace
SCORE_STEP = 2.0  # differences of scores below this are noise, and the loss decides
LOSS_GAIN = 0.02  # by which a candidate has to be better than the rules


class Trial(NamedTuple):
    """A candidate by its number, to be trained and validated within some seconds in a round."""

    round: int
    candidate: int
    seconds: float


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """The result of a trial: `seconds` are those of all its work, `score` is by `metric` and `loss` in nats a pair.

    Both are None where they were not measured or not finite.
    """

    round: int
    candidate: int
    settings: Change
    seconds: float
    updates: int
    metric: str
    score: float | None
    loss: float | None


def count_candidates(seconds: float, *, exact: bool = True) -> int:
    """How many candidates can be tried in some time; 0: none."""
    shortest = SHORTEST if exact else SHORTEST_TEXT
    return next((count for count in COUNTS if _slot(seconds, count, count) >= shortest), 0)


def next_trial(count: int, records: Sequence[TrialRecord], seconds: float) -> Trial | None:
    """The next trial of `count` candidates; None when the last round is complete or the time used up."""
    left = seconds - sum(record.seconds for record in records)
    for number, candidates in enumerate(_rounds(count, records)):
        tried = {record.candidate for record in records if record.round == number}
        slot = _slot(seconds, count, len(candidates))
        if untried := [candidate for candidate in candidates if candidate not in tried]:
            return Trial(number, untried[0], min(slot, left)) if left >= slot / 2 else None
    return None


def best_record(count: int, records: Sequence[TrialRecord]) -> TrialRecord | None:
    """The record of the best candidate in the last complete round; None if no round is complete."""
    best = None
    for number, candidates in enumerate(_rounds(count, records)):
        finished = {record.candidate: record for record in records if record.round == number}
        if finished.keys() != set(candidates):
            break
        rules = finished[0]
        others = _best_first([finished[i] for i in candidates if i])
        best = next((record for record in others if _is_better(record, rules)), rules)
    return best


def _is_better(record: TrialRecord, rules: TrialRecord) -> bool:
    gain = (record.score or 0.0) - (rules.score or 0.0)
    if abs(gain) >= SCORE_STEP:
        return gain > 0
    return record.loss is not None and (rules.loss is None or record.loss < (1 - LOSS_GAIN) * rules.loss)


def _best_first(records: Sequence[TrialRecord]) -> list[TrialRecord]:
    """By their scores; those whose scores differ from the best by noise, and so on, by their losses."""
    best = max((record.score or 0.0 for record in records), default=0.0)

    def rank(record: TrialRecord) -> tuple[int, float]:
        steps = int((best - (record.score or 0.0)) / SCORE_STEP)
        return steps, float("inf") if record.loss is None else record.loss

    return sorted(records, key=rank)


def _rounds(count: int, records: Sequence[TrialRecord]) -> list[list[int]]:
    """The candidates of every round up to the first that is incomplete."""
    rounds = [list(range(count))]
    while True:
        finished = [record for record in records if record.round == len(rounds) - 1]
        if len(finished) < len(rounds[-1]) or len(finished) <= 2:
            return rounds
        others = _best_first([record for record in finished if record.candidate])
        rounds.append([0, *(record.candidate for record in others[: max(1, len(finished) // 2 - 1)])])


def _slot(seconds: float, count: int, candidates: int) -> float:
    """The time of one of `candidates` trials of a round; all rounds have the same time."""
    rounds = max(1, (count - 1).bit_length())
    return seconds / rounds / candidates
