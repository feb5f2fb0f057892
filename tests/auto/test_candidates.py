from dataclasses import replace

import pytest

from allyouneed.auto import Draft
from allyouneed.auto.candidates import list_candidates
from allyouneed.auto.choice_rules import Corpus

CORPUS = Corpus(pairs=30_000, tokens=400_000, longest=40, has_valid=True, exact=False, gpu=False, minutes=30)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(("tokens", "is_varied"), [(400_000, False), (4_000_000, True)])
def test_dropout_is_left_to_short_trials_only_if_the_run_repeats_the_pairs_little(
    tokens: int, is_varied: bool, exact: bool
) -> None:
    candidates = list_candidates(Draft({}), replace(CORPUS, tokens=tokens, exact=exact), 8)
    assert any("model.dropout" in change for change in candidates) == is_varied
    assert not any("train.label_smoothing" in change for change in candidates) or is_varied
    assert candidates[0] == {}
