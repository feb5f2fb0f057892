"""What a run says about itself at its end."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import sacrebleu

from allyouneed import Bundle, ConfigError, DataError, Translator, fit
from allyouneed.apps.reports import evaluate_run
from allyouneed.apps.reports.final_test import translate_within
from allyouneed.apps.reports.record import HeldOutResult, RunRecord
from allyouneed.apps.reports.report import write_report
from runs import TINY

PAIRS = [(f"{number:03} is a number", f"{number:03}"[::-1] + " ist eine Zahl") for number in range(300)]
RECIPE = replace(TINY, data=replace(TINY.data, train=(), valid=(), held_out=0.1, max_valid_samples=40))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Bundle, Path]:
    run = tmp_path_factory.mktemp("final") / "run"
    return fit(RECIPE, run, train=PAIRS, evaluate=None), run


@pytest.fixture(scope="module")
def result(trained: tuple[Bundle, Path]) -> HeldOutResult:
    return evaluate_run(*trained)


def test_the_scores_are_those_of_the_translations_beside_the_baselines(
    trained: tuple[Bundle, Path], result: HeldOutResult
) -> None:
    bundle, _ = trained
    samples = {sample.source: sample for sample in result.samples}
    assert len(samples) == 20
    assert 20 < result.pairs == result.held_out < 60
    assert [sample.output for sample in samples.values()] == Translator(bundle).translate(list(samples))
    assert result.scores.keys() == {"model", "copy", "nearest"}
    for name, value in result.scores["model"].items():
        low, high = result.intervals[name]
        assert low <= value <= high
    assert result.scores["copy"]["exact"] == 0
    assert 0 < result.scores["copy"]["chrf"] < result.scores["nearest"]["chrf"]  # of which all but the number is right


def test_the_baselines_by_hand(tmp_path: Path) -> None:
    train = [("a b c d", "A B C Z"), ("e f g h", "E F G H"), ("i is", "I J"), ("j is", "J J"), *PAIRS]
    test = [("a b c", "A B C D"), ("e f g i", "E F G H I")]
    run = tmp_path / "run"
    scores = evaluate_run(fit(RECIPE, run, train=train, valid=PAIRS[:9], test=test, evaluate=None), run).scores
    references = ["A B C D", "E F G H I"]
    expected = {"copy": ["a b c", "e f g i"], "nearest": ["A B C Z", "E F G H"]}
    for name, outputs in expected.items():
        assert scores[name]["chrf"] == sacrebleu.corpus_chrf(outputs, [references]).score
        assert scores[name]["exact"] == 0


def test_the_result_is_in_the_folder_and_in_the_report(trained: tuple[Bundle, Path], result: HeldOutResult) -> None:
    _, run = trained
    assert HeldOutResult.read(run) == result
    page = (run / "report.html").read_text(encoding="utf-8")
    first = result.samples[0]
    for text in ("Test pairs", "nearest training pair", "What to try next", result.advice[0][:30], first.source):
        assert text in page
    assert f"source     {first.source}\noutput     {first.output}\n" in (run / "test-samples.txt").read_text()


def test_a_result_of_an_earlier_model_is_not_shown(trained: tuple[Bundle, Path], result: HeldOutResult) -> None:
    _, run = trained
    replace(result, step=result.step - 1).write(run)
    assert RunRecord.read(run).test is None
    result.write(run)
    assert RunRecord.read(run).test == result


@pytest.mark.parametrize("content", ['{"samples": []}', "[]", "{", '{"samples": [1]}'])
def test_a_damaged_result_is_refused(trained: tuple[Bundle, Path], tmp_path: Path, content: str) -> None:
    (tmp_path / "recipe.toml").write_text("")
    (tmp_path / "test.json").write_text(content)
    with pytest.raises(DataError, match="test.json is damaged"):
        write_report(tmp_path)


def test_a_limited_time_is_kept_to_with_fewer_pairs(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    class Slow(Translator):
        def translations(self, texts: object, **options: object) -> Iterator[object]:  # type: ignore[override]
            nonlocal now
            for translation in super().translations(texts, **options):  # type: ignore[arg-type]
                now += 0.1
                yield translation

    monkeypatch.setattr("time.monotonic", lambda: now)
    sources = ["abc"] * 300
    outputs, refused = translate_within(Slow(bundle), sources, 5.0, on_progress=lambda _: None)
    assert (len(outputs), refused) == (50, 0)
    outputs, _ = translate_within(Slow(bundle), sources, 0.1, on_progress=lambda _: None)
    assert len(outputs) == 16
    outputs, _ = translate_within(Slow(bundle), sources, 1_000, on_progress=lambda _: None)
    assert len(outputs) == 300


def test_a_text_that_is_refused_counts_as_wrong(bundle: Bundle) -> None:
    outputs, refused = translate_within(Translator(bundle), ["abc", "X"], 60, on_progress=lambda _: None)
    assert (outputs[1], refused) == ("", 1)


def test_a_run_without_test_pairs_is_refused(tmp_path: Path) -> None:
    run = tmp_path / "run"
    bundle = fit(TINY, run, evaluate=None)
    with pytest.raises(ConfigError, match="test set"):
        evaluate_run(bundle, run)
    assert not (run / "test.json").exists()
