import json
from pathlib import Path

from allyouneed import Recipe, fit
from allyouneed.run import Evaluation, Sample
from allyouneed.run.log import pick_samples, read_jsonl_lines
from allyouneed.run.report import write_report
from runs import TINY


def test_a_page_that_needs_nothing_else(tmp_path: Path) -> None:
    def judge(_: object, pairs: object) -> Evaluation:
        samples = [Sample(f"<b>{i}</b>", "r & r", f"output {i}", float(i)) for i in range(40)]
        return Evaluation({"chrf": 12.5}, samples)

    fit(TINY, tmp_path / "run", evaluate=judge)
    page = (tmp_path / "run/report.html").read_text()
    for part in (
        "loss, nats per token",
        "Best outputs",
        "Worst outputs",
        "Translations during training",
        "batch_tokens",
        "chrf",
        "pairs read",
    ):
        assert part in page
    assert "http" not in page
    assert "<script" not in page
    assert "&lt;b&gt;39&lt;/b&gt;" in page
    assert "<b>39</b>" not in page
    best, worst = page.split("Worst outputs")
    assert "output 39" in best
    assert "output 0<" in worst


def test_a_run_that_has_only_begun_has_a_page_too(tmp_path: Path) -> None:
    fit(TINY, tmp_path / "run")
    (tmp_path / "run/metrics.jsonl").write_text("")
    write_report(tmp_path / "run")
    assert "Settings" in (tmp_path / "run/report.html").read_text()


def test_the_page_says_what_each_source_gave_and_what_was_dropped(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("".join(f"a {i}\tA {i}\n" for i in range(20)) + "a 1\tA 1\n")
    (tmp_path / "b.tsv").write_text("".join(f"b {i}\tB {i}\n" for i in range(7)))
    data = {"train": "a.tsv", "corpus": [{"train": "b.tsv"}], "data_dir": str(tmp_path), "held_out": 0.0}
    fit(Recipe.from_tables({**TINY.tables(), "data": data}), tmp_path / "run")
    page = (tmp_path / "run/report.html").read_text()
    assert "21 pairs read, 20 used" in page
    assert "7 pairs read, 7 used" in page
    assert "exact duplicates" in page
    assert "<i>a 1 → A 1</i>" in page


def test_a_line_that_a_kill_cut_off_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "m.jsonl").write_text(json.dumps({"step": 1}) + '\n{"step": 2')
    assert read_jsonl_lines(tmp_path / "m.jsonl") == [{"step": 1}]
    assert read_jsonl_lines(tmp_path / "none.jsonl") == []


def test_the_few_that_are_kept_come_from_all_over() -> None:
    samples = [Sample(str(i), "", "", 0.0) for i in range(23)]
    assert [sample.source for sample in pick_samples(samples)] == ["0", "4", "8", "12", "16"]
    assert len(pick_samples(samples[:3])) == 3
