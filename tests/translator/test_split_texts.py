import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from allyouneed import Tokenizer, Transformer, Translator
from allyouneed.apps.cli.document import translate_file
from allyouneed.apps.documents import read_document
from allyouneed.bundle import Bundle
from allyouneed.config import DecodeConfig
from allyouneed.decode import step
from allyouneed.translator import generation, translation
from conftest import SMALL, made_once
from exact_tasks import make_pairs, train

OFF: dict[str, Any] = {"copy_untranslatable": False, "recase": False, "retry_repetition": False}
TEXTS = [source for source, _ in make_pairs(150, seed=3)] + ["ABCDEF", "HHAEBB", "-4711", "bcdfghbcd"]


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """A model that has learned exact tasks, one against each of what helps a model by default."""
    return Bundle.load(made_once(tmp_path_factory, "exact", train))


def test_segments_of_several_calls_can_share_a_batch() -> None:
    tokenizer = Tokenizer.characters("abcdefghij ")
    model = Transformer(replace(SMALL, vocab_size=len(tokenizer), pad_id=tokenizer.pad_id)).eval()
    translator = Translator(Bundle(model, tokenizer, tokenizer, DecodeConfig(beam=2)))
    ours, yours = ["abc", "", "j" * 9 + " " + "a" * 9], ["dig", "abc"]
    first, second = translator.split(ours), translator.split(yours)
    assert len(first.segments) == 3  # none for the empty text, two for the long one
    translations = translator.translate_segments([*first.segments, *second.segments])
    for texts, split, some in ((ours, first, translations[:3]), (yours, second, translations[3:])):
        assert [one.text for one in translator.join(split, some)] == translator.translate(texts)


def without_statistics(bundle: Bundle) -> Bundle:
    """As if the pairs had not shown that targets repeat, and that capitals have a meaning."""
    return replace(bundle, longest_repetition=0, case_statistics=replace(bundle.case_statistics, contradicted=0))


@pytest.mark.slow
def test_no_answer_is_touched(exact: Bundle) -> None:
    assert (exact.longest_repetition, exact.case_statistics.contradicted) == (9, 16)
    pairs = make_pairs(150, seed=4)
    translator = Translator(exact)
    right = [translator(source) == target for source, target in pairs]
    assert sum(right) > 0.9 * len(pairs)
    for known in (exact, without_statistics(exact)):
        assert Translator(known).translate(TEXTS) == translator.using(**OFF).translate(TEXTS)
        assert "".join(Translator(known).stream("-4711")) == translator.using(**OFF)("-4711")


def test_each_of_them_would_change_the_answers_of_this_model_if_it_were_never_sure(
    exact: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (step, translation):
        monkeypatch.setattr(module, "SURE", 1.0)
    unsure = Translator(without_statistics(exact))
    bare = unsure.using(**OFF)
    assert unsure("-4711") == "-4711" != bare("-4711")
    assert unsure("ABCDEF") != bare("ABCDEF")
    assert unsure("bcdfghbcd") == bare("bcdfghbcd")  # the model does not find any other output nearly as likely
    monkeypatch.setattr(generation, "NEARLY", 1e9)
    assert unsure("bcdfghbcd") != bare("bcdfghbcd")
    assert Translator(exact)("bcdfghbcd") == bare("bcdfghbcd")  # the training targets repeat as much


def test_documents_keep_what_the_pairs_changed(exact: Bundle, tmp_path: Path) -> None:
    texts = [source for source in TEXTS if "%" in source]
    assert len({text[:2] for text in texts}) == 2
    document = read_document(json.dumps(texts).encode(), "json")
    output = tmp_path / "out.json"
    translate_file(
        document, Translator(exact), output, min_confidence=None, review=None, skip_refused=False, numbers=False
    )
    assert json.loads(output.read_text()) == Translator(exact).using(**OFF).translate(texts)
