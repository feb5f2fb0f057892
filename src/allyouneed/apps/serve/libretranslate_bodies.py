"""Requests and answers of LibreTranslate's API."""

from typing import Annotated, Literal

from pydantic import Field

from .bodies import Body, Code, DocumentBody, TermsField, answer, batch, many
from .refusals import Refusal


class LibreBody(Body):
    """The fields of a request of LibreTranslate's API."""

    api_key: str | None = Field(None, description="API key, if the server requires one")

    @classmethod
    def refusal(cls, name: str, reason: str = "") -> Refusal:
        if reason == "missing":
            return Refusal(400, f"Invalid request: missing {name} parameter")
        is_flag = cls.model_fields[name].annotation is bool
        expected = {
            "q": "must be a string or a list of strings",
            "alternatives": "is not a number",
            "glossary": "must be an object of terms and their translations",
        }.get(name, "must be true or false" if is_flag else "must be a string")
        return Refusal(400, f"Invalid request: {name} parameter {reason.partition('Value error, ')[2] or expected}")


class DetectBody(LibreBody):
    q: str | list[str] = Field(description="the text; in JSON also a list of texts")


class TranslateBody(DetectBody):
    source: str = Field(description="language code, or auto", examples=["en", "auto"])
    target: Code
    format: str = Field("text", json_schema_extra={"enum": ["text", "html"]})
    alternatives: int = Field(0, json_schema_extra={"minimum": 0})
    scores: bool = Field(False, description="beyond LibreTranslate: the mean log-probability of a token")
    flags: bool = Field(False, description="beyond LibreTranslate: what to look at, such as repeats or unfinished")
    alignments: bool = Field(False, description="beyond LibreTranslate: which words belong together")
    glossary: TermsField = Field(
        {}, description="beyond LibreTranslate: terms, and the translation that each must have"
    )


class SuggestBody(LibreBody):
    q: str = Field(description="the text")
    s: str = Field(description="its better translation")
    source: Code
    target: Code


class FileBody(DocumentBody, LibreBody):
    source: Code
    target: Code
    glossary: TermsField = Field({}, description="beyond LibreTranslate: terms and their translations, as JSON")


_LINKS = Field(description="(i, j): word i of the source belongs to word j of the translation, both from 0")
_ALIGNED = answer("Aligned", source=list[str], target=list[str], links=Annotated[list[tuple[int, int]], _LINKS])
DETECTED = answer("Detected", confidence=Annotated[float, Field(ge=0, le=100)], language=Code)
TRANSLATED = answer(
    "Translated",
    translatedText=batch(str),
    detectedLanguage=(batch(DETECTED), "if source is auto"),
    alternatives=(many(batch(str)), "if alternatives > 0"),
    scores=(batch(float | None), "if scores is true"),
    flags=(many(batch(str)), "if flags is true"),
    alignments=(batch(_ALIGNED), "if alignments is true"),
)
STORED = answer("Stored", success=Literal[True])
SOURCE_LANGUAGE = answer("SourceLanguage", code=Code, name=str, targets=list[Code])
_NAMED_CODE = answer("NamedCode", code=Code, name=str)
SETTINGS = answer(
    "Settings",
    charLimit=Annotated[int, Field(description="characters of one text; -1: no limit")],
    textsLimit=Annotated[int, Field(description="texts of one request; -1: no limit")],
    alternativesLimit=Annotated[int, Field(description="alternatives of one text")],
    frontendTimeout=Annotated[int, Field(description="milliseconds to wait after a key before translating")],
    apiKeys=bool, keyRequired=bool, suggestions=bool, filesTranslation=bool, supportedFilesFormat=list[str],
    textsLogged=Annotated[bool, Field(description="whether the operator has the texts of requests logged")],
    training=Annotated[bool, Field(description="whether the model comes from a run that the page shows")],
    language=answer("PageLanguages", source=_NAMED_CODE, target=_NAMED_CODE),
)  # fmt: skip
FILE_URL = answer("FileUrl", translatedFileUrl=str)
