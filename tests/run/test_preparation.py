from dataclasses import replace
from pathlib import Path

from allyouneed import Bundle, fit
from allyouneed.bundle_parts import read_config
from allyouneed.run.preparation import find_languages
from runs import TINY, Notebook


def test_a_bundle_knows_the_languages_and_the_license_of_its_recipe(tmp_path: Path) -> None:
    data = replace(TINY.data, source_language="en", target_language="it", license="cc-by-4.0")
    train = replace(TINY.train, steps=2, validate_every=2, warmup=1, average_checkpoints=1)
    bundle = fit(replace(TINY, data=data, train=train), tmp_path / "run")
    assert bundle.languages == read_config(tmp_path / "run").languages == ("en", "it")
    head, text = bundle.card.removeprefix("---\n").split("---\n")
    assert head == "language:\n- en\n- it\nlicense: cc-by-4.0\n"
    for line in (
        "Translates English (en) into Italian (it).", "Training data: dates:train.", "License: cc-by-4.0.",
    ):  # fmt: skip
        assert line in text.splitlines()


def test_the_names_of_files_say_the_languages_and_a_message_tells() -> None:
    recipe = replace(TINY, data=replace(TINY.data, train=("train.en", "train.it")))
    languages, message = find_languages(recipe)
    assert languages == ("en", "it")
    assert message.startswith("en → it, ")


def test_a_model_that_starts_from_another_has_its_languages(bundle: Bundle, tmp_path: Path) -> None:
    replace(bundle, languages=("de", "fr")).save(tmp_path)
    recipe = replace(TINY, train=replace(TINY.train, init_from=str(tmp_path)))
    assert find_languages(recipe)[0] == ("de", "fr")
    assert find_languages(replace(TINY, train=replace(TINY.train, init_from="gone")))[0] == ("", "")


def test_a_run_can_be_resumed_with_other_languages(tmp_path: Path) -> None:
    train = replace(TINY.train, steps=2, validate_every=2, warmup=1, average_checkpoints=1)
    fit(replace(TINY, train=train), tmp_path)
    notebook = Notebook()
    data = replace(TINY.data, source_language="en", target_language="it")
    bundle = fit(replace(TINY, data=data, train=replace(train, steps=4)), tmp_path, resume=True, callback=notebook)
    assert bundle.languages == ("en", "it")
