"""The test set of an evaluation, and its scores as a shell prints them."""

import json
import re
from pathlib import Path

import pytest

from allyouneed.apps.cli.evaluate import read_test_set
from allyouneed.bundle import Bundle
from allyouneed.config import DecodeConfig, ModelConfig
from allyouneed.errors import ConfigError
from allyouneed.nn import Transformer
from allyouneed.text.tokenizer import Tokenizer
from shell import TINY_DATES, refusal, run_here


def test_a_test_set_may_have_several_references(saved: Path, tmp_path: Path) -> None:
    ours = run_here("translate", saved, stdin=b"cab\nbac\n").stdout.decode().split("\n")
    test_set = tmp_path / "test.tsv"
    test_set.write_text(f"cab\tsomething else\t{ours[0]} \nbac\tquite another\n")
    scored = run_here("evaluate", saved, "--pairs", test_set, "--tokenize", "char").stdout.decode()
    assert "nrefs:var|case:mixed|eff:no|tok:char" in scored
    assert "equal:1|of:2" in scored

    test_set.write_text("cab\tabc\nbac\n")
    assert "test.tsv, line 2" in refusal("evaluate", saved, "--pairs", test_set)
    assert "--source and --target" in refusal("evaluate", saved, "--source", test_set)
    assert 'no tokenizer "words"' in refusal("evaluate", saved, "--pairs", test_set, "--tokenize", "words")


@pytest.mark.slow
def test_a_model_is_scored_on_the_pairs_that_its_run_held_out(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("".join(f"a {i} dog\tein {i} Hund\n" for i in range(300)))
    sizes = [word for word in TINY_DATES if word.startswith(("model.", "train."))]
    trained = run_here("train", tmp_path / "pairs.tsv", *sizes, "data.held_out=0.1", "-o", tmp_path / "run")
    screen = trained.stderr.decode()
    test_pairs = [json.loads(line) for line in (tmp_path / "run/data/test.jsonl").read_text().splitlines()]
    assert re.search(r"\n  Validation chrf: \d", screen)
    assert re.search(rf"\n  {len(test_pairs)} of {len(test_pairs)} test pairs +(BLEU +)?chrF2 +exact match\n", screen)
    for system in ("this model", "copy of the source", "nearest training pair"):
        assert re.search(rf"\n  {system} +\d+\.\d", screen)
    assert f"20 translations: {tmp_path / 'run/test-samples.txt'}" in screen
    assert "\n  - " in screen
    assert f"allyouneed evaluate {tmp_path / 'run'}" in screen

    scored = run_here("evaluate", tmp_path / "run")
    assert re.search(rf"{len(test_pairs)} test pairs .*{tmp_path / 'run'} held out", scored.stderr.decode())
    (wrong,) = json.loads(run_here("evaluate", tmp_path / "run", "--wrong", "1", "--json").stdout)["wrong"]
    near = {f"{source} → {target}" for source, target in ((f"a {i} dog", f"ein {i} Hund") for i in range(300))}
    assert {wrong["training 1"], wrong["training 2"]} < near
    rows = [f"{json.dumps({'de': target, 'no': i, 'en': source})}\n" for i, (source, target) in enumerate(test_pairs)]
    (tmp_path / "test.jsonl").write_text("".join(rows))
    named = run_here("evaluate", tmp_path / "run", "--pairs", tmp_path / "test.jsonl", "--columns", "en,de")
    assert named.stdout == scored.stdout
    assert re.findall(rb"^\S+", scored.stdout, re.MULTILINE) == [b"chrF2", b"chrF++", b"TER", b"CER", b"exact"]


def test_without_a_test_set_the_model_is_not_scored(saved: Path) -> None:
    assert "recipe.toml" in refusal("evaluate", saved)
    assert f"{saved}-elsewhere" in refusal("evaluate", f"{saved}-elsewhere")
    assert "--columns names two" in refusal("evaluate", saved, "--columns", "en,de")


def test_what_is_evaluated_is_what_the_same_options_translate(saved: Path, tmp_path: Path) -> None:
    options = ("--beam", "3", "decode.length_penalty=plain", "decode.alpha=2", "--precision", "float32")
    (tmp_path / "in").write_text("cab\nbac\n")
    assert run_here("translate", saved, tmp_path / "in", "--output", tmp_path / "out", *options).returncode == 0
    scored = run_here("evaluate", saved, "--source", tmp_path / "in", "--target", tmp_path / "out", *options)
    assert "equal:2|of:2" in scored.stdout.decode()
    same = ("--source", tmp_path / "in", "--target", tmp_path / "out")
    assert "penalty must" in refusal("evaluate", saved, *same, "decode.length_penalty=loud")


def test_an_ensemble_is_evaluated_without_a_test_set_where_all_held_out_the_same_pairs(tmp_path: Path) -> None:
    for name, seed in (("one", 1), ("two", 1), ("three", 2)):
        (tmp_path / name / "data").mkdir(parents=True)
        (tmp_path / name / "recipe.toml").write_text("")
        (tmp_path / name / "data/test.jsonl").write_text(f'["a {seed}", "b"]\n')
    one, two, three = (tmp_path / name for name in ("one", "two", "three"))
    assert read_test_set([[one, two]], None, None, None, ()).sources == ["a 1"]
    with pytest.raises(ConfigError, match="one .*three"):
        read_test_set([[one, two, three]], None, None, None, ())


def test_a_test_set_is_read_as_training_reads_pairs(tmp_path: Path) -> None:
    file = tmp_path / "test.tsv"
    file.write_text("source\ttarget\n\n a\tb \nc\t\nd\te\t\tf\t\n")
    _, sources, references = read_test_set([], None, None, file, ())
    assert (sources, references) == (["a", "c", "d"], [["b"], [""], ["e", "f"]])
    file.write_text("Target\tSource\nb\ta\n")
    assert read_test_set([], None, None, file, ())[1:] == (["a"], [["b"]])


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
