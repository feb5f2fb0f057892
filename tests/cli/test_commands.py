"""The commands as a shell runs them: output, exit codes, and one line for each mistake."""

import gzip
import json
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from allyouneed.apps.cli.evaluate import read_test_set
from allyouneed.bundle import Bundle
from allyouneed.config import DecodeConfig, ModelConfig
from allyouneed.errors import AllYouNeedError, ConfigError
from allyouneed.nn import Transformer
from allyouneed.text.backends import word_backend
from allyouneed.text.tokenizer import Tokenizer
from allyouneed.translator import Translator
from conftest import SMALL
from shell import ENVIRONMENT, refusal, run, run_here
from waiting import PATIENCE, wait_until

TINY = [
    "data.max_train_samples=200", "data.max_valid_samples=20", "model.d_model=8", "model.d_ff=8", "model.heads=2",
    "model.encoder_layers=1", "model.decoder_layers=1", "train.steps=6", "train.validate_every=3", "train.warmup=2",
    "train.cooldown=0",
]  # fmt: skip


def test_a_call_that_cannot_be_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "no.toml").write_text("train = 3\n")
    assert "No such option: --bem" in refusal("translate", tmp_path, "--bem", "3")
    assert "translate --help shows its arguments and options" in refusal("translate", tmp_path, "--beam", "x")
    assert "1 is no folder" in refusal("train", "dates", "--init-from", "1", cwd=tmp_path)
    assert "[train] must be a table of settings; got 3" in refusal("train", tmp_path / "no.toml", cwd=tmp_path)
    assert "No such command 'translte'" in refusal("translte")
    assert "Missing argument" in refusal("translate")
    assert "File name too long" in refusal("translate", "a" * 5000)
    assert r"a\x1b[2J\nb" in refusal("translate", "a\x1b[2J\nb")
    assert run_here().returncode == 2


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
    trained = run_here("train", "dates", *TINY, "--output", tmp_path / "run")
    assert trained.returncode == 0, trained.stderr.decode()
    screen = trained.stderr.decode()
    assert "200 pairs to train on, 20 to validate, vocabulary of 68" in screen
    assert re.search(r"update +loss +valid loss +perplexity +right % +bleu +chrf +exact +seconds", screen)
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
    assert "out exists already" in refusal("translate", tmp_path / "run", text, "--output", tmp_path / "out")
    assert run_here("translate", tmp_path / "run", text, "--output", tmp_path / "out", "--overwrite").returncode == 0

    scored = run_here("evaluate", tmp_path / "run", "--source", text, "--target", tmp_path / "out")
    assert scored.returncode == 0
    report = scored.stdout.decode()
    assert re.search(r"^chrF2 +\d+\.\d\d +[\d.]+ to [\d.]+ +nrefs:1\|case:mixed\|eff:yes", report, re.MULTILINE)
    assert re.search(r"^exact match +100\.00 +100\.00 to 100\.00 +equal:3\|of:3", report, re.MULTILINE)


def test_what_training_prints_at_its_end_can_be_copied_whatever_the_folder_is_called(tmp_path: Path) -> None:
    folder = tmp_path / "a run [fast]"
    screen = run_here("train", "dates", *TINY, "--output", folder).stderr.decode()
    assert f"{folder}/report.html" in screen
    assert f"allyouneed translate '{folder}'" in screen


def test_a_test_set_may_have_several_references(saved: Path, tmp_path: Path) -> None:
    ours = run_here("translate", saved, stdin=b"cab\nbac\n").stdout.decode().split("\n")
    test_set = tmp_path / "test.tsv"
    test_set.write_text(f"cab\tsomething else\t{ours[0]} \nbac\tquite another\n")
    scored = run_here("evaluate", saved, "--pairs", test_set, "--tokenize", "char").stdout.decode()
    assert "nrefs:var|case:mixed|eff:no|tok:char" in scored
    assert "equal:1|of:2" in scored

    test_set.write_text("cab\tabc\nbac\n")
    assert "test.tsv, line 2 has no tab" in refusal("evaluate", saved, "--pairs", test_set)
    assert "by --source and --target, or by --pairs" in refusal("evaluate", saved, "--source", test_set)
    assert 'no tokenizer "words"' in refusal("evaluate", saved, "--pairs", test_set, "--tokenize", "words")


