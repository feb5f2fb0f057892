"""`allyouneed evaluate` and `score --reference`: tables, JSON, limits, lists."""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from allyouneed.bundle import Bundle
from allyouneed.metrics import make_metrics, paired_bootstrap
from allyouneed.nn import Transformer
from allyouneed.translator import Translator
from messages import numbers_in
from shell import refusal, run_here

REFERENCES = [f"the cat number {i} sat on the mat" for i in range(30)]
WORSE = [text.replace("cat", "dog") if i % 2 else text for i, text in enumerate(REFERENCES)]


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder with two translations of a text, and its reference."""
    for name, lines in {"good": REFERENCES, "bad": WORSE, "reference": REFERENCES, "source": REFERENCES}.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def models(bundle: Bundle, saved: Path, tmp_path: Path) -> tuple[Path, Path, Path]:
    """Make two bundles, and pairs whose references the first bundle writes."""
    torch.manual_seed(1)
    replace(bundle, model=Transformer(bundle.model.config).eval()).save(tmp_path / "other")
    sources = ["abc", "cab", "hij", "fed"] * 8
    rows = zip(sources, Translator(bundle).translate(sources), strict=True)
    (tmp_path / "pairs.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in rows))
    return saved, tmp_path / "other", tmp_path / "pairs.tsv"


def test_two_models_are_compared_on_the_same_pairs(models: tuple[Path, Path, Path]) -> None:
    first, second, pairs = models
    compared = run_here("evaluate", first, second, pairs)
    lines = compared.stdout.decode().splitlines()
    assert lines[0].split() == [str(first), str(second), "difference", "p"]
    assert [line[:12].strip() for line in lines[1:]] == ["chrF2", "chrF++", "TER", "CER", "exact match"]
    assert re.match(r"exact match +100\.00 +0\.00 +-100\.00 +0\.001", lines[-1])
    assert lines[-1].endswith(f"{first} is better")
    turned = run_here("evaluate", second, first, pairs, "--no-worse")
    assert turned.returncode == 0


def test_of_few_pairs_no_model_is_called_better(models: tuple[Path, Path, Path]) -> None:
    """All bootstrap samples of one pair are the same, so every difference would be certain."""
    first, second, pairs = models
    pairs.write_text("".join(pairs.read_text().splitlines(keepends=True)[:29]))
    compared = run_here("evaluate", first, second, pairs)
    assert compared.returncode == 0
    assert b"is better" not in compared.stdout
    assert numbers_in(compared.stderr.decode().splitlines()[-1]) == [30, 29]
    assert "least 30 pairs" in refusal("evaluate", first, second, pairs, "--no-worse")


def test_bleu_of_texts_without_four_words_is_in_the_json_alone(models: tuple[Path, Path, Path]) -> None:
    model, _, pairs = models
    scores = json.loads(run_here("evaluate", model, pairs, "--json").stdout)["systems"][0]["scores"]
    assert scores["bleu"]["score"] == 0
    assert scores["exact"]["score"] == 100
    assert run_here("evaluate", model, pairs).stdout.startswith(b"chrF2")
    with pairs.open("a") as file:
        file.write("abc\tone two three four\n")
    assert run_here("evaluate", model, pairs).stdout.startswith(b"BLEU")


def test_limits_are_for_the_second_model_and_end_with_code_1(models: tuple[Path, Path, Path]) -> None:
    first, second, pairs = models
    assert run_here("evaluate", first, pairs, "--at-least", "chrf=99", "--at-most", "cer=1").returncode == 0
    missed = run_here("evaluate", second, pairs, "--at-least", "chrf=99", "--at-most", "cer=1")
    assert missed.returncode == 1
    assert missed.stdout.startswith(b"chrF2")  # the scores are printed nevertheless
    (line,) = missed.stderr.decode().splitlines()
    assert line.startswith(f"allyouneed: chrF2 of {second} is ")
    assert "--at-least asks for 99; CER of" in line
    assert "--at-most asks for 1" in line
    worse = run_here("evaluate", first, second, pairs, "--no-worse")
    assert worse.returncode == 1
    assert re.search(rf"{second} .*significantly worse .*exact match", worse.stderr.decode())


def test_the_translations_of_both_are_written(models: tuple[Path, Path, Path], tmp_path: Path) -> None:
    first, second, pairs = models
    both = [Translator.load(model).translate(["abc", "cab", "hij", "fed"] * 8) for model in (first, second)]
    assert run_here("evaluate", first, second, pairs, "--output", tmp_path / "out").returncode == 0
    assert [line.split("\t") for line in (tmp_path / "out").read_text().splitlines()] == [
        list(row) for row in zip(*both, strict=True)
    ]
    assert "already exists" in refusal("evaluate", first, pairs, "--output", tmp_path / "out")
    assert run_here("evaluate", first, pairs, "-o", tmp_path / "out", "--overwrite").returncode == 0
    assert (tmp_path / "out").read_text().splitlines() == both[0]
    assert run_here("evaluate", first, first, pairs, "-o", tmp_path / "rows.jsonl").returncode == 0
    row = json.loads((tmp_path / "rows.jsonl").read_text().splitlines()[1])
    assert (row["source"], row["references"]) == ("cab", [both[0][1]])
    assert row["outputs"] == {str(first): both[0][1], f"{first} again": both[0][1]}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_the_scores_are_printed_even_if_the_translations_cannot_be_written(models: tuple[Path, Path, Path]) -> None:
    first, _, pairs = models
    full = run_here("evaluate", first, pairs, "--output", "/dev/full", "--at-least", "bleu=99")
    assert full.returncode == 2
    assert full.stdout.startswith(b"chrF2")
    assert "is full" in full.stderr.decode()


def test_what_cannot_be_compared_is_refused(models: tuple[Path, Path, Path]) -> None:
    first, _, pairs = models
    assert "cannot both" in refusal("evaluate", first, pairs, "--pairs", pairs)
    assert "nowhere does" in refusal("evaluate", first, "nowhere")
    assert 'metric "blue"' in refusal("evaluate", first, pairs, "--at-least", "blue=3")
    assert "use --at-most ter=3" in refusal("evaluate", first, pairs, "--at-least", "ter=3")
    for limit in ("chrf=high", "chrf=nan", "chrf"):
        assert "written METRIC=NUMBER, like chrf=55" in refusal("evaluate", first, pairs, "--at-least", limit)
    for wrong in ("-3", "2.5", "1e3"):
        line = refusal("evaluate", first, pairs, "--wrong", wrong)
        assert re.search(f"--wrong .*; got {wrong}", line)


@pytest.mark.parametrize("option", [["--no-worse"], ["--wrong", "0"]])
@pytest.mark.parametrize(("named", "offered"), [("010", "01"), ("001", "01"), ("012", "02"), ("000", "00")])
def test_more_models_than_an_option_compares_get_a_command_that_works(
    named: str, offered: str, option: list[str], models: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "third").symlink_to(models[0])
    folders, pairs = (*models[:2], tmp_path / "third"), models[2]
    line = refusal("evaluate", *(folders[int(number)] for number in named), pairs, *option)
    words = shlex.split(line.partition("got 3: ")[2])
    words = words[words.index("evaluate") :]
    assert words == ["evaluate", *(str(folders[int(number)]) for number in offered), str(pairs), *option]
    assert run_here(*words).returncode in (0, 1)  # 1: worse


def test_one_system_is_compared_with_none(models: tuple[Path, Path, Path], tmp_path: Path) -> None:
    for name in ("a", "b", "c", "reference"):
        (tmp_path / name).write_text("abc\n")
    texts = ["--target", tmp_path / "a", "--reference", tmp_path / "reference"]
    for words in (["evaluate", models[0], models[2]], ["score", *texts]):
        command = shlex.split(refusal(*words, "--no-worse").partition("got 1: ")[2])
        assert command[command.index(str(words[0])) :] == [*map(str, words)]
    line = refusal("score", *texts, "--target", tmp_path / "b", "--target", tmp_path / "c")
    assert line.endswith(f"--target {tmp_path / 'a'} --target {tmp_path / 'c'}")


def test_two_runs_are_compared_on_the_pairs_that_both_held_out(models: tuple[Path, Path, Path], tmp_path: Path) -> None:
    first, second, _ = models
    for model, held_out in ((first, ["abc", "cab"]), (second, ["cab", "hij"])):
        (model / "data").mkdir()
        (model / "recipe.toml").write_text("")
        (model / "data/test.jsonl").write_text("".join(f'["{text}", "b"]\n' for text in held_out))
    compared = run_here("evaluate", first, second, "--json")
    assert json.loads(compared.stdout)["pairs"] == 1
    assert re.search(rf"1 test pairs .*{first} and {second} both", compared.stderr.decode())
    (second / "data/test.jsonl").write_text('["j", "b"]\n')
    assert "in common" in refusal("evaluate", first, second)


def test_translations_of_any_program_are_scored_against_references(texts: Path) -> None:
    scored = run_here("score", "--target", "bad", "--reference", "reference", "--json")
    table = json.loads(scored.stdout)
    (system,) = table["systems"]
    assert (table["pairs"], system["name"], table["missed"]) == (30, "bad", [])
    assert system["scores"]["exact"] == {
        "score": 50.0,
        "low": 33 + 1 / 3,
        "high": 200 / 3,
        "signature": "equal:15|of:30",
    }
    two = json.loads(
        run_here("score", "--target", "bad", "--target", "good", "--reference", "reference", "--json").stdout
    )
    metrics = make_metrics(["bleu", "ter"])
    for name, ours in zip(metrics, paired_bootstrap(WORSE, REFERENCES, REFERENCES, metrics), strict=True):
        assert two["comparison"][name] == {
            "difference": ours.second - ours.first, "p_value": ours.p_value, "better": "good",
        }  # fmt: skip


def test_the_wrong_ones_are_listed_worst_first(texts: Path) -> None:
    words = ["score", "--target", "bad", "--reference", "reference", "--source", "source"]
    listed = run_here(*words, "--wrong", "2").stdout.decode().split("\n\n")[1:]
    assert len(listed) == 2
    assert listed[0].splitlines()[1].split(maxsplit=1)[1] in WORSE
    rows = json.loads(run_here(*words, "--wrong", "99", "--json").stdout)["wrong"]
    assert len(rows) == 15
    scores = [float(row["chrF2"]) for row in rows]
    assert scores == sorted(scores)
    assert run_here(*words, "--wrong", "wrong.tsv").returncode == 0
    lines = (texts / "wrong.tsv").read_text().splitlines()
    assert lines[0].split("\t") == ["source", "output", "reference", "chrF2"]
    assert len(lines) == 16
    assert run_here(*words, "--wrong", "²").returncode == 0  # a file: no number is written so
    assert len((texts / "²").read_text().splitlines()) == 16
    assert "already exists" in refusal(*words, "--wrong", "wrong.tsv")
    for read in ("bad", "reference", "source"):
        assert "would destroy" in refusal(*words, "--wrong", read, "--overwrite")
    lost = run_here("score", "--target", "good", "--target", "bad", "--reference", "reference", "--wrong", "99")
    assert lost.stdout.decode().count("chrF2  ") == 16  # the table, and the fifteen that became worse
    gained = run_here("score", "--target", "bad", "--target", "good", "--reference", "reference", "--wrong", "99")
    assert gained.stdout.decode().count("reference  ") == 0


@pytest.mark.parametrize("name", ["reference", "source", "chrF2"])
def test_a_system_called_as_a_column_has_a_column_of_its_own(texts: Path, name: str) -> None:
    (texts / "systems").mkdir()
    for system, lines in {name: REFERENCES, "other": WORSE}.items():
        (texts / "systems" / system).write_text("".join(f"{line}\n" for line in lines))
    words = ("--target", name, "--target", "other", "--reference", "../reference", "--source", "../source")
    compared = run_here("score", *words, "--wrong", "1", "--json", cwd=texts / "systems")
    (row,) = json.loads(compared.stdout)["wrong"]
    assert list(row) == ["source", f"{name} (output)", "other", "reference", "chrF2"]
    assert row["source"] == row[f"{name} (output)"] == row["reference"] != row["other"]


def test_only_the_metrics_that_are_named_are_counted(texts: Path) -> None:
    words = ("score", "--target", "bad", "--reference", "reference", "--metrics")
    scores = json.loads(run_here(*words, "cer, bleu", "--json").stdout)["systems"][0]["scores"]
    assert list(scores) == ["cer", "bleu"]
    assert b"unit:word" in run_here(*words, "wer", "--at-most", "wer=100").stdout
    assert '"blue"' in refusal(*words, "bleu,blue")
    assert 'metric "ter"' in refusal(*words, "bleu", "--at-most", "ter=3")
    (texts / "reference").write_text("one two\n" * 30)  # too short for BLEU, which is 0 for any translation
    assert run_here(*words, "bleu").stdout.startswith(b"BLEU           0.00")


def test_several_references_count(texts: Path) -> None:
    words = ("score", "--target", "bad", "--reference", "reference", "--reference", "bad")
    assert b"equal:30|of:30" in run_here(*words).stdout


def test_a_call_of_score_that_makes_no_sense_is_refused(texts: Path, saved: Path) -> None:
    (texts / "short").write_text("a\n")
    assert "BUNDLE, --source and one --target" in refusal("score", "--target", "bad")
    assert "leave out --metrics, --tokenize, --overwrite" in refusal(
        "score", "x", "--source", "source", "--target", "good", "--metrics", "bleu", "--tokenize", "none", "--overwrite"
    )
    assert "leave out --batch-size" in refusal(
        "score", "--target", "good", "--reference", "reference", "--batch-size", "3"
    )
    assert "leave out --at-least" in refusal(
        "score", saved, "--source", "source", "--target", "bad", "--at-least", "chrf=3"
    )
    assert "--reference scores without" in refusal("score", saved, "--target", "bad", "--reference", "reference")
    words = ("score", "--reference", "reference", "--target", "bad")
    assert "got 1" in refusal(*words, "--no-worse")
    assert "--target has 30" in refusal(*words, "--target", "short")
    assert "--source" in refusal(*words, "--comet", "x")


@pytest.mark.parametrize(
    ("end", "tokenize", "warns"), [(" .", "13a", True), (" .", "none", False), (".", "13a", False)]
)
def test_references_that_are_tokenized_already_are_a_warning(texts: Path, end: str, tokenize: str, warns: bool) -> None:
    lines = [f"{text}{end}" for text in REFERENCES * 4]
    for name in ("good", "reference"):
        (texts / name).write_text("".join(f"{line}\n" for line in lines))
    scored = run_here("score", "--target", "good", "--reference", "reference", "--tokenize", tokenize)
    assert (b'with "--tokenize none" BLEU' in scored.stderr) == warns
    assert len(scored.stderr.splitlines()) == warns, "sacrebleu's own warning names a parameter that is no option"
