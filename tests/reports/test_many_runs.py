from dataclasses import replace
from pathlib import Path

from allyouneed import fit
from allyouneed.apps.reports.many_runs import build_page_of_runs, compare_many_runs
from allyouneed.run import Evaluation, Sample
from runs import TINY


def test_three_runs_are_a_table_in_which_seeds_are_a_row_and_curves(tmp_path: Path) -> None:
    pairs = [(f"s {number}", f"t {number}") for number in range(60)]
    rights = {"one": 50, "two": 54, "other": 9}
    for seed, (name, right) in enumerate(rights.items(), start=1):
        heads = 1 if name == "other" else 2
        samples = [Sample(*pair, pair[1] if number < right else "no", 1.0) for number, pair in enumerate(pairs)]
        recipe = replace(TINY, model=replace(TINY.model, heads=heads), train=replace(TINY.train, seed=seed))
        fit(recipe, tmp_path / name, evaluate=lambda *_, kept=samples: Evaluation({"exact": 1.0}, kept))
    compared = compare_many_runs([tmp_path / name for name in rights])
    head, seeds, other = compared.scores
    column = head.index("exact match")
    assert (compared.pairs, seeds[0]) == (60, f"{tmp_path / 'one'}, 2 seeds")
    assert seeds[column] == f"{100 * 52 / 60:.2f} ± {100 * 2 / 60 * 2**0.5:.2f}"
    assert other[column] == f"{100 * 9 / 60:.2f}"
    assert other[-1].startswith("worse, p = 0.0")
    assert len(compared.losses) == 3
    page = build_page_of_runs(compared)
    assert seeds[column] in page
    assert page.count("<figcaption>") == 2
