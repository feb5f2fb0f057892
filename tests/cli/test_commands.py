"""The commands as a shell runs them: output, exit codes, and one line for each mistake."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from allyouneed.bundle import Bundle
from allyouneed.config import DecodeConfig, ModelConfig
from allyouneed.errors import AllYouNeedError
from allyouneed.nn import Transformer
from allyouneed.text.backends import word_backend
from allyouneed.text.tokenizer import Tokenizer
from allyouneed.translator import Translator
from conftest import SMALL
from shell import ENVIRONMENT, TINY_DATES, refusal, run, run_here


def test_a_call_that_cannot_be_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "no.toml").write_text("train = 3\n")
    assert "option: --bem" in refusal("translate", tmp_path, "--bem", "3")
    assert "translate --help shows" in refusal("translate", tmp_path, "--beam", "x")
    assert "1 is no" in refusal("train", "dates", "--init-from", "1", cwd=tmp_path)
    assert "settings; got 3" in refusal("train", tmp_path / "no.toml", cwd=tmp_path)
    assert "command 'translte'" in refusal("translte")
    assert "Missing argument" in refusal("translate")
    assert "too long" in refusal("translate", "a" * 5000)
    assert r"a\x1b[2J\nb" in refusal("translate", "a\x1b[2J\nb")


@pytest.mark.parametrize("words", [[], ["keys"], ["suggestions"]])
def test_a_call_without_a_command_prints_the_page_of_help(words: list[str]) -> None:
    bare = run_here(*words)
    assert (bare.returncode, bare.stderr) == (2, b"")
    assert bare.stdout == run_here(*words, "--help").stdout
    assert len(bare.stdout.splitlines()) > 5


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_the_versions_are_told(option: str) -> None:
    version = run_here(option).stdout.decode()
    assert re.fullmatch(r"allyouneed \d\S+, torch \d\S+, Python 3\.\d+\.\d+\S*\n", version)


def test_shells_can_complete_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")  # the tests may have no shell above them
    assert "_ALLYOUNEED_COMPLETE" in run_here("--show-completion", "bash").stdout.decode()


@pytest.mark.parametrize("words", [["--debug", "train", "nothing"], ["train", "nothing", "--debug"]])
def test_debug_shows_where_before_the_command_and_after_it(words: list[str]) -> None:
    with pytest.raises(AllYouNeedError):
        run_here(*words)
    refusal("train", "nothing")  # and is forgotten by the next call


def test_output_is_o_for_short_wherever_there_is_one() -> None:
    for command in ("demo", "train", "translate", "explain", "paper"):
        assert "-o, --output" in run_here(command, "--help").stdout.decode(), command


def test_help_of_train_names_every_shipped_recipe() -> None:
    from allyouneed.recipes import recipe_names

    screen = " ".join(run_here("train", "--help").stdout.decode().split())
    assert f"Shipped recipes: {', '.join(recipe_names())};" in screen


def test_train_translate_evaluate(tmp_path: Path) -> None:
    trained = run_here("train", "dates", *TINY_DATES, "--output", tmp_path / "run")
    assert trained.returncode == 0, trained.stderr.decode()
    screen = trained.stderr.decode()
    assert re.search("200 pairs .*20 .*vocabulary of 68", screen)
    assert all(metric in screen for metric in ("loss", "bleu", "chrf", "exact"))
    assert trained.stdout == b""

    text = tmp_path / "days.txt"
    text.write_text("1845-01-05\n\n1996-09-08\n")
    translated = run_here("translate", tmp_path / "run", text)
    assert translated.returncode == 0
    lines = translated.stdout.decode().split("\n")
    assert len(lines) == 4
    assert (lines[1], lines[3]) == ("", "")

    assert run_here("translate", tmp_path / "run", stdin=text.read_bytes()).stdout == translated.stdout
    assert run_here("translate", tmp_path / "run", text, "--output", tmp_path / "out").stdout == b""
    assert (tmp_path / "out").read_bytes() == translated.stdout
    assert "already exists" in refusal("translate", tmp_path / "run", text, "--output", tmp_path / "out")
    assert run_here("translate", tmp_path / "run", text, "--output", tmp_path / "out", "--overwrite").returncode == 0

    scored = run_here("evaluate", tmp_path / "run", "--source", text, "--target", tmp_path / "out")
    assert scored.returncode == 0
    report = scored.stdout.decode()
    assert re.search(r"^chrF2 +\d+\.\d\d +[\d.]+ to [\d.]+ +nrefs:1\|case:mixed\|eff:yes", report, re.MULTILINE)
    assert re.search(r"^exact match +100\.00 +100\.00 to 100\.00 +equal:3\|of:3", report, re.MULTILINE)


def test_several_models_translate_score_and_are_evaluated_together(bundle: Bundle, saved: Path, tmp_path: Path) -> None:
    torch.manual_seed(1)
    replace(bundle, model=Transformer(bundle.model.config).eval()).save(tmp_path / "b,c")
    both, text, out = f"{saved},{tmp_path / 'd'}", tmp_path / "in", tmp_path / "out"
    (tmp_path / "d").symlink_to("b,c")
    text.write_text("cab\nbac\n")
    assert run_here("translate", both, text, "--output", out).returncode == 0
    translator = Translator.load(saved, tmp_path / "d")
    assert out.read_text().splitlines() == translator.translate(["cab", "bac"])
    assert "equal:2|of:2" in run_here("evaluate", both, "--source", text, "--target", out).stdout.decode()
    scores = [
        line.split("\t")[0]
        for line in run_here("score", both, "--source", text, "--target", text).stdout.decode().splitlines()
    ]
    assert scores == [f"{one.log_probability:.4f}" for one in translator.score([("cab", "cab"), ("bac", "bac")])]
    alone = run_here("translate", tmp_path / "b,c", text)
    assert alone.stdout.decode().splitlines() == Translator.load(tmp_path / "b,c").translate(["cab", "bac"])

    assert "would destroy" in refusal("translate", both, text, "-o", tmp_path / "d/config.json", "--overwrite")
    assert "ensemble of 2" in refusal("explain", both, "cab", "-o", tmp_path / "page.html")
    assert f"{tmp_path / 'e'} " in refusal("translate", f"{saved},{tmp_path / 'e'}", text)
    for names in (f"{saved},", f",{saved}", f"{saved}, ,{saved}"):
        assert f"{names} " in refusal("translate", names, text)
    assert "is empty" in refusal("translate", "", text, cwd=saved)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"abX\nabc\n", "standard input, line 1: 'X' at position 3 of 'abX' "),
        (b"\xff\nabc\n", "standard input, line 1 is not UTF-8: byte 0xff at position 1"),
        (
            b"a" * 30 + b"\n",
            "standard input, line 1: 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'… has 32 tokens ",
        ),
    ],
)
def test_text_that_cannot_be_translated_is_refused_by_line(saved: Path, text: bytes, message: str) -> None:
    assert message in refusal("translate", saved, stdin=text)


def test_a_refused_text_leaves_no_output(saved: Path, tmp_path: Path) -> None:
    refusal("translate", saved, "--output", tmp_path / "out", stdin=b"X\n")
    assert not (tmp_path / "out").exists()


def test_mistakes_get_one_line(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a\nb\n")
    (tmp_path / "b").write_text("a\n")
    (tmp_path / "half").mkdir()
    assert "a has 2" in refusal("evaluate", saved, "--source", "a", "--target", "b", cwd=tmp_path)
    assert "nowhere is" in refusal("translate", "nowhere", cwd=tmp_path)
    assert "bundle (config.json" in refusal("translate", "half", cwd=tmp_path)
    assert "nothing.txt does not" in refusal("translate", saved, "nothing.txt", cwd=tmp_path)
    assert "missing.tsv does not" in refusal("train", "missing.tsv", cwd=tmp_path)
    assert "mean dates?" in refusal("train", "datse", cwd=tmp_path)
    assert 'unknown key "stesp"' in refusal("train", "dates", "train.stesp=3", cwd=tmp_path)
    assert "heads must" in refusal("train", "dates", "model.heads=0", cwd=tmp_path)
    assert "most 10000; got 0" in refusal("translate", saved, "--beam", "0", cwd=tmp_path)
    assert "half is" in refusal("train", "dates", "--output", "half", "--overwrite", cwd=tmp_path)
    missing = refusal("train", "multi30k-en-de", cwd=tmp_path)
    assert re.search("train.en.gz .*data.data_dir=FOLDER", missing)
    in_folder = refusal("train", "multi30k-en-de", "data.data_dir=half", cwd=tmp_path)
    assert "half/train.en.gz " in in_folder
    assert not (tmp_path / "runs").exists()


def test_a_wrong_call_has_exit_code_2() -> None:
    assert run_here("translate").returncode == 2
    assert run_here("trian").returncode == 2


def test_a_full_disk_gets_one_line(saved: Path) -> None:
    with open("/dev/full", "wb") as full:
        result = subprocess.run(
            [sys.executable, "-m", "allyouneed", "translate", str(saved)],
            input=b"abc\n", stdout=full, stderr=subprocess.PIPE, env=ENVIRONMENT, check=False,
        )  # fmt: skip
    assert result.returncode == 2
    assert result.stderr.decode().startswith("allyouneed: the disk ")


def test_a_reader_that_leaves_early_is_no_error(saved: Path) -> None:
    command = f"{sys.executable} -m allyouneed translate {saved} | true"
    result = subprocess.run(command, shell=True, input=b"abc\n" * 50, capture_output=True, env=ENVIRONMENT, check=False)
    assert b"Error" not in result.stderr


def test_a_trace_is_shown_only_with_debug(saved: Path) -> None:
    assert b"Traceback" in run("--debug", "translate", saved, stdin=b"X\n").stderr
    assert b"Traceback" not in run_here("translate", saved, stdin=b"X\n").stderr


def test_one_line_stays_one_line(tmp_path: Path) -> None:
    """A line end that a model writes may not shift the lines after it."""
    from dataclasses import replace

    import torch

    from allyouneed.bundle import Bundle
    from allyouneed.config import DecodeConfig
    from allyouneed.nn import Transformer
    from allyouneed.text.tokenizer import Tokenizer

    tokenizer = Tokenizer.characters("a\n")
    config = ModelConfig(d_model=4, d_ff=4, heads=1, encoder_layers=1, decoder_layers=1, max_length=9)
    model = Transformer(replace(config, vocab_size=len(tokenizer), pad_id=tokenizer.pad_id, tied_embeddings="none"))
    with torch.no_grad():  # says "\n" whatever it reads
        model.projection.table.zero_()
        last_norm = model.get_submodule("decoder.layers.0.feed_forward_residual.norm")
        last_norm.get_parameter("gain").zero_()
        last_norm.get_parameter("bias").fill_(1.0)
        model.projection.table[1] = 9.0
    Bundle(model, tokenizer, tokenizer, DecodeConfig(beam=1)).save(tmp_path / "bundle")
    result = run_here("translate", tmp_path / "bundle", stdin=b"a\n\na\n")
    assert result.stdout.count(b"\n") == 3


def test_memory_that_runs_out_elsewhere_gets_one_line(tmp_path: Path) -> None:
    code = """
