from pathlib import Path
from statistics import stdev

import pytest

from allyouneed.evaluation.model_scores import ScoredSet, TranslatedSet
from allyouneed.evaluation.seeds import align_table, compare_by_seed, group_by_seed, mean_with_deviation, seed_table
from allyouneed.metrics import make_metrics

PAIRS = 100


def scored(name: str, right: range) -> ScoredSet:
    """Make a system that has these of a hundred sentences right."""
    sources = [f"s {number}" for number in range(PAIRS)]
    references = [[f"t {number}"] for number in range(PAIRS)]
    outputs = [f"t {number}" if number in right else "no" for number in range(PAIRS)]
    return ScoredSet.count(TranslatedSet(name, sources, references, outputs), make_metrics(["exact"]))


def test_runs_that_differ_only_in_their_seed_are_together(tmp_path: Path) -> None:
    texts = ("train.seed = 1", "train.seed = 1\nmodel.heads = 2", "train.seed = 7", None, None)
    runs = [tmp_path / str(number) for number in range(len(texts))]
    for run, text in zip(runs, texts, strict=True):
        run.mkdir()
        if text:
            (run / "recipe.toml").write_text(text)
    assert group_by_seed(runs) == [[0, 2], [1], [3], [4]]


def test_seeds_are_one_row_with_mean_and_deviation_and_are_compared_by_all_their_sentences() -> None:
    systems = [scored("a", range(90)), scored("b", range(50)), scored("a2", range(94)), scored("c", range(91))]
    first, worse, alike = compare_by_seed(systems, [[0, 2], [1], [3]], "exact")
    assert first.scores == {"exact": [90.0, 94.0]}
    assert worse.against_first is not None
    assert worse.against_first.first == pytest.approx(92)
    assert worse.against_first.second == pytest.approx(50)
    assert worse.finding().startswith("worse")
    assert alike.finding().startswith("no difference")
    assert mean_with_deviation([90.0, 94.0]) == f"92.00 ± {stdev([90, 94]):.2f}"
    head, *rows = align_table(list(seed_table([first, worse, alike], {"exact": "exact match"})))
    assert "exact match" in head
    assert rows[0].split() == ["a,", "2", "seeds", "92.00", "±", "2.83"]
    assert rows[1].startswith("b ")


def test_too_few_pairs_are_no_finding() -> None:
    metrics = make_metrics(["exact"])
    one, other = (ScoredSet.count(TranslatedSet(name, ["s"], [["t"]], [name]), metrics) for name in "tu")
    _, second = compare_by_seed([one, other], [[0], [1]], "exact")
    assert "better" not in second.finding()
    assert "worse" not in second.finding()
