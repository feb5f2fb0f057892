import re
from dataclasses import replace
from pathlib import Path

import pytest

from allyouneed import fit
from allyouneed.apps.reports.comparison import build_comparison_page, compare_runs, mark_differences
from allyouneed.errors import ConfigError, DataError
from allyouneed.run import Evaluation, Sample
from messages import numbers_in
from runs import TINY


def samples(words: str, count: int = 30) -> list[Sample]:
    """Make translations, each second of which is wrong where `words` says so."""
    outputs = []
    for i in range(count):
        reference, word = f"the cat number {i} sat down", words if i % 2 else "cat"
        outputs.append(Sample(f"s{i}", reference, reference.replace("cat", word), 100.0 if word == "cat" else 50.0))
    return outputs


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Make two runs, the second of which is better."""
    folder = tmp_path_factory.mktemp("runs")
    fit(TINY, folder / "a", evaluate=lambda *_: Evaluation({"chrf": 1.0}, samples("<dog>", 32)))
    recipe = replace(TINY, train=replace(TINY.train, warmup=2, label_smoothing=0.2))
    fit(recipe, folder / "b", evaluate=lambda *_: Evaluation({"chrf": 2.0}, samples("cat", 30)))
    return folder / "a", folder / "b"


def test_the_scores_are_of_the_pairs_that_both_translated(runs: tuple[Path, Path]) -> None:
    comparison = compare_runs(*runs)
    assert len(comparison.pairs) == 30
    bleu, chrf = comparison.scores
    assert (bleu.name, chrf.name) == ("BLEU", "chrF2")
    assert bleu.second == pytest.approx(100)
    assert bleu.first < 80
    assert bleu.p_value < 0.01
    assert comparison.summary()[1].endswith(f"b is better (p = {bleu.p_value:.3f})")


def test_of_few_pairs_there_is_no_finding(runs: tuple[Path, Path]) -> None:
    comparison = compare_runs(*runs)
    few = replace(comparison, scores=[replace(score, sentences=29) for score in comparison.scores])
    assert re.search("too few .*29 \\(p = ", few.summary()[1])


def test_the_page_has_settings_and_sentences_that_differ(runs: tuple[Path, Path]) -> None:
    page = build_comparison_page(compare_runs(*runs))
    for part in ("train.warmup", "train.label_smoothing", "Better in b", "<mark>&lt;dog&gt;</mark>", "Validation chrf",
                 "15 of 30 translations are equal", "The training losses are different measures",
                 "The mean of the last checkpoints is not in the curves.",
                 "<dd dir='auto' class='output'>"):  # fmt: skip
        assert part in page
    assert "train.steps" not in page
    assert "<dog>" not in page
    assert "None." in page.split("Worse in b")[1]


def test_a_run_equals_itself(runs: tuple[Path, Path]) -> None:
    comparison = compare_runs(runs[0], runs[0])
    assert all(line.endswith("equal") for line in comparison.summary()[1:])
    assert build_comparison_page(comparison).count("None.") >= 3


def test_test_pairs_are_compared_instead_where_they_are_translated(runs: tuple[Path, Path]) -> None:
    comparison = compare_runs(*runs, translations=(samples("x", 4), samples("y", 4)))
    assert comparison.summary()[0] == "4 test pairs, paired bootstrap:"


def test_without_common_pairs_the_page_says_so(runs: tuple[Path, Path]) -> None:
    comparison = compare_runs(*runs, translations=(samples("x"), []))
    (line,) = comparison.summary()
    assert numbers_in(line) == []
    assert comparison.summary()[0] in build_comparison_page(comparison)


def test_folders_without_runs_and_damaged_ones_are_refused(runs: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="training run"):
        compare_runs(runs[0], tmp_path)
    (tmp_path / "recipe.toml").write_text("")
    (tmp_path / "validation.jsonl").write_text('{"score": 1}\n')
    with pytest.raises(DataError, match="is damaged"):
        compare_runs(runs[0], tmp_path)


def test_words_that_differ_are_marked() -> None:
    assert mark_differences("a b c", "a x y c") == ("a <mark>b</mark> c", "a <mark>x y</mark> c")
    assert mark_differences("a", "a b<") == ("a", "a <mark>b&lt;</mark>")
    assert mark_differences("", "") == ("", "")
