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


def test_what_wins_at_the_beginning_alone_is_not_tried_on_text() -> None:
    """In half a minute a narrow model and a high rate are ahead, in half an hour behind."""
    rules, _ = Draft({}).complete(CORPUS)
    for exact in (False, True):
        candidates = list_candidates(Draft({}), replace(CORPUS, exact=exact), 8)
        rates = [float(str(change["train.learning_rate"])) for change in candidates if "train.learning_rate" in change]
        assert any("model.d_model" in change for change in candidates) == exact
        assert (len(rates), max(rates) < rules.train.learning_rate) == ((2, False) if exact else (1, True))
