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
from allyouneed.text.sentences import sentence_spans, whole_span
from allyouneed.translator import Alignment, Segment, SplitTexts, Translation
from allyouneed.translator.generation import GenerationRequest
from allyouneed.translator.text_splitter import SplitSentences


class SwapCase:
    """Translates `Hello` as `hELLO`; a glossary replaces whole words; `refuse!` is a text that it cannot read."""

    decode = SimpleNamespace(batch_size=8)
    splits_sentences = True

    def language_tag(self, text: str) -> str:
        return ""

    def __init__(self, glossary: dict[str, str] | None = None, languages: tuple[str, str] = ("", "")) -> None:
        self._glossary, self._languages = glossary or {}, languages

    def using(self, *, glossary: dict[str, str] | None = None) -> "SwapCase":
        return SwapCase(glossary, self._languages)

    def split(
        self,
        texts: Sequence[str],
        *,
        glossary: Any = None,
        first_line: int = 1,
        split_sentences: bool = True,
        **_: Any,
    ) -> SplitTexts:
        if "refuse!" in texts:
            line = first_line + list(texts).index("refuse!")
            raise InputError("a character that the vocabulary has not", line=line)
        request = GenerationRequest([0], [], [])
        spans = [
            sentence_spans(one, language=self._languages[0]) if split_sentences else whole_span(one) for one in texts
        ]
        sentences = [text[start:end] for text, some in zip(texts, spans, strict=True) for start, end in some]
        segments = [Segment(number, text, request, glossary) for number, text in enumerate(sentences)]
        return SplitTexts(texts, spans, SplitSentences(sentences, {}, segments), self._languages[1])

    def translate_segments(
        self, segments: Sequence[Segment], *, alternatives: int = 0, align: str | None = None
    ) -> list[Translation]:
        glossaries: list[Any] = [segment.constraints for segment in segments]
        return [
            SwapCase(terms)._translate(segment.text, alternatives, align)
            for segment, terms in zip(segments, glossaries, strict=True)
        ]

    def join(self, split: SplitTexts, translations: Sequence[Translation], **_: Any) -> list[Translation]:
        return split.join(translations, lambda segment, number: InputError("none"))

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

    def __init__(self, languages: tuple[str, str]) -> None:
        self.base = SwapCase(languages=languages)


class StubModels(ModelStore):
    """Models of some pairs, all of them stubs."""

    def __init__(self, pairs: Sequence[str], config: ServeConfig) -> None:
        keys = [ModelKey(*pair.split(":")) for pair in pairs]
        super().__init__([ModelSource(key, Path(f"/{key}")) for key in keys], config)
        self._stubs: dict[ModelKey, StubModel] = {}

    def loaded(self, key: ModelKey) -> Any:
        return self._stubs.setdefault(key, StubModel((key.source, key.target)))

    def missing(self) -> list[ModelKey]:
        return []

    def load(self, key: ModelKey) -> Any:
        return self._stubs.setdefault(key, StubModel((key.source, key.target)))


def limited(**settings: Any) -> ServeConfig:
    """Make a configuration whose `settings` may also have limits that no option sets."""
    limits = {name: settings.pop(name) for name in [*settings] if name not in ServeConfig.__dataclass_fields__}
    config: ServeConfig = type("Limited", (ServeConfig,), limits)(**settings)
    return config


def stub_app(*pairs: str, **settings: Any) -> FastAPI:
    """Make an application that serves these pairs, such as "en:it"."""
    config = limited(**{"workers": 1, **settings})
    return assemble(config, StubModels(pairs or ("en:it", "it:en", "de:it"), config))
