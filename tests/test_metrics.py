import random

import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as some
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import PairedTest, Result

from allyouneed.errors import ConfigError, DataError
from allyouneed.metrics import (
    METRICS,
    PairedScore,
    bleu,
    chrf,
    count_sentences,
    edit_distance,
    exact_match,
    make_metrics,
    paired_bootstrap,
    refuse_unknown_tokenizer,
    resampled_scores,
    score_with_interval,
)

OURS = ["the cat sat on the mat", "a dog"]
THEIRS = ["the cat is on the mat", "a dog"]


def noisy(texts: list[str], share: float) -> list[str]:
    """Replace some words of the texts."""
    rng = random.Random(share)
    return [" ".join(word if rng.random() > share else "dog" for word in text.split()) for text in texts]


def score(name: str, translations: list[str], references: list[str] | list[list[str]]) -> float:
    return count_sentences(make_metrics([name])[name], translations, references).score


def test_scores_are_those_of_sacrebleu() -> None:
    assert bleu(OURS, THEIRS).value == sacrebleu.corpus_bleu(OURS, [THEIRS]).score
    assert chrf(OURS, THEIRS).value == sacrebleu.corpus_chrf(OURS, [THEIRS]).score


def test_the_signature_says_how_it_was_counted() -> None:
    assert "tok:13a" in bleu(OURS, THEIRS).signature
    assert "case:mixed" in bleu(OURS, THEIRS).signature
    assert "nc:6" in chrf(OURS, THEIRS).signature


@pytest.mark.parametrize(
    ("tokenizer", "text"),
    [
        ("13a", "The house is big."),
        ("13a", "Дом большой."),
        ("zh", "今天我们去公园，天气很好。"),
        ("zh", "我在Google学校读书。"),
        ("char", "今日は公園へ行きます。"),
        ("char", "오늘은 공원에 갑니다."),
        ("char", "วันนี้เราไปสวนสาธารณะ"),
        ("13a", "The sign says 公园."),
    ],
)
def test_bleu_is_counted_by_the_tokenizer_of_the_script_of_the_references(tokenizer: str, text: str) -> None:
    assert f"tok:{tokenizer}" in bleu([text], [[text]]).signature
    assert bleu([text], [[text]]).signature == bleu([text], [[text]], tokenize=tokenizer).signature


def test_bleu_of_chinese_is_that_of_sacrebleu() -> None:
    translations, references = (
        ["我在学校看书。", "今天我们去公园，天气很好。"],
        ["我在学校读书。", "今天我们去公园，天气好。"],
    )
    expected = sacrebleu.corpus_bleu(translations, [references], tokenize="zh").score
    assert bleu(translations, references).value == expected > 50
    assert 5 < score("ter", translations, references) < 20


def test_exact_match_by_hand() -> None:
    assert exact_match(OURS, THEIRS).value == 50.0
    assert exact_match(THEIRS, THEIRS).value == 100.0
    assert exact_match(OURS, THEIRS).signature == "equal:1|of:2"


def test_chrf_with_words_and_ter_are_those_of_sacrebleu() -> None:
    assert score("chrf++", OURS, THEIRS) == sacrebleu.corpus_chrf(OURS, [THEIRS], word_order=2).score
    assert score("ter", OURS, THEIRS) == sacrebleu.corpus_ter(OURS, [THEIRS]).score == pytest.approx(100 * 1 / 8)


def test_the_character_error_rate_by_hand() -> None:
    assert score("cer", ["kitten", "a"], ["sitting", "abc"]) == pytest.approx(100 * (3 + 2) / (7 + 3))
    assert score("cer", ["kitten"], [["sitting", "kitte"]]) == pytest.approx(
        100 * 1 / 6
    )  # the nearest, the mean length
    assert score("cer", ["", "b"], ["", ""]) == 100
    assert score("cer", [""], [""]) == 0


def test_the_word_error_rate_by_hand() -> None:
    """Phonemes of "phone" and "knot": one replaced, one inserted, of six."""
    assert score("wer", ["F AW N", "N AA T S"], ["F OW N", "N AA T"]) == pytest.approx(100 * 2 / 6)
    assert score("wer", ["a  cat sat"], [["a dog sat down", "a cat"]]) == pytest.approx(100 * 1 / 3)
    assert score("wer", ["The"], ["the"]) == score("wer", ["b"], [""]) == 100
    counts = count_sentences(make_metrics(["wer"])["wer"], OURS, THEIRS)
    assert counts.signature == "nrefs:1|case:mixed|unit:word"
    assert score_with_interval(make_metrics(["wer"])["wer"], counts).low == 0


