"""The description of LibreTranslate's API for /spec: what each route takes and answers."""

from typing import Any

Schema = dict[str, Any]
Answers = dict[int | str, dict[str, Any]]

TEXT: Schema = {"type": "string"}
CODE: Schema = {"type": "string", "examples": ["en"]}
KEY: Schema = {"type": ["string", "null"], "description": "API key, if the server requires one"}
FLAG: Schema = {"type": "boolean", "default": False}
ERROR: Schema = {"type": "object", "properties": {"error": TEXT}, "required": ["error"]}
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


def object_schema(properties: Schema, required: tuple[str, ...] = ()) -> Schema:
    """A JSON object with these properties, of which some are required."""
    return {"type": "object", "properties": properties, "required": list(required)}


def one_or_list(item: Schema, description: str = "") -> Schema:
    """A value for one text, or a list of values for a batch."""
    return {"anyOf": [item, {"type": "array", "items": item}], "description": description}


def describe_route(
    *,
    answer: Schema,
    body: Schema | None = None,
    multipart: bool = False,
    error: Schema = ERROR,
    also: Answers | None = None,
) -> dict[str, Any]:
    """Arguments of a FastAPI route: the schemas of its body and answers; no 200 if `also` has 201 or 204."""
    also = also or {}
    success = {200: {"description": "success", "content": {"application/json": {"schema": answer}}}}
    described: dict[str, Any] = {
        "response_model": None,
        "responses": {
            **({} if also.keys() & {201, 204} else success),
            **{status: _answer(text, error) for status, text in _STATUSES.items()},
            **also,
        },
    }
    if body is not None:
        kinds = ("multipart/form-data",) if multipart else ("application/json", "application/x-www-form-urlencoded")
        content = {kind: {"schema": body} for kind in kinds}
        described["openapi_extra"] = {"requestBody": {"required": True, "content": content}}
    return described


def _answer(text: str, error: Schema) -> Schema:
    return {"description": text, "content": {"application/json": {"schema": error}}}


ERROR_ANSWERS: Answers = {status: _answer(text, ERROR) for status, text in _STATUSES.items()}

_DETECTION = object_schema(
    {"confidence": {"type": "number", "minimum": 0, "maximum": 100}, "language": CODE}, ("confidence", "language")
)
_ALIGNMENT = object_schema(
    {
        "source": {"type": "array", "items": TEXT},
        "target": {"type": "array", "items": TEXT},
        "links": {
            "type": "array",
            "items": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2},
            "description": "(i, j): word i of the source belongs to word j of the translation, both from 0",
        },
    },
    ("source", "target", "links"),
)

TRANSLATE = describe_route(
    body=object_schema(
        {
            "q": one_or_list(TEXT, "the text; in JSON also a list of texts"),
            "source": {"type": "string", "description": "language code, or auto", "examples": ["en", "auto"]},
            "target": {"type": "string", "description": "language code", "examples": ["it"]},
            "format": {"type": "string", "enum": ["text", "html"], "default": "text"},
            "alternatives": {"type": "integer", "minimum": 0, "default": 0},
            "api_key": KEY,
            "scores": FLAG | {"description": "beyond LibreTranslate: the mean log-probability of a token"},
            "flags": FLAG | {"description": "beyond LibreTranslate: what to look at, such as repeats or unfinished"},
            "alignments": FLAG | {"description": "beyond LibreTranslate: which words belong together"},
            "glossary": {
                "type": ["object", "null"],
                "additionalProperties": TEXT,
                "description": "beyond LibreTranslate: terms, and the translation that each must have",
            },
        },
        ("q", "source", "target"),
    ),
    answer=object_schema(
        {
            "translatedText": one_or_list(TEXT),
            "detectedLanguage": one_or_list(_DETECTION, "if source is auto"),
            "alternatives": {"type": "array", "items": one_or_list(TEXT), "description": "if alternatives > 0"},
            "scores": one_or_list({"type": ["number", "null"]}, "if scores is true"),
            "flags": {"type": "array", "items": one_or_list(TEXT), "description": "if flags is true"},
            "alignments": one_or_list(_ALIGNMENT, "if alignments is true"),
        },
        ("translatedText",),
    ),
)
DETECT = describe_route(
    body=object_schema({"q": one_or_list(TEXT), "api_key": KEY}, ("q",)),
    answer={"type": "array", "items": _DETECTION, "minItems": 1},
)
LANGUAGES = describe_route(
    answer={
        "type": "array",
        "items": object_schema(
            {"code": CODE, "name": TEXT, "targets": {"type": "array", "items": CODE}}, ("code", "name", "targets")
        ),
    }
)
SUGGEST = describe_route(
    body=object_schema(
        {
            "q": TEXT | {"description": "the text"},
            "s": TEXT | {"description": "its better translation"},
            "source": CODE,
            "target": CODE,
            "api_key": KEY,
        },
        ("q", "s", "source", "target"),
    ),
    answer=object_schema({"success": {"const": True}}, ("success",)),
)
_LANGUAGE = object_schema({"code": CODE, "name": TEXT}, ("code", "name"))
_SETTINGS: Schema = {
    "charLimit": {"type": "integer", "description": "characters of one text; -1: no limit"},
    "textsLimit": {"type": "integer", "description": "texts of one request; -1: no limit"},
    "alternativesLimit": {"type": "integer", "description": "alternatives of one text"},
    "frontendTimeout": {"type": "integer", "description": "milliseconds to wait after a key before translating"},
    "apiKeys": {"type": "boolean"},
    "keyRequired": {"type": "boolean"},
    "suggestions": {"type": "boolean"},
    "filesTranslation": {"type": "boolean"},
    "supportedFilesFormat": {"type": "array", "items": TEXT},
    "textsLogged": {"type": "boolean", "description": "whether the operator has the texts of requests logged"},
    "training": {"type": "boolean", "description": "whether the model comes from a run that the page shows"},
    "language": object_schema({"source": _LANGUAGE, "target": _LANGUAGE}, ("source", "target")),
}
SETTINGS = describe_route(answer=object_schema(_SETTINGS, tuple(_SETTINGS)))
_FILE_URL = object_schema({"translatedFileUrl": TEXT | {"format": "uri"}}, ("translatedFileUrl",))
DOCUMENT_FIELDS = {  # beyond LibreTranslate and DeepL
    "numbers": FLAG | {"description": "beyond this API: translate texts without a letter too"},
    "encoding": TEXT | {"description": "beyond this API: of a file without a byte order mark"},
    "column": TEXT | {"description": "beyond this API: the column of a table to translate"},
    "into": TEXT | {"description": "beyond this API: the column that the translation goes to"},
}
TRANSLATE_FILE = describe_route(
    body=object_schema(
        {
            "file": {"type": "string", "format": "binary"},
            "source": CODE,
            "target": CODE,
            "api_key": KEY,
            **DOCUMENT_FIELDS,
            "glossary": TEXT | {"description": "beyond LibreTranslate: terms and their translations, as JSON"},
        },
        ("file", "source", "target"),
    ),
    multipart=True,
    answer=_FILE_URL,
    also={
        200: {
            "description": "success; with `Accept: text/event-stream` events with the progress",
            "content": {"application/json": {"schema": _FILE_URL}, "text/event-stream": {}},
        }
    },
)
DOWNLOAD_FILE = describe_route(
    answer={},
    also={
        200: {
            "description": "the file",
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
