import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from allyouneed import Recipe, fit
from allyouneed.apps.reports.report import NO_OUTPUTS, write_report
from allyouneed.errors import ConfigError, DataError
from allyouneed.evaluation.baselines import nearest_training_pairs
from allyouneed.run import Evaluation, Sample, SilentCallback, Validation
from allyouneed.run.log import pick_samples, read_jsonl_lines
from runs import TINY


def test_a_page_that_needs_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["/bin/allyouneed", "train", "mine"])

    def judge(_: object, pairs: object) -> Evaluation:
        samples = [Sample(f"<b>{i}</b>", "r & r", f"output {i}", float(i)) for i in range(40)]
        return Evaluation({"chrf": 12.5}, samples)

    fit(TINY, tmp_path / "run", evaluate=judge)
    page = (tmp_path / "run/report.html").read_text()
    for part in (
        "nats per token",
        "Gradient norm",
        "target tokens/s",
        ">warmup<",
        "Environment and command",
        "allyouneed train mine",
        "Best outputs",
        "Worst outputs",
        "Translations during training",
        "batch_tokens",
        "chrf",
        "pairs read",
    ):
        assert part in page
    assert not re.search(r"(src|href)=|https?:", page)
    assert "&lt;b&gt;39&lt;/b&gt;" in page
    assert "<b>39</b>" not in page
    best, worst = page.split("Worst outputs")
    assert re.search(r"<dd dir='auto'[^>]*>output 39</dd>", best)  # a text of either direction
    assert "output 0<" in worst


def test_a_loss_is_next_to_that_of_a_guess_and_in_words(tmp_path: Path) -> None:
    bundle = fit(TINY, tmp_path / "run", evaluate=None)
    page = (tmp_path / "run/report.html").read_text()
    tokens = len(bundle.target_tokenizer)
    loss = read_jsonl_lines(tmp_path / "run/metrics.jsonl")[-1]["valid_loss"]
    assert f"{math.log(tokens):.2f})</dt>" in page
    assert f"{math.exp(loss):,.2f} of {tokens} tokens</dd>" in page
    assert re.search(rf"among {tokens} tokens, .*{math.log(tokens):.2f}", (tmp_path / "run/log.txt").read_text())


def test_under_a_wrong_output_are_the_nearest_training_pairs(tmp_path: Path) -> None:
    samples = [Sample("1845-01-05", "January 5, 1845", "May 5", 1.0), Sample("1845-01-06", "right", "right", 100.0)]
    fit(TINY, tmp_path / "run", evaluate=lambda *_: Evaluation({"chrf": 1.0}, samples))
    best, worst = (tmp_path / "run/report.html").read_text().split("Worst outputs")
    pairs = nearest_training_pairs(tmp_path / "run", ["1845-01-05"])["1845-01-05"]
    assert len(pairs) == 2
    assert all(f"{pair.source} → {pair.target}</dd>" in worst for pair in pairs)
    assert not any(f"{pair.source} → {pair.target}</dd>" in best for pair in pairs)


def test_a_run_that_has_only_begun_has_a_page_too(tmp_path: Path) -> None:
    fit(TINY, tmp_path / "run")
    for name in ("metrics.jsonl", "updates.jsonl", "validation.jsonl", "samples.jsonl"):
        (tmp_path / "run" / name).unlink()
    write_report(tmp_path / "run")
    page = (tmp_path / "run/report.html").read_text()
    assert "Settings" in page
    assert "first validation" in page
    assert page.count(NO_OUTPUTS) == 2


def test_the_curves_leave_the_mean_of_checkpoints_out_and_say_so(tmp_path: Path) -> None:
    fit(TINY, tmp_path / "run")
    *checkpoints, mean = read_jsonl_lines(tmp_path / "run/metrics.jsonl")
    assert mean["averaged"] == 2
    page = (tmp_path / "run/report.html").read_text()
    correct = page.split("<b>Tokens predicted correctly</b>")[1].partition('<polyline class="line c2" points="')[2]
    assert len(correct.partition('"')[0].split()) == len(checkpoints)
    assert "last checkpoints" in page
    assert f"{mean['step']} (mean of 2)" in page


