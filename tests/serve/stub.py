"""A server whose translator changes the case of every letter, so that only the shape of the APIs matters."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fastapi import FastAPI

from allyouneed.apps.serve.app import assemble
from allyouneed.apps.serve.languages import ModelKey
from allyouneed.apps.serve.models import ModelSource, ModelStore
from allyouneed.apps.serve.options import ServeConfig
from allyouneed.errors import InputError
from allyouneed.translator import Alignment, Segment, SplitTexts, Translation
from allyouneed.translator.generation import GenerationRequest


class SwapCase:
    """Translates `Hello` as `hELLO`; a glossary replaces whole words; `refuse!` is a text that it cannot read."""

    decode = SimpleNamespace(batch_size=8)

    def __init__(self, glossary: dict[str, str] | None = None) -> None:
        self._glossary = glossary or {}

    def using(self, *, glossary: dict[str, str] | None = None) -> "SwapCase":
        return SwapCase(glossary)

    def split(self, texts: Sequence[str], *, glossary: Any = None, first_line: int = 1, **_: Any) -> SplitTexts:
        if "refuse!" in texts:
            line = first_line + list(texts).index("refuse!")
            raise InputError("a character that the vocabulary has not", line=line)
        request = GenerationRequest([0], [], [])
        return SplitTexts(texts, {}, [Segment(number, text, request, glossary) for number, text in enumerate(texts)])

    def translate_segments(
        self, segments: Sequence[Segment], *, alternatives: int = 0, align: str | None = None
    ) -> list[Translation]:
        glossaries: list[Any] = [segment.constraints for segment in segments]
        return [
            SwapCase(terms)._translate(segment.text, alternatives, align)
            for segment, terms in zip(segments, glossaries, strict=True)
        ]

    def join(self, split: SplitTexts, translations: Sequence[Translation], **_: Any) -> list[Translation]:
        return list(translations)

    def stream(self, text: str) -> Iterator[str]:
        yield from self._translate(text, 0, None).text

    def _translate(self, text: str, alternatives: int, align: str | None) -> Translation:
        words = [self._glossary.get(word, word.swapcase()) for word in text.split()]
        best = " ".join(words)
        return Translation(
            text,
            best,
            log_probability=-0.5 * len(words),
            tokens=len(words),
            flags=("unfinished",) if text == "cut" else (),
            alternatives=tuple(Translation(text, f"{best} {number}") for number in range(1, alternatives)),
            alignment=Alignment(tuple(text.split()), tuple(words), tuple((i, i) for i in range(len(words))))
            if align
            else None,
        )


class StubModel:
    """A loaded model whose translator is `SwapCase`."""

    bytes = 0
    base = SwapCase()


class StubModels(ModelStore):
    """Models of some pairs, all of them stubs."""

    def __init__(self, pairs: Sequence[str], config: ServeConfig) -> None:
        keys = [ModelKey(*pair.split(":")) for pair in pairs]
        super().__init__([ModelSource(key, Path(f"/{key}")) for key in keys], config)

    def loaded(self, key: ModelKey) -> Any:
        return StubModel()

    def missing(self) -> list[ModelKey]:
        return []

    def load(self, key: ModelKey) -> Any:
        return StubModel()


def limited(**settings: Any) -> ServeConfig:
    """A configuration whose `settings` may have limits too, which no option sets."""
    limits = {name: settings.pop(name) for name in [*settings] if name not in ServeConfig.__dataclass_fields__}
    config: ServeConfig = type("Limited", (ServeConfig,), limits)(**settings)
    return config


def stub_app(*pairs: str, **settings: Any) -> FastAPI:
    """An application that serves these pairs, such as "en:it"."""
    config = limited(**{"workers": 1, **settings})
    return assemble(config, StubModels(pairs or ("en:it", "it:en", "de:it"), config))
