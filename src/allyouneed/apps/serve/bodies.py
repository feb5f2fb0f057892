"""What requests of LibreTranslate's and DeepL's APIs have, and what is answered: read, refused, and shown by /spec."""

from typing import Annotated, Any, Literal, Self, TypeVar, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    InstanceOf,
    StringConstraints,
    ValidationError,
    WithJsonSchema,
    create_model,
)

from ...machine.files import parse_json
from .refusals import Refusal
from .request_fields import Fields, UploadedFile


def _parsed(value: object) -> object:
    return parse_json(value) if isinstance(value, str) else value


_BINARY = {"type": "string", "format": "binary"}
Code = Annotated[str, Field(examples=["en"])]
Count = Annotated[int, Field(ge=0)]
Upload = Annotated[InstanceOf[UploadedFile], WithJsonSchema(_BINARY)]
Formality = Literal["default", "prefer_more", "prefer_less", "more", "less"]
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1_000)]
Tags = Annotated[list[str], AfterValidator(lambda names: [*filter(None, map(str.strip, ",".join(names).split(",")))])]
TermsField = Annotated[
    dict[str, str], BeforeValidator(lambda value: parse_json(value) if isinstance(value, str) else value)
]

_STATUSES = {
    400: "invalid request, unknown language or host name, or no key where one is required",
    403: "wrong key, a page of another origin, or a feature that is switched off",
    404: "no such page or file",
    405: "wrong method",
    408: "the body came too slowly",
    413: "too large",
    422: "a field is missing or has a wrong type",
    429: "too many requests",
    500: "an error in the program",
    503: "too many requests are waiting",
    504: "not finished in time",
}
FILE = {"description": "the file", "content": {"application/octet-stream": {"schema": _BINARY}}}


class Body(BaseModel):
    """The fields of a request."""

    @classmethod
    def parse(cls, fields: Fields) -> Self:
        """The fields of a request, wherever they were; one that is null or empty is missing.

        Refuses a missing field and a wrong type in the words of the API.
        """
        values = {}
        for name, known in cls.model_fields.items():
            some = [value for value in fields.every(name) if value is not None]
            is_list = get_origin(known.annotation) is list and not (some and isinstance(some[0], list))
            value: object = some if is_list else next(iter(some), None)
            if value not in (None, "", []):
                values[name] = value
        try:
            return cls(**values)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            reason = "missing" if first["type"] in ("missing", "is_instance_of") else first["msg"]
            raise cls.refusal(str(first["loc"][0]), reason) from None

    @classmethod
    def refusal(cls, name: str, reason: str = "") -> Refusal:
        """What is answered where a field is "missing" or, for another `reason`, has a wrong value."""
        raise NotImplementedError


AnyBody = TypeVar("AnyBody", bound=Body)


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


class DocumentBody(BaseModel):
    """How a document is read, in both APIs beyond what they have themselves."""

    file: Upload
    numbers: bool = Field(False, description="beyond this API: translate texts without a letter too")
    encoding: str = Field("", description="beyond this API: of a file without a byte order mark")
    column: str = Field("", description="beyond this API: the column of a table to translate")
    into: str = Field("", description="beyond this API: the column that the translation goes to")


class FileBody(DocumentBody, LibreBody):
    source: Code
    target: Code
    glossary: TermsField = Field({}, description="beyond LibreTranslate: terms and their translations, as JSON")


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
    """What texts and documents have in common."""

    target_lang: Code
    source_lang: Code = ""
    formality: Formality = "default"
    glossary_id: str = ""
    glossary_ids: list[str] = []
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
    ignore_tags: Tags = []
    splitting_tags: Tags = []
    non_splitting_tags: Tags = []
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
    dictionaries: Annotated[list[Dictionary], Field(max_length=50)] = []


class DictionariesBody(ChangesBody):
    name: Name
    dictionaries: Annotated[list[Dictionary], Field(max_length=50)]


def _answer(name: str, /, **fields: Any) -> type[BaseModel]:
    """An object by the types of its fields; a type in a tuple with a description is one of an optional field."""
    definitions: dict[str, Any] = {
        field: (kind[0], Field(None, description=kind[1])) if isinstance(kind, tuple) else (kind, ...)
        for field, kind in fields.items()
    }
    return create_model(name, **definitions)


def many(kind: Any) -> Any:
    """The type of a list."""
    return list[kind]


def _batch(kind: Any) -> Any:
    """A value for one text, or a list of values for a batch."""
    return kind | list[kind]


