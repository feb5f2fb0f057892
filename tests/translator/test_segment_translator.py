"""Texts that are cancelled while they are translated, and segments of several calls in one batch."""

import re
import subprocess
from dataclasses import replace
from pathlib import Path
from shutil import which
from typing import Any

import pytest
import torch

from allyouneed.bundle import Bundle
from allyouneed.errors import InputError
from allyouneed.translator import Translation, Translator
from allyouneed.translator.definition import DefinitionEngine, DefinitionStep
from catalogue import LEARNED, UNSEEN, messages
from untrained import without_copies

TEXTS = ["abc", "j", "ijabcdefg", "ab", "abcdefghij", "cde", "fgh"]
SETTINGS: list[dict[str, Any]] = [
    {},
    {"beam": 1},
    {"sample": True, "nbest": 2},
    {"repetition_penalty": 1.2},
]


def outputs(translation: Translation) -> list[tuple[str, tuple[str, ...]]]:
    """Return the texts and flags; log-probabilities may differ in their last digits if batches differ."""
    return [(one.text, one.flags) for one in (translation, *translation.alternatives)]


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_a_cancelled_text_has_an_empty_translation_and_changes_no_other(
    bundle: Bundle, setting: dict[str, Any]
) -> None:
    translator = Translator(bundle).using(batch_size=4, copy_untranslatable=False, **setting)
    expected = list(translator.translations(TEXTS))
    translations = list(translator.translations(TEXTS, is_cancelled={0, 4}.__contains__))
    for number, (one, other) in enumerate(zip(translations, expected, strict=True)):
        if number in {0, 4}:
            assert (one.source, one.text, one.flags, one.alternatives) == (TEXTS[number], "", ("cancelled",), ())
        else:
            assert outputs(one) == outputs(other)


