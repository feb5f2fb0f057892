import pytest
import sacrebleu

from allyouneed.errors import ConfigError, DataError
from allyouneed.metrics import bleu, chrf, exact_match, paired_bootstrap, refuse_unknown_tokenizer

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


def test_the_nearest_of_several_references_counts() -> None:
    several = [["the cat is on the mat", "the cat sat on the mat"], ["the dog"]]
    assert exact_match(OURS, several).value == 50.0
    raw = sacrebleu.corpus_bleu(OURS, [["the cat is on the mat", "the dog"], ["the cat sat on the mat", None]])  # type: ignore[list-item]
    assert bleu(OURS, several).value == raw.score
    assert "nrefs:var" in bleu(OURS, several).signature


def test_text_that_is_tokenised_is_taken_as_it_is() -> None:
    ours, raw = ["a man , smiling , walks"], ["a man,smiling , walks by"]
    assert bleu(ours, raw, tokenize="none").value < bleu(ours, raw).value
    assert "tok:none" in bleu(ours, raw, tokenize="none").signature


def test_an_unknown_tokenizer_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r'no tokenizer "13b"; it has .*13a.*none'):
        refuse_unknown_tokenizer("13b")


def test_a_paired_bootstrap_tells_a_better_model_from_an_equal_one() -> None:
    references = [f"the cat number {i} sat on the mat" for i in range(50)]
    worse = [reference.replace("cat", "dog") if i % 3 else reference for i, reference in enumerate(references)]
    scores = paired_bootstrap(worse, references, references)
    assert [score.name for score in scores] == ["BLEU", "chrF2"]
    for score in scores:
        assert score.second == pytest.approx(100)
        assert score.p_value < 0.01
        assert "bs:1000" in score.signature
    assert scores[0].first == pytest.approx(bleu(worse, references).value)
    with pytest.raises(DataError, match="50 translations cannot be scored against 2 references"):
        paired_bootstrap(worse, worse, references[:2])
