import pytest
import sacrebleu

from allyouneed.errors import DataError
from allyouneed.score import bleu, chrf, exact_match

OURS = ["the cat sat on the mat", "a dog"]
THEIRS = ["the cat is on the mat", "a dog"]


def test_scores_are_those_of_sacrebleu() -> None:
    assert bleu(OURS, THEIRS).value == sacrebleu.corpus_bleu(OURS, [THEIRS]).score
    assert chrf(OURS, THEIRS).value == sacrebleu.corpus_chrf(OURS, [THEIRS]).score


def test_the_signature_says_how_it_was_counted() -> None:
    assert "tok:13a" in bleu(OURS, THEIRS).signature
    assert "case:mixed" in bleu(OURS, THEIRS).signature
    assert "nc:6" in chrf(OURS, THEIRS).signature


def test_exact_match_by_hand() -> None:
    assert exact_match(OURS, THEIRS).value == 50.0
    assert exact_match(THEIRS, THEIRS).value == 100.0
    assert exact_match(OURS, THEIRS).signature == "equal:1|of:2"


@pytest.mark.parametrize("score", [bleu, chrf, exact_match])
def test_what_does_not_pair_or_is_empty_is_refused(score: object) -> None:
    with pytest.raises(DataError, match="2 translations cannot be scored against 1 references"):
        score(OURS, THEIRS[:1])  # type: ignore[operator]
    with pytest.raises(DataError, match="nothing to score"):
        score([], [])  # type: ignore[operator]