def test_texts_are_numbered_from_0_whatever_their_window(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("allyouneed.translator.translator.WINDOW", 1)
    translator = Translator(bundle).using(batch_size=2, copy_untranslatable=False)
    flags = [one.flags for one in translator.translations(TEXTS, is_cancelled=lambda number: number == 5)]
    assert [number for number, some in enumerate(flags) if "cancelled" in some] == [5]


@pytest.mark.usefixtures("by_nn")
def test_a_text_cancelled_during_its_search_leaves_the_batch(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[int] = []
    call = DefinitionStep.__call__

    def counting(step: DefinitionStep, hypotheses: Any, tokens: Any) -> None:
        rows.append(len(tokens))
        call(step, hypotheses, tokens)

    monkeypatch.setattr(DefinitionStep, "__call__", counting)
    translator = Translator(bundle).using(batch_size=9, beam=1, min_length=6, max_length=6, retry_repetition=False)
    list(translator.translations(["abc", "cde", "fgh"], is_cancelled=lambda number: number == 1 and len(rows) >= 2))
    assert rows == [3, 3, 2, 2, 2, 2]


@pytest.mark.usefixtures("by_nn")
def test_nothing_is_computed_for_a_text_cancelled_before_its_batch(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    translator = Translator(bundle)
    monkeypatch.delattr(DefinitionEngine, "start")
    assert [one.text for one in translator.translations(TEXTS, is_cancelled=lambda number: True)] == [""] * len(TEXTS)


def test_a_text_of_several_segments_is_cancelled_as_a_whole(spaced: Bundle) -> None:
    translator = Translator(replace(spaced, longest_source=5)).using(copy_untranslatable=False)
    split = translator.split(["abc", "de fg hi"], is_cancelled=lambda number: number == 1)
    assert len(split.segments) > 2
    (kept, cancelled) = translator.join(split, translator.translate_segments(split.segments))
    assert outputs(kept) == outputs(next(translator.translations(["abc"])))
    assert cancelled.flags == ("cancelled",)


def test_segments_with_other_glossaries_and_prefixes_share_a_batch(spaced: Bundle) -> None:
    translator = Translator(spaced).using(copy_untranslatable=False)
    requests: list[tuple[list[str], dict[str, Any]]] = [
        (["abc", "de"], {}),
        (["abc"], {"glossary": {"abc": "ii"}}),
        (["abc", "dea"], {"glossary": {"abc": "h"}, "prefix": "f"}),
        (["i"], {"prefix": "ab"}),
    ]
    alone = [[one.text for one in translator.translations(texts, **settings)] for texts, settings in requests]
    splits = [translator.split(texts, **settings) for texts, settings in requests]
    translations = iter(translator.translate_segments([segment for split in splits for segment in split.segments]))
    together = [translator.join(split, [next(translations) for _ in split.segments]) for split in splits]
    assert [[one.text for one in some] for some in together] == alone
    assert "ii" in alone[1][0]
    assert alone[2][0].startswith("f")
    assert "h" in alone[2][0]


def test_the_glossary_of_a_call_replaces_that_of_the_translator(bundle: Bundle) -> None:
    translator = Translator(bundle).using(glossary={"abc": "ij"}, copy_untranslatable=False)
    (replaced,) = translator.translations(["abc"], glossary={"abc": "hh"})
    assert "hh" in replaced.text
    assert replaced == next(translator.using(glossary={"abc": "hh"}).translations(["abc"]))
    (free,) = translator.translations(["abc"], glossary={})
    assert free == next(translator.using(glossary={}).translations(["abc"]))


def test_what_cannot_be_translated_is_refused_and_not_taken_for_cancelled(bundle: Bundle) -> None:
    translator = Translator(bundle)
    with pytest.raises(InputError, match="17 tokens"):
        list(translator.translations(["j", "d"], glossary={"d": "abcdefghij" * 2}, is_cancelled={0}.__contains__))


@pytest.mark.usefixtures("by_nn")
def test_what_would_be_one_batch_is_divided_among_the_threads(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[int] = []
    start = DefinitionEngine.start

    def counting(engine: DefinitionEngine, sources: Any, **settings: Any) -> Any:
        rows.append(len(sources))
        return start(engine, sources, **settings)

    monkeypatch.setattr(DefinitionEngine, "start", counting)
    translator = Translator(bundle).using(batch_size=64, copy_untranslatable=False, retry_repetition=False)
    torch.set_num_threads(2)
    for texts, batches in ((40, [20, 20]), (20, [4, 16]), (16, [16]), (200, [8, 64, 64, 64])):
        rows.clear()
        translator.translate(["abc"] * texts)
        assert sorted(rows) == batches


SPANS = re.compile(r"\{n, plural.*?\}\}|%\(\w+\)d|%\(\w+\)s|%[-\d.]*l?[a-z]|%%|\{\w+\}|</?b>")
"""What `messages` puts into a message, by a definition of its own."""


def translate(bundle: Bundle, count: int, placeholders: tuple[str, ...], *, nbest: int = 1) -> list[Translation]:
    texts = [source for source, _ in messages(count, seed=7, placeholders=placeholders)]
    return list(Translator(bundle).using(copy_spans=["placeholders", "tags"], nbest=nbest).translations(texts))


@pytest.mark.slow
def test_a_model_alone_loses_and_invents_placeholders(catalogue: Bundle) -> None:
    texts = [source for source, _ in messages(100, seed=7, placeholders=UNSEEN)]
    translations = Translator(without_copies(catalogue)).translate(texts)
    wrong = [one for text, one in zip(texts, translations, strict=True) if not same_spans(text, one)]
    assert len(wrong) > 50


def test_every_translation_has_the_placeholders_and_tags_of_its_source(catalogue: Bundle) -> None:
    for best in translate(catalogue, 60, LEARNED + UNSEEN, nbest=3):
        for one in (best, *best.alternatives):
            assert same_spans(best.source, one.text) or set(one.flags) == {"split", "wrong_spans"}


def same_spans(source: str, target: str) -> bool:
    """Return True if two texts have the same placeholders and tags, and no other sign that these are made of."""
    spans, others = (sorted(SPANS.findall(text)) for text in (source, target))
    signs = set("".join(spans)) & set("%{}<>")
    return spans == others and not signs & set(SPANS.sub("", target))


def test_a_translated_catalogue_passes_msgfmt(catalogue: Bundle, tmp_path: Path) -> None:
    translations = translate(catalogue, 60, ("%s", "%d", "%lu", "%.2f", "%-10s"))
    entries = ['msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n']
    for source, target in {one.source: one.text for one in translations}.items():
        entries.append(f'#, c-format\nmsgid "{source}"\nmsgstr "{target}"\n')
        assert arguments(source) == arguments(target)
    (tmp_path / "de.po").write_text("\n".join(entries))
    if msgfmt := which("msgfmt"):  # gettext's own check, where it is installed
        checked = subprocess.run(
            [msgfmt, "-c", "-o", "/dev/null", "de.po"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert checked.returncode == 0, checked.stderr


def arguments(message: str) -> list[str]:
    """Return the conversions of a format string of C, in their order, which binds them to the arguments."""
    return re.findall(r"%[-\d.]*(?:l?[a-z])", message.replace("%%", ""))
