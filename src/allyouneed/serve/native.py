"""The API of this program itself: translations with scores, flags and alignments."""

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from ..translator import Translation
from .scheduler import TranslationOptions
from .server_state import Server

router = APIRouter(prefix="/v1", tags=["native"])


class TranslateRequest(BaseModel):
    """Texts to translate."""

    model_config = ConfigDict(extra="forbid")

    texts: list[str] = Field(max_length=1000)
    source: str
    target: str
    alternatives: int = Field(0, ge=0, le=20)
    align: str | None = Field(None, pattern="^(words|tokens)$")
    glossary: dict[str, str] = Field(default_factory=dict)
    prefix: str = ""


class AlternativeText(BaseModel):
    """A translation. `log_probability` is in nats, of `tokens` tokens; both are 0 where nothing was decoded."""

    text: str
    log_probability: float
    tokens: int
    flags: list[str]


class AlignedWords(BaseModel):
    """The words, or tokens, of a source and of its translation, and the indices of those that belong together."""

    source: list[str]
    target: list[str]
    links: list[tuple[int, int]]


class TranslatedText(AlternativeText):
    """The translation of one text; `alignment` is null unless `align` asks for it."""

    alternatives: list[AlternativeText]
    alignment: AlignedWords | None


class TranslateResponse(BaseModel):
    """The translations, in the order of the texts."""

    translations: list[TranslatedText]


@router.post("/translate")
async def translate(body: TranslateRequest, server: Server) -> TranslateResponse:
    """Translate texts of one language into another."""
    key = server.models.pair(body.source, body.target)
    options = TranslationOptions(
        alternatives=body.alternatives, align=body.align, glossary=tuple(body.glossary.items()), prefix=body.prefix
    )
    translations = await server.scheduler.translate(key, body.texts, options)
    return TranslateResponse(translations=[_describe(one) for one in translations])


def _describe(translation: Translation) -> TranslatedText:
    alignment = translation.alignment and AlignedWords(**translation.alignment._asdict())
    return TranslatedText(
        **_outline(translation),
        alternatives=[AlternativeText(**_outline(other)) for other in translation.alternatives],
        alignment=alignment,
    )


def _outline(translation: Translation) -> dict[str, Any]:
    return {name: getattr(translation, name) for name in AlternativeText.model_fields}