@pytest.mark.slow
def test_a_model_is_scored_on_the_pairs_that_its_run_held_out(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("".join(f"a {i} dog\tein {i} Hund\n" for i in range(300)))
    sizes = [word for word in TINY if word.startswith(("model.", "train."))]
    trained = run_here("train", tmp_path / "pairs.tsv", *sizes, "data.held_out=0.1", "-o", tmp_path / "run")
    screen = trained.stderr.decode()
    test_pairs = [json.loads(line) for line in (tmp_path / "run/data/test.jsonl").read_text().splitlines()]
    assert re.search(r"\n  Validation chrf: \d", screen)
    assert re.search(rf"\n  {len(test_pairs)} of {len(test_pairs)} test pairs +(BLEU +)?chrF2 +exact match\n", screen)
    for system in ("this model", "copy of the source", "nearest training pair"):
        assert re.search(rf"\n  {system} +\d+\.\d", screen)
    assert f"20 translations: {tmp_path / 'run/test-samples.txt'}" in screen
    assert "What to try next:\n  - " in screen
    assert f"allyouneed evaluate {tmp_path / 'run'}" in screen

    scored = run_here("evaluate", tmp_path / "run")
    assert f"{len(test_pairs)} test pairs that {tmp_path / 'run'} held out" in scored.stderr.decode()
    rows = [f"{json.dumps({'de': target, 'no': i, 'en': source})}\n" for i, (source, target) in enumerate(test_pairs)]
    (tmp_path / "test.jsonl").write_text("".join(rows))
    named = run_here("evaluate", tmp_path / "run", "--pairs", tmp_path / "test.jsonl", "--columns", "en,de")
    assert named.stdout == scored.stdout
    assert re.findall(rb"^\S+", scored.stdout, re.MULTILINE) == [b"chrF2", b"chrF++", b"TER", b"CER", b"exact"]


def test_without_a_test_set_the_model_is_not_scored(saved: Path) -> None:
    assert "has no recipe.toml and so no test set" in refusal("evaluate", saved)
    assert "is no folder; expected a bundle" in refusal("evaluate", f"{saved}-elsewhere")
    assert "--columns names two columns of --pairs" in refusal("evaluate", saved, "--columns", "en,de")


def test_what_is_evaluated_is_what_the_same_options_translate(saved: Path, tmp_path: Path) -> None:
    options = ("--beam", "3", "decode.length_penalty=plain", "decode.alpha=2", "--precision", "float32", "--compiled")
    (tmp_path / "in").write_text("cab\nbac\n")
    assert run_here("translate", saved, tmp_path / "in", "--output", tmp_path / "out", *options).returncode == 0
    scored = run_here("evaluate", saved, "--source", tmp_path / "in", "--target", tmp_path / "out", *options)
    assert "equal:2|of:2" in scored.stdout.decode()
    same = ("--source", tmp_path / "in", "--target", tmp_path / "out")
    assert "penalty must be" in refusal("evaluate", saved, *same, "decode.length_penalty=loud")


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

    assert "would destroy what it is made from" in refusal(
        "translate", both, text, "-o", tmp_path / "d/config.json", "--overwrite"
    )
    assert "this is an ensemble of 2" in refusal("explain", both, "cab", "-o", tmp_path / "page.html")
    assert "e is no folder" in refusal("translate", f"{saved},{tmp_path / 'e'}", text)
    for names in (f"{saved},", f",{saved}", f"{saved}, ,{saved}"):
        assert f"{names} has a comma with no model beside it" in refusal("translate", names, text)
    assert "the name of a model is empty; name its folder" in refusal("translate", "", text, cwd=saved)


def test_an_ensemble_is_evaluated_without_a_test_set_where_all_held_out_the_same_pairs(tmp_path: Path) -> None:
    for name, seed in (("one", 1), ("two", 1), ("three", 2)):
        (tmp_path / name / "data").mkdir(parents=True)
        (tmp_path / name / "recipe.toml").write_text("")
        (tmp_path / name / "data/test.jsonl").write_text(f'["a {seed}", "b"]\n')
    one, two, three = (tmp_path / name for name in ("one", "two", "three"))
    assert read_test_set([[one, two]], None, None, None, ()).sources == ["a 1"]
    with pytest.raises(ConfigError, match="one and .*three held out different test pairs; name the test set"):
        read_test_set([[one, two, three]], None, None, None, ())


def test_a_test_set_is_read_as_training_reads_pairs(tmp_path: Path) -> None:
    file = tmp_path / "test.tsv"
    file.write_text("source\ttarget\n\n a\tb \nc\t\nd\te\t\tf\t\n")
    _, sources, references = read_test_set([], None, None, file, ())
    assert (sources, references) == (["a", "c", "d"], [["b"], [""], ["e", "f"]])
    file.write_text("Target\tSource\nb\ta\n")
    assert read_test_set([], None, None, file, ())[1:] == (["a"], [["b"]])


@pytest.mark.slow
def test_a_run_can_be_repeated_and_gone_on_with(tmp_path: Path) -> None:
    assert run_here("train", "dates", *TINY, cwd=tmp_path).returncode == 0
    assert (tmp_path / "runs/dates/config.json").is_file()
    assert "runs/dates already contains a run; resume it" in refusal("train", "dates", *TINY, cwd=tmp_path)
    again = run_here("train", "runs/dates/recipe.toml", "--output", "runs/again", cwd=tmp_path)
    assert again.returncode == 0, again.stderr.decode()
    first, second = (tmp_path / f"runs/{name}/weights.safetensors" for name in ("dates", "again"))
    assert first.read_bytes() == second.read_bytes()
    scores = tmp_path / "runs/dates/test.json"
    scores.write_text(json.dumps(json.loads(scores.read_text()) | {"notes": ["scored once"]}))
    resumed = run_here("train", "dates", *TINY, "--resume", cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr.decode()
    assert "this run was finished after update 6; nothing is left to do" in resumed.stderr.decode()
    assert b"scored once" in resumed.stderr
    assert "scored once" in scores.read_text()
    assert run_here("train", "dates", *TINY, "--overwrite", cwd=tmp_path).returncode == 0


def test_an_unknown_metric_is_refused_before_any_work(tmp_path: Path) -> None:
    for words in ([], ["--dry-run"]):
        wrong = ("train", "dates", *TINY, "train.early_stopping_metric=blue", *words)
        assert "early_stopping_metric must be one of loss, bleu, chrf, exact" in refusal(*wrong, cwd=tmp_path)


def test_two_files_make_a_translation_run(tmp_path: Path) -> None:
    (tmp_path / "train.en.gz").write_bytes(gzip.compress(b"a dog\na cat\n" * 20))
    (tmp_path / "train.de").write_text("ein Hund\neine Katze\n" * 20)
    (tmp_path / "recipe.toml").write_text(
        '[data]\ntrain = ["train.en.gz", "train.de"]\nvocab_size = 262\nheld_out = 0\n'
        "[model]\nd_model = 8\nd_ff = 8\nheads = 2\nencoder_layers = 1\ndecoder_layers = 1\n"
        "[train]\nsteps = 3\nbatch_tokens = 100\n"
    )
    trained = run_here("train", "recipe.toml", "--output", "run", cwd=tmp_path)
    assert trained.returncode == 0
    assert "No test scores: no pairs were held out (data.test, data.held_out)." in trained.stderr.decode()
    assert "evaluate run FILE" in trained.stderr.decode()
    assert len(run_here("translate", "run", stdin=b"a dog\n", cwd=tmp_path).stdout.split(b"\n")) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"abX\nabc\n", "standard input, line 1: 'X' at position 3 of 'abX' is not in the vocabulary"),
        (b"\xff\nabc\n", "standard input, line 1 is not UTF-8: byte 0xff at position 1"),
        (
            b"a" * 30 + b"\n",
            "standard input, line 1: 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'… has 32 tokens and no place to cut it; this",
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
    assert "a has 2 lines but" in refusal("evaluate", saved, "--source", "a", "--target", "b", cwd=tmp_path)
    assert "nowhere is no folder" in refusal("translate", "nowhere", cwd=tmp_path)
    assert "half is not a complete bundle (config.json" in refusal("translate", "half", cwd=tmp_path)
    assert "nothing.txt does not exist" in refusal("translate", saved, "nothing.txt", cwd=tmp_path)
    assert "missing.tsv does not exist" in refusal("train", "missing.tsv", cwd=tmp_path)
    assert "datse is no recipe (did you mean dates?)" in refusal("train", "datse", cwd=tmp_path)
    assert 'unknown key "stesp" in [train]' in refusal("train", "dates", "train.stesp=3", cwd=tmp_path)
    assert "heads must be at least 1" in refusal("train", "dates", "model.heads=0", cwd=tmp_path)
    assert "beam must be at least 1 and at most 10000; got 0" in refusal(
        "translate", saved, "--beam", "0", cwd=tmp_path
    )
    assert "half is not a run" in refusal("train", "dates", "--output", "half", "--overwrite", cwd=tmp_path)
    missing = refusal("train", "multi30k-en-de", cwd=tmp_path)
    assert "train.en.gz does not exist; name the folder that it is in: data.data_dir=FOLDER" in missing
    in_folder = refusal("train", "multi30k-en-de", "data.data_dir=half", cwd=tmp_path)
    assert in_folder.rstrip().endswith("half/train.en.gz does not exist")
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
    assert result.stderr.decode().startswith("allyouneed: the disk is full")


def test_a_reader_that_leaves_early_is_no_error(saved: Path) -> None:
    command = f"{sys.executable} -m allyouneed translate {saved} | true"
    result = subprocess.run(command, shell=True, input=b"abc\n" * 50, capture_output=True, env=ENVIRONMENT, check=False)
    assert b"Error" not in result.stderr


def test_a_trace_is_shown_only_with_debug(saved: Path) -> None:
    assert b"Traceback" in run("--debug", "translate", saved, stdin=b"X\n").stderr
    assert b"Traceback" not in run_here("translate", saved, stdin=b"X\n").stderr


def test_a_decomposed_test_set_is_evaluated_as_a_composed_one(tmp_path: Path) -> None:

    tokenizer = Tokenizer.characters("é")  # it can write nothing else
    config = ModelConfig(
        vocab_size=len(tokenizer), pad_id=tokenizer.pad_id, d_model=4, d_ff=4, heads=1,
        encoder_layers=1, decoder_layers=1, max_length=9,
    )  # fmt: skip
    decode = DecodeConfig(
        beam=1, min_length=3, max_length=3, repetition_penalty=99.0, copy_untranslatable=False, retry_repetition=False
    )  # two, and the end
    Bundle(Transformer(config), tokenizer, tokenizer, decode).save(tmp_path / "bundle")
    (tmp_path / "test.tsv").write_text("e\u0301\te\u0301e\u0301\n")
    scored = run_here("evaluate", tmp_path / "bundle", "--pairs", tmp_path / "test.tsv", "--tokenize", "char")
    assert b"exact match  100.00" in scored.stdout, scored.stdout + scored.stderr


def test_one_line_stays_one_line(tmp_path: Path) -> None:
    """A line end that a model writes may not shift the lines after it."""
    from dataclasses import replace

    import torch

    from allyouneed.bundle import Bundle
    from allyouneed.config import DecodeConfig, ModelConfig
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


def test_export_proves_what_it_made_and_refuses_to_replace(saved: Path, tmp_path: Path) -> None:
    made = run_here("export", saved, tmp_path / "out", "--to", "ctranslate2", "--sentences", 5)
    assert made.returncode == 0, made.stderr.decode()
    assert b"5 of 5 sentences translated equally" in made.stdout
    assert (tmp_path / "out" / "model.bin").is_file()
    assert b"settings of the search" not in made.stdout
    bundle = Bundle.load(saved)
    replace(bundle, decode=replace(bundle.decode, forced_eos=True)).save(tmp_path / "forced")
    made = run_here("export", tmp_path / "forced", tmp_path / "page", "--to", "html", "--sentences", 1)
    assert b"does not keep these settings of the search" in made.stdout
    assert made.stdout.strip().endswith(b"forced_eos=True")
    other = refusal("export", saved, tmp_path / "other", "--to", "onnx", "--precision", "int8")
    assert "onnx is exported in float32; got precision 'int8'" in other
    again = refusal("export", saved, tmp_path / "out", "--to", "ctranslate2")
    assert again.endswith("exists already; name a new folder")


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_export_that_is_asked_to_stop_leaves_nothing(
    saved: Path, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    folder = tmp_path / "folder"
    words = ["export", str(saved), str(folder / "out"), "--to", "html", "--sentences", "1000000"]
    process = subprocess.Popen([sys.executable, "-m", "allyouneed", *words], env=ENVIRONMENT, stderr=subprocess.DEVNULL)
    try:
        wait_until((folder / ".out.partial").exists, process)
        process.send_signal(number)
        assert process.wait(timeout=PATIENCE) == code
    finally:
        process.kill()
        process.wait()
    assert not folder.exists()


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_run_that_is_asked_to_stop_saves_and_leaves_with_its_code(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    words = [
        *TINY,
        "train.steps=100000",
        "train.validate_samples=5",
        "train.threads=1",
        "--output",
        str(tmp_path / "run"),
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "allyouneed", "train", "dates", *words], stderr=subprocess.PIPE, env=ENVIRONMENT
    )
    wait_until((tmp_path / "run/config.json").exists, process)
    process.send_signal(number)
    last_line = process.communicate(timeout=PATIENCE)[1].decode().splitlines()[-1]
    assert process.returncode == code
    assert re.fullmatch(
        r"allyouneed: stopped after update \d+ and saved; resuming continues from there: .* --resume", last_line
    )
    assert (tmp_path / "run/checkpoint.safetensors").is_file()


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
    assert (result.returncode, result.stderr.startswith(b"allyouneed: out of memory; use smaller batches")) == (
        2,
        1,
    )


def test_a_recipe_is_filled_in_from_its_corpus_and_a_model_goes_on_to_other_pairs(tmp_path: Path) -> None:
    data = 'train = "dates:train"\nmax_train_samples = 300\nheld_out = 0\nvocabulary = "characters"\n'
    (tmp_path / "my.toml").write_text(f"[data]\n{data}")
    few = ["train.steps=2", "train.threads=1", "train.tensorboard=false"]
    first = run_here("train", "my.toml", *few, "--auto", "--output", "first", cwd=tmp_path)
    assert first.returncode == 0, first.stderr.decode()
    assert b"auto    " not in first.stderr
    assert b"\nwhy     first/log.txt\n" in first.stderr
    assert "auto     model.d_model=64" in (tmp_path / "first/log.txt").read_text()
    assert b"updates of" in first.stderr
    assert (tmp_path / "first/report.html").is_file()
    second = run_here(
        "train",
        "my.toml",
        *few,
        "data.max_train_samples=200",
        "--init-from",
        "first",
        "--output",
        "second",
        cwd=tmp_path,
    )
    assert second.returncode == 0, second.stderr.decode()
    assert "starting from first" in (tmp_path / "second/README.md").read_text()


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
