"""Our own API: translations with confidence, flags and alignments; piece by piece; and explained."""

from collections.abc import AsyncIterator
from typing import Any, Literal

from fastapi import APIRouter
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, Field

from ...errors import AllYouNeedError, InputError
from ...translator import Translation, Translator
from ...translator.texts import checked_prefixes
from .batching import TranslationOptions
from .events import EVENT_STREAM, event, event_response
from .monitoring import count_texts
from .request_fields import checked_count, checked_terms, refuse_too_much
from .server_state import Admitted, NativeBody, Server

router = APIRouter(prefix="/v1", tags=["native"])


class TextsRequest(NativeBody):
    """Texts to translate, and options."""

    texts: list[str]
    source: str = Field(description="language of the texts", examples=["en"])
    target: str = Field(description="language of the translations", examples=["it"])
    alternatives: int = Field(0, ge=0, description="other translations of each text")
    align: Literal["words", "tokens"] | None = Field(None, description="units to align, if any")
    glossary: dict[str, str] = Field(default_factory=dict, description="terms and their translations")
    prefix: str | list[str] = Field("", description="how every translation begins, or a list: how each begins")
    split_sentences: bool = Field(True, description="false: each text is one sentence")


class AlternativeText(BaseModel):
    """A translation. `log_probability` is in nats, over `tokens` tokens; both are 0 if nothing was decoded."""

    text: str
    log_probability: float
    tokens: int
    flags: list[str]


class AlignedWords(BaseModel):
    """The words or tokens of a source and of its translation, and the pairs of indices that belong together."""

    source: list[str]
    target: list[str]
    links: list[tuple[int, int]]


class TranslatedText(AlternativeText):
    """The translation of a text. `alignment` is null unless `align` asks for it."""

    alternatives: list[AlternativeText]
    alignment: AlignedWords | None


class TextsAnswer(BaseModel):
    """The translations, in the order of the texts."""

    translations: list[TranslatedText]


class SentencesRequest(NativeBody):
    """Texts to cut into sentences."""

    texts: list[str]
    source: str = Field(description="language of the texts", examples=["en"])
    target: str = Field(description="language of the translations", examples=["it"])
    glossary: dict[str, str] = Field(default_factory=dict, description="terms, in which no sentence ends")


class Sentence(BaseModel):
    """A sentence. `before` is the blank before it in the text, and `gap` is the text to put before its translation.

    `tag` is the tag of the target language, such as `>>ita<<`, if the text begins with one. Each sentence needs it.
    """

    text: str
    before: str
    gap: str
    tag: str


class SentencesAnswer(BaseModel):
    """The sentences of each text, in the order of the texts."""

    sentences: list[list[Sentence]]


class StreamRequest(NativeBody):
    """A text to translate piece by piece."""

    text: str
    source: str = Field(examples=["en"])
    target: str = Field(examples=["it"])
    glossary: dict[str, str] = Field(default_factory=dict, description="terms and their translations")


@router.post("/translate", response_model=TextsAnswer)
async def translate(body: TextsRequest, server: Server, client: Admitted) -> JSONResponse:
    """Translate texts of one language into another."""
    refuse_too_much(body.texts, server.config)
    key = server.models.pair(body.source, body.target)
    options = TranslationOptions(
        alternatives=checked_count(body.alternatives, "alternatives", limit=server.config.max_alternatives),
        align=body.align,
        glossary=checked_terms(body.glossary, server.config),
        prefix=body.prefix if isinstance(body.prefix, str) else tuple(checked_prefixes(body.prefix, len(body.texts))),
        split_sentences=body.split_sentences,
    )
    server.access.charge(client, cost=max(1, len(body.texts)), characters=sum(map(len, body.texts)))
    count_texts(body.texts)
    translations = await server.scheduler.translate(key, body.texts, options)
    # without the answer's model, because checking would take longer than making the answer
    return JSONResponse({"translations": [_describe(one) for one in translations]})


