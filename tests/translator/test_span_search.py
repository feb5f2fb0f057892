"""Placeholders and tags in the translations of a model that has learned to translate messages of programs."""

import re
import subprocess
from pathlib import Path
from shutil import which

import pytest

from allyouneed.bundle import Bundle
from allyouneed.translator import Translation, Translator
from catalogue import LEARNED, UNSEEN, messages

SPANS = re.compile(r"\{n, plural.*?\}\}|%\(\w+\)d|%\(\w+\)s|%[-\d.]*l?[a-z]|%%|\{\w+\}|</?b>")
"""What `messages` puts into a message, by a definition of its own."""


def translate(bundle: Bundle, count: int, placeholders: tuple[str, ...], *, nbest: int = 1) -> list[Translation]:
    texts = [source for source, _ in messages(count, seed=7, placeholders=placeholders)]
    return list(Translator(bundle).using(copy_spans=["placeholders", "tags"], nbest=nbest).translations(texts))


@pytest.mark.slow
def test_a_model_alone_loses_and_invents_placeholders(catalogue: Bundle) -> None:
    texts = [source for source, _ in messages(100, seed=7, placeholders=UNSEEN)]
    translations = Translator(catalogue).translate(texts)
    wrong = [one for text, one in zip(texts, translations, strict=True) if not same_spans(text, one)]
    assert len(wrong) > 50


def test_every_translation_has_the_placeholders_and_tags_of_its_source(catalogue: Bundle) -> None:
    for best in translate(catalogue, 60, LEARNED + UNSEEN, nbest=3):
        for one in (best, *best.alternatives):
            assert same_spans(best.source, one.text) or set(one.flags) == {"split", "wrong_spans"}


def same_spans(source: str, target: str) -> bool:
    """Whether two texts have the same placeholders and tags, and no other sign that those are made of."""
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
    """The conversions of a format string of C, in their order, which binds them to the arguments."""
    return re.findall(r"%[-\d.]*(?:l?[a-z])", message.replace("%%", ""))
