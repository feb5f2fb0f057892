"""The API of this program itself: translations with scores, flags and alignments."""

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

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


class TranslatedText(BaseModel):
    """The translation of one text."""

    text: str
    log_probability: float
    flags: list[str]


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
    return TranslateResponse(
        translations=[
            TranslatedText(text=one.text, log_probability=one.log_probability, flags=list(one.flags))
            for one in translations
        ]
    )