@router.post("/sentences", response_model=SentencesAnswer)
async def find_sentences(body: SentencesRequest, server: Server, client: Admitted) -> JSONResponse:
    """Return the sentences that are translated one by one, and how to join their translations."""
    refuse_too_much(body.texts, server.config)
    key = server.models.pair(body.source, body.target)
    glossary = dict(checked_terms(body.glossary, server.config))
    server.access.charge(client)

    def find(translator: Translator) -> list[list[dict[str, str]]]:
        split = translator.split(body.texts, glossary=glossary or None, on_refused=lambda _: None)
        found: list[list[dict[str, str]]] = [[] for _ in split.texts]
        for number, (text, spans) in enumerate(zip(split.texts, split.spans, strict=True)):
            place = 0
            tag = translator.language_tag(text)
            for (start, end), gap in zip(spans, split.gaps(number), strict=False):  # the last gap is at the end
                found[number].append({"text": text[start:end], "before": text[place:start], "gap": gap, "tag": tag})
                place = end
        return found

    return JSONResponse({"sentences": await server.scheduler.run(key, find)})


@router.post(
    "/stream",
    response_class=StreamingResponse,
    responses={200: {"content": {EVENT_STREAM: {}}}},
)
async def stream(body: StreamRequest, server: Server, client: Admitted) -> StreamingResponse:
    """Translate a text and send each piece as soon as it is written, as server-sent events.

    Each event without a name has a piece as JSON, `{"text": "…"}`; joined, the pieces are the translation. The last
    event is `done` with the whole text, or `error` with `{"error": "…"}`.
    """
    refuse_too_much([body.text], server.config)
    key = server.models.pair(body.source, body.target)
    options = TranslationOptions(glossary=checked_terms(body.glossary, server.config))
    server.access.charge(client, cost=1, characters=len(body.text))
    count_texts([body.text])
    pieces = server.scheduler.stream(key, body.text, options)
    first = await anext(pieces, None)  # a refused text gets the status code of its refusal

    async def events() -> AsyncIterator[str]:
        text = ""
        try:
            if first is not None:
                text += first
                yield event({"text": first})
                async for piece in pieces:
                    text += piece
                    yield event({"text": piece})
            yield event({"text": text}, name="done")
        except AllYouNeedError as error:
            yield event({"error": str(error)}, name="error")
        finally:
            await pieces.aclose()

    return event_response(events())


def _describe(translation: Translation) -> dict[str, Any]:
    alignment = translation.alignment
    return {
        **_outline(translation),
        "alternatives": [_outline(other) for other in translation.alternatives],
        "alignment": None if alignment is None else alignment._asdict(),
    }


def _outline(translation: Translation) -> dict[str, Any]:
    return {name: getattr(translation, name) for name in AlternativeText.model_fields}


MAX_EXPLAINED_CHARACTERS = 300


class ExplainRequest(NativeBody):
    """A text to translate and explain."""

    text: str
    source: str
    target: str


@router.post("/explain")
async def explain_text(body: ExplainRequest, server: Server, client: Admitted) -> JSONResponse:
    """Explain a translation: attention, heads, search and every tensor, as the page of `allyouneed explain` draws them.

    Large arrays are packed in the form that `unpack` of web/dom.js reads. Refuses texts of more than 300 characters.
    """
    if len(body.text) > MAX_EXPLAINED_CHARACTERS:
        raise InputError(
            f"a text of {len(body.text)} characters is too long to look inside; at most "
            f"{MAX_EXPLAINED_CHARACTERS} can be explained: give a sentence of it"
        )
    key = server.models.pair(body.source, body.target)
    server.access.charge(client, cost=1, characters=len(body.text))
    count_texts([body.text])

    def describe(translator: Translator) -> dict[str, Any]:
        from ..explain.page_data import build_page_data  # imports PyTorch
        from ..explain.trace import trace_translation

        return build_page_data(trace_translation(translator, body.text), translator)

    return JSONResponse(await server.scheduler.run(key, describe))