def test_a_bleu_of_0_of_words_that_are_right_is_not_shown(tmp_path: Path) -> None:
    """It counts runs of four words, and the screen and the card leave it out, too."""
    fit(TINY, tmp_path / "run", evaluate=lambda bundle, pairs: Evaluation({"bleu": 0.0, "exact": 75.0}))
    page = (tmp_path / "run/report.html").read_text()
    assert "The highest exact was 75.00" in page
    assert "<dt>exact" in page
    assert "<dt>bleu" not in page


def test_where_all_outputs_are_equally_good_there_are_no_worst(tmp_path: Path) -> None:
    perfect = Evaluation({"chrf": 100.0}, [Sample("a", "b", "b", 100.0)] * 5)
    fit(TINY, tmp_path / "run", evaluate=lambda *_: perfect)
    page = (tmp_path / "run/report.html").read_text()
    assert re.search(r"None: .* 5 .* 100\.", page.split("Worst outputs")[1])


def test_losses_have_one_axis_and_a_note_says_how_they_differ(tmp_path: Path) -> None:
    fit(replace(TINY, train=replace(TINY.train, label_smoothing=0.1)), tmp_path / "run")
    page = (tmp_path / "run/report.html").read_text()
    figure = page.split("<figcaption><b>Loss</b>")[1].split("</svg>")[0]
    assert figure.count('class="axis"') == 2  # losses and updates
    assert figure.count("<polyline") == 2
    assert "label smoothing 0.1" in page


class _ReadReport(SilentCallback):
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pages: list[str] = []

    def on_validation(self, validation: Validation) -> None:
        self.pages.append((self.folder / "report.html").read_text())


def test_the_page_refreshes_itself_until_the_run_ends(tmp_path: Path) -> None:
    seen = _ReadReport(tmp_path / "run")
    fit(TINY, tmp_path / "run", callback=seen)
    assert len(seen.pages) == 4
    assert all("data-refresh" in page for page in seen.pages)
    assert "data-refresh" not in (tmp_path / "run/report.html").read_text()


def test_translations_of_one_sentence_stand_together(tmp_path: Path) -> None:
    fit(TINY, tmp_path / "run")
    lines = [
        {"step": step, "samples": [{"source": s, "reference": s, "output": f"{s}-{step}"} for s in sources]}
        for step, sources in ((4, ("a", "b")), (8, ("a", "c")))
    ]
    (tmp_path / "run/samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    write_report(tmp_path / "run")
    page = (tmp_path / "run/report.html").read_text()
    assert "a-4" in page
    assert "b-4" not in page  # not among the last ones
    assert page.index("a-8") < page.index("c-8")


def test_the_report_of_a_run_without_the_newer_files_is_drawn_from_the_older(tmp_path: Path) -> None:
    fit(TINY, tmp_path / "run")
    for name in ("updates.jsonl", "environment.jsonl"):
        (tmp_path / "run" / name).unlink()
    lines = read_jsonl_lines(tmp_path / "run/metrics.jsonl")
    old = [{key: line[key] for key in line if key not in ("gradient_norm", "tokens_per_second")} for line in lines]
    (tmp_path / "run/metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in old))
    write_report(tmp_path / "run")
    page = (tmp_path / "run/report.html").read_text()
    assert "Learning rate" in page
    assert "Gradient norm" not in page


def test_damaged_files_are_refused_in_a_line(tmp_path: Path) -> None:
    fit(TINY, tmp_path / "run")
    (tmp_path / "run/metrics.jsonl").write_text('{"step": 1}\n')
    with pytest.raises(DataError, match="metrics.jsonl.* is damaged"):
        write_report(tmp_path / "run")
    with pytest.raises(ConfigError, match="training run"):
        write_report(tmp_path)


def test_a_report_that_cannot_be_written_is_a_warning_and_the_run_goes_on(tmp_path: Path) -> None:
    class TakeName(SilentCallback):
        def on_validation(self, validation: Validation) -> None:
            if (report := tmp_path / "run/report.html").is_file():
                report.unlink()
                report.mkdir()

    assert fit(TINY, tmp_path / "run", callback=TakeName()).card
    log = (tmp_path / "run/log.txt").read_text()
    assert re.search(r"warning +.*: .*report.html ", log)


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