@given(some.lists(some.tuples(some.text("ab ", max_size=12), some.text("ab ", max_size=12)), min_size=1, max_size=3))
def test_the_word_error_rate_is_that_of_the_table(pairs: list[tuple[str, str]]) -> None:
    """By the recursion of the definition, over all words of a corpus."""

    def edits(first: tuple[str, ...], second: tuple[str, ...]) -> int:
        if not first or not second:
            return len(first) + len(second)
        replaced = edits(first[1:], second[1:]) + (first[0] != second[0])
        return min(replaced, edits(first[1:], second) + 1, edits(first, second[1:]) + 1)

    length = sum(len(reference.split()) for _, reference in pairs)
    errors = sum(edits(tuple(output.split()), tuple(reference.split())) for output, reference in pairs)
    outputs, references = map(list, zip(*pairs, strict=True))
    assert score("wer", outputs, references) == pytest.approx(100 * errors / length if length else 100 * (errors > 0))


@given(some.text("abc", max_size=12), some.text("abc", max_size=12))
def test_the_edit_distance_is_that_of_the_table(first: str, second: str) -> None:
    above = list(range(len(second) + 1))
    for row, x in enumerate(first, start=1):
        current = [row]
        for column, y in enumerate(second, start=1):
            current.append(min(above[column] + 1, current[-1] + 1, above[column - 1] + (x != y)))
        above = current
    assert edit_distance(first, second) == above[-1]


def test_an_unknown_metric_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match='"blue".*bleu, .*exact'):
        make_metrics(["blue"])


@pytest.mark.parametrize("name", [*METRICS, "wer"])
def test_what_does_not_pair_or_is_empty_is_refused(name: str) -> None:
    with pytest.raises(DataError, match="2 translations .*1 references"):
        score(name, OURS, THEIRS[:1])
    with pytest.raises(DataError, match="to score"):
        score(name, [], [])


def test_the_nearest_of_several_references_counts() -> None:
    several = [["the cat is on the mat", "the cat sat on the mat"], ["the dog"]]
    assert exact_match(OURS, several).value == 50.0
    raw = sacrebleu.corpus_bleu(OURS, [["the cat is on the mat", "the dog"], ["the cat sat on the mat", None]])  # type: ignore[list-item]
    assert bleu(OURS, several).value == raw.score
    assert "nrefs:var" in bleu(OURS, several).signature


def test_text_that_is_tokenized_is_taken_as_it_is() -> None:
    ours, raw = ["a man , smiling , walks"], ["a man,smiling , walks by"]
    assert bleu(ours, raw, tokenize="none").value < bleu(ours, raw).value
    assert "tok:none" in bleu(ours, raw, tokenize="none").signature


def test_an_unknown_tokenizer_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match='"13b".*13a.*none'):
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
    with pytest.raises(DataError, match="50 translations .*2 references"):
        paired_bootstrap(worse, worse, references[:2])


def test_the_paired_bootstrap_is_that_of_sacrebleu() -> None:
    references = [f"the cat number {i} sat on the mat of house {i % 7}" for i in range(40)]
    first, second = noisy(references, 0.4), noisy(references, 0.33)
    reference = {"BLEU": BLEU(references=[references]), "chrF++": CHRF(word_order=2, references=[references]),
                 "TER": TER(references=[references])}  # fmt: skip
    _, results = PairedTest([("a", first), ("b", second)], reference, references=None, test_type="bs")()
    names = {"BLEU": "BLEU", "chrF++": "chrF2++", "TER": "TER"}
    for ours in paired_bootstrap(first, second, references, make_metrics(["bleu", "chrf++", "ter"])):
        a, b = results[names[ours.name]]
        assert isinstance(a, Result)
        assert isinstance(b, Result)
        assert (ours.first, ours.second) == (a.score, b.score)
        assert ours.p_value == b.p_value


@pytest.mark.parametrize(("name", "metric"), [("bleu", BLEU()), ("chrf", CHRF()), ("ter", TER())])
def test_the_interval_is_that_of_sacrebleu(name: str, metric: BLEU | CHRF | TER) -> None:
    references = [f"the cat number {i} sat on the mat of house {i % 7}" for i in range(40)]
    translations = noisy(references, 0.4)
    ours = make_metrics([name])[name]
    interval = score_with_interval(ours, count_sentences(ours, translations, references))
    expected = metric.corpus_score(translations, [references], n_bootstrap=1_000)
    assert interval.low < interval.value == expected.score < interval.high
    assert (interval.high - interval.low) / 2 == pytest.approx(expected._ci, rel=1e-5)


def test_a_sample_has_as_many_sentences_as_the_set() -> None:
    counts = count_sentences(make_metrics(["exact"])["exact"], ["a", "b", "c", "d"], ["a", "b", "x", "y"])
    scores = resampled_scores(counts)
    assert set(scores.tolist()) <= {0.0, 25.0, 50.0, 75.0, 100.0}
    assert scores.mean() == pytest.approx(50, abs=3)


def test_the_better_model_is_the_one_with_fewer_errors() -> None:
    assert PairedScore("TER", 50, 40, 0.01, 30, "", higher_is_better=False).better == 1
    assert PairedScore("BLEU", 50, 40, 0.01, 30, "").better == 0
    assert PairedScore("BLEU", 50, 40, 0.06, 30, "").better is None
    assert PairedScore("BLEU", 50, 50, 0.001, 30, "").better is None
    assert PairedScore("BLEU", 50, 40, 0.001, 29, "").better is None  # samples of one sentence are all the same