_LINKS = Field(description="(i, j): word i of the source belongs to word j of the translation, both from 0")
_ALIGNED = _answer("Aligned", source=list[str], target=list[str], links=Annotated[list[tuple[int, int]], _LINKS])
DETECTED = _answer("Detected", confidence=Annotated[float, Field(ge=0, le=100)], language=Code)
TRANSLATED = _answer(
    "Translated",
    translatedText=_batch(str),
    detectedLanguage=(_batch(DETECTED), "if source is auto"),
    alternatives=(many(_batch(str)), "if alternatives > 0"),
    scores=(_batch(float | None), "if scores is true"),
    flags=(many(_batch(str)), "if flags is true"),
    alignments=(_batch(_ALIGNED), "if alignments is true"),
)
STORED = _answer("Stored", success=Literal[True])
SOURCE_LANGUAGE = _answer("SourceLanguage", code=Code, name=str, targets=list[Code])
_NAMED_CODE = _answer("NamedCode", code=Code, name=str)
SETTINGS = _answer(
    "Settings",
    charLimit=Annotated[int, Field(description="characters of one text; -1: no limit")],
    textsLimit=Annotated[int, Field(description="texts of one request; -1: no limit")],
    alternativesLimit=Annotated[int, Field(description="alternatives of one text")],
    frontendTimeout=Annotated[int, Field(description="milliseconds to wait after a key before translating")],
    apiKeys=bool, keyRequired=bool, suggestions=bool, filesTranslation=bool, supportedFilesFormat=list[str],
    textsLogged=Annotated[bool, Field(description="whether the operator has the texts of requests logged")],
    training=Annotated[bool, Field(description="whether the model comes from a run that the page shows")],
    language=_answer("PageLanguages", source=_NAMED_CODE, target=_NAMED_CODE),
)  # fmt: skip
FILE_URL = _answer("FileUrl", translatedFileUrl=str)
TEXTS = _answer(
    "Texts",
    translations=many(
        _answer(
            "Text",
            detected_source_language=str,
            text=str,
            billed_characters=(Count, "if they are to be shown"),
        )
    ),
)
TARGET_LANGUAGE = _answer("TargetLanguage", language=str, name=str, supports_formality=(bool, "of targets"))
USAGE = _answer("Usage", character_count=Count, character_limit=Count)
_PAIR = {"source_lang": str, "target_lang": str}
PAIRS = _answer("Pairs", supported_languages=many(_answer("Pair", **_PAIR)))
DICTIONARY = _answer("DictionaryInfo", **_PAIR, entry_count=Count)
_GLOSSARY = {"glossary_id": str, "name": str, "creation_time": str}
GLOSSARY_OF_PAIR = _answer("GlossaryOfPair", **_GLOSSARY, ready=Literal[True], **_PAIR, entry_count=Count)
GLOSSARIES_OF_PAIR = _answer("GlossariesOfPair", glossaries=many(GLOSSARY_OF_PAIR))
GLOSSARY_OF_PAIRS = _answer("GlossaryOfPairs", **_GLOSSARY, dictionaries=many(DICTIONARY))
GLOSSARIES_OF_PAIRS = _answer("GlossariesOfPairs", glossaries=many(GLOSSARY_OF_PAIRS))
ENTRIES = _answer("Entries", dictionaries=list[Dictionary])
HANDLE = _answer("Handle", document_id=str, document_key=str)
STATUS = _answer(
    "Status",
    document_id=str,
    status=Literal["translating", "done", "error"],
    seconds_remaining=(Count, "while it is translated"),
    billed_characters=(Count, "when it is done"),
    error_message=(str, "if it failed"),
)


def _failure(description: str, field: str) -> dict[str, Any]:
    """Describe an error whose answer has one field. No model: FastAPI would build it once more for every route."""
    schema = {"type": "object", "properties": {field: {"type": "string"}}, "required": [field]}
    return {"description": description, "content": {"application/json": {"schema": schema}}}


ERRORS: dict[int | str, dict[str, Any]] = {status: _failure(text, "error") for status, text in _STATUSES.items()}
DEEPL_ERRORS: dict[int | str, dict[str, Any]] = {
    **{status: _failure(text, "message") for status, text in _STATUSES.items()},
    456: _failure("the characters of this key for today are used up", "message"),
}


def described(answer: Any, body: type[Body] | None = None, *, status: int = 200) -> dict[str, Any]:
    """Arguments of a FastAPI route: its `answer`, a type or a description, and the schema of its body."""
    success = answer if isinstance(answer, dict) else {"description": "success", "model": answer}
    route: dict[str, Any] = {"response_model": None, "status_code": status, "responses": {status: success}}
    if body is not None:
        is_upload = issubclass(body, DocumentBody)
        kinds = ("multipart/form-data",) if is_upload else ("application/json", "application/x-www-form-urlencoded")
        schema = body.model_json_schema()
        if definitions := schema.pop("$defs", {}):
            schema["properties"]["dictionaries"]["items"] = definitions["Dictionary"]
        content = {kind: {"schema": schema} for kind in kinds}
        route["openapi_extra"] = {"requestBody": {"required": True, "content": content}}
    return route