from allyouneed.apps import cli
import allyouneed.translator
def none(*_, **__): raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
allyouneed.translator.Translator.load = none
cli.main()
"""
    result = subprocess.run(
        [sys.executable, "-c", code, "translate", "x"], input=b"a\n", capture_output=True, env=ENVIRONMENT, check=False
    )
    assert result.returncode == 2
    assert result.stderr.startswith(b"allyouneed: out of memory")


def test_a_word_that_no_search_writes_is_null_in_json(tmp_path: Path) -> None:
    tokenizer = Tokenizer(word_backend(["a dog sees a cat ."] * 5, vocab_size=40))
    config = replace(SMALL, vocab_size=len(tokenizer), pad_id=tokenizer.pad_id)
    Bundle(Transformer(config).eval(), tokenizer, tokenizer, DecodeConfig()).save(tmp_path / "words")
    (tmp_path / "source").write_text("a dog\n")
    (tmp_path / "target").write_text("a okapi\n")
    result = run_here(
        "score", tmp_path / "words", "--source", tmp_path / "source", "--target", tmp_path / "target", "--json"
    )
    row = json.loads(result.stdout, parse_constant=pytest.fail)
    assert row["log_probability"] is None
    assert [value is None for _, value in row["tokens"]] == [False, True, False]
