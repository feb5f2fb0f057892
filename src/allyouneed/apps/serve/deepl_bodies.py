"""Requests and answers of DeepL's API, including its glossaries."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, StringConstraints

from .bodies import STATUSES, Body, Code, Count, DocumentBody, answer, failure, many
from .refusals import Refusal

Formality = Literal["default", "prefer_more", "prefer_less", "more", "less"]
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1_000)]
Tags = Annotated[list[str], AfterValidator(lambda names: [*filter(None, map(str.strip, ",".join(names).split(",")))])]


class DeepLBody(Body):
    """The fields of a request of DeepL's API."""

    auth_key: str = Field("", description="API key, where it is not in the Authorization header")

    @classmethod
    def refusal(cls, name: str, reason: str = "") -> Refusal:
        return Refusal(
            400, f"Bad request: Value for '{name}' not {'specified' if reason == 'missing' else 'supported'}."
        )


class LanguagesBody(DeepLBody):
    type: Literal["source", "target"] = "source"


class OptionsBody(DeepLBody):
    """The options that texts and documents share."""

    target_lang: Code
    source_lang: Code = ""
    formality: Formality = "default"
    glossary_id: str = ""
    glossary_ids: list[str] = Field([])
    custom_instructions: Any = Field(None, description="not supported, as the next two")
    style_id: Any = None
    translation_memory_id: Any = None


class TextsBody(OptionsBody):
    text: list[str]
    split_sentences: Annotated[
        Literal["", "0", "1", "nonewlines"],
        BeforeValidator(lambda value: {"True": "1", "False": "0"}.get(str(value), str(value))),
    ] = ""
    tag_handling: Literal["", "html", "xml"] = ""
    ignore_tags: Tags = Field([])
    splitting_tags: Tags = Field([])
    non_splitting_tags: Tags = Field([])
    outline_detection: bool = True
    show_billed_characters: bool = False


class UploadBody(DocumentBody, OptionsBody):
    filename: str = ""
    output_format: str = ""


class DocumentKeyBody(DeepLBody):
    document_key: str


class PairBody(DeepLBody):
    source_lang: Code
    target_lang: Code


class Dictionary(BaseModel):
    """Terms and their translations for a pair of languages."""

    source_lang: Code
    target_lang: Code
    entries: str
    entries_format: Literal["tsv", "csv"] = "tsv"


class DictionaryBody(Dictionary, DeepLBody):
    pass


class GlossaryBody(DictionaryBody):
    name: Name


class ChangesBody(DeepLBody):
    name: Name | None = None
    dictionaries: Annotated[list[Dictionary], Field(max_length=50)] = Field([])


class DictionariesBody(ChangesBody):
    name: Name
    dictionaries: Annotated[list[Dictionary], Field(max_length=50)]


TEXTS = answer(
    "Texts",
    translations=many(
        answer(
            "Text",
            detected_source_language=str,
            text=str,
            billed_characters=(Count, "if they are to be shown"),
        )
    ),
)
TARGET_LANGUAGE = answer("TargetLanguage", language=str, name=str, supports_formality=(bool, "of targets"))
USAGE = answer("Usage", character_count=Count, character_limit=Count)
_PAIR = {"source_lang": str, "target_lang": str}
PAIRS = answer("Pairs", supported_languages=many(answer("Pair", **_PAIR)))
DICTIONARY = answer("DictionaryInfo", **_PAIR, entry_count=Count)
_GLOSSARY = {"glossary_id": str, "name": str, "creation_time": str}
GLOSSARY_OF_PAIR = answer("GlossaryOfPair", **_GLOSSARY, ready=Literal[True], **_PAIR, entry_count=Count)
GLOSSARIES_OF_PAIR = answer("GlossariesOfPair", glossaries=many(GLOSSARY_OF_PAIR))
GLOSSARY_OF_PAIRS = answer("GlossaryOfPairs", **_GLOSSARY, dictionaries=many(DICTIONARY))
GLOSSARIES_OF_PAIRS = answer("GlossariesOfPairs", glossaries=many(GLOSSARY_OF_PAIRS))
ENTRIES = answer("Entries", dictionaries=list[Dictionary])
HANDLE = answer("Handle", document_id=str, document_key=str)
STATUS = answer(
    "Status",
    document_id=str,
    status=Literal["translating", "done", "error"],
    seconds_remaining=(Count, "while it is translated"),
    billed_characters=(Count, "when it is done"),
    error_message=(str, "if it failed"),
)

DEEPL_ERRORS: dict[int | str, dict[str, Any]] = {
    **{status: failure(text, "message") for status, text in STATUSES.items()},
    456: failure("the characters of this key for today are used up", "message"),
}
