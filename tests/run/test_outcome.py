import torch

from allyouneed.run.outcome import Outcome
from allyouneed.run.state import MAX_SKIPPED_IN_A_ROW, TrainState


def test_outcomes_are_counted_one_update_later() -> None:
    state, counts = TrainState(), []
    for finite in (True, False, False, True, True):
        state.outcomes.append(Outcome(torch.tensor(finite)))
        state.count_outcomes(later=1)
        counts.append((state.skipped, state.skipped_in_a_row))
    assert counts == [(0, 0), (0, 0), (1, 1), (2, 2), (2, 0)]
    state.count_outcomes()
    assert (state.skipped, state.skipped_in_a_row, len(state.outcomes)) == (2, 0, 0)


def test_five_in_a_row_are_seen_also_where_a_finite_one_follows_before_the_count() -> None:
    state = TrainState()
    state.outcomes = [Outcome(torch.tensor(finite)) for finite in [False] * MAX_SKIPPED_IN_A_ROW + [True]]
    state.count_outcomes()
    assert state.skipped_in_a_row == MAX_SKIPPED_IN_A_ROW
    state.count_outcomes()
    assert (state.skipped, state.skipped_in_a_row) == (MAX_SKIPPED_IN_A_ROW, 0)
