"""The description of DeepL's API for /spec: what each route takes and answers."""

from .libretranslate_schema import DOCUMENT_FIELDS, FLAG, TEXT, Answers, Schema, describe_route, object_schema

ERROR_MESSAGE: Schema = object_schema({"message": TEXT}, ("message",))
_TEXTS: Schema = {"type": "array", "items": TEXT, "minItems": 1}
_LANGUAGE_CODE: Schema = {"type": "string", "examples": ["EN", "IT"]}
_TAG_NAMES: Schema = {"type": "array", "items": TEXT}
_FORMALITY: Schema = {"type": "string", "enum": ["default", "prefer_more", "prefer_less"]}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_QUOTA: Answers = {
    456: {
        "description": "the characters of this key for today are used up",
        "content": {"application/json": {"schema": ERROR_MESSAGE}},
    }
}


def _describe(
    answer: Schema, body: Schema | None = None, *, multipart: bool = False, also: Answers | None = None
) -> Schema:
    return describe_route(
        answer=answer, body=body, multipart=multipart, error=ERROR_MESSAGE, also=_QUOTA | (also or {})
    )


DEEPL_TRANSLATE = _describe(
    object_schema(
        {
            "translations": {
                "type": "array",
                "items": object_schema(
                    {"detected_source_language": TEXT, "text": TEXT, "billed_characters": _COUNT},
                    ("detected_source_language", "text"),
                ),
            }
        },
        ("translations",),
    ),
    object_schema(
        {
            "text": _TEXTS,
            "target_lang": _LANGUAGE_CODE,
            "source_lang": _LANGUAGE_CODE,
            "split_sentences": {"type": "string", "enum": ["0", "1", "nonewlines"]},
            "tag_handling": {"type": "string", "enum": ["html", "xml"]},
            "ignore_tags": _TAG_NAMES,
            "splitting_tags": _TAG_NAMES,
            "non_splitting_tags": _TAG_NAMES,
            "outline_detection": FLAG | {"default": True},
            "formality": _FORMALITY,
            "glossary_id": TEXT,
            "glossary_ids": {"type": "array", "items": TEXT},
            "show_billed_characters": FLAG,
        },
        ("text", "target_lang"),
    ),
)
DEEPL_LANGUAGES = _describe(
    {
        "type": "array",
        "items": object_schema(
            {"language": TEXT, "name": TEXT, "supports_formality": {"type": "boolean"}}, ("language", "name")
        ),
    }
)
DEEPL_USAGE = _describe(object_schema({"character_count": _COUNT, "character_limit": _COUNT}, ("character_count",)))

_DICTIONARY = object_schema(
    {
        "source_lang": _LANGUAGE_CODE,
        "target_lang": _LANGUAGE_CODE,
        "entries": TEXT,
        "entries_format": {"type": "string", "enum": ["tsv", "csv"]},
    },
    ("source_lang", "target_lang", "entries"),
)
_GLOSSARY_V2 = object_schema(
    {
        "glossary_id": TEXT,
        "name": TEXT,
        "ready": {"const": True},
        "source_lang": TEXT,
        "target_lang": TEXT,
        "creation_time": TEXT,
        "entry_count": _COUNT,
    },
    ("glossary_id", "name", "ready", "source_lang", "target_lang", "creation_time", "entry_count"),
)
DICTIONARY_INFO = object_schema(
    {"source_lang": TEXT, "target_lang": TEXT, "entry_count": _COUNT}, ("source_lang", "target_lang", "entry_count")
)
_GLOSSARY_V3 = object_schema(
    {
        "glossary_id": TEXT,
        "name": TEXT,
        "creation_time": TEXT,
        "dictionaries": {"type": "array", "items": DICTIONARY_INFO},
    },
    ("glossary_id", "name", "creation_time", "dictionaries"),
)
_TSV: Answers = {
    200: {"description": "a term, a tab and its translation on each line",
          "content": {"text/tab-separated-values": {"schema": TEXT}}}
}  # fmt: skip
_CREATED: Schema = {"description": "made"}
_DELETED: Answers = {204: {"description": "deleted"}}


def _created(answer: Schema) -> Answers:
    return {201: _CREATED | {"content": {"application/json": {"schema": answer}}}}


CREATE_GLOSSARY = _describe(
    {},
    object_schema({"name": TEXT, **_DICTIONARY["properties"]}, ("name", *_DICTIONARY["required"])),
    also=_created(_GLOSSARY_V2),
)
LIST_GLOSSARIES = _describe(object_schema({"glossaries": {"type": "array", "items": _GLOSSARY_V2}}, ("glossaries",)))
SHOW_GLOSSARY = _describe(_GLOSSARY_V2)
SHOW_ENTRIES = _describe({}, also=_TSV)
DELETE = _describe({}, also=_DELETED)
GLOSSARY_PAIRS = _describe(
    object_schema(
        {
            "supported_languages": {
                "type": "array",
                "items": object_schema({"source_lang": TEXT, "target_lang": TEXT}, ("source_lang", "target_lang")),
            }
        },
        ("supported_languages",),
    )
)
CREATE_MULTILINGUAL = _describe(
    {},
    object_schema({"name": TEXT, "dictionaries": {"type": "array", "items": _DICTIONARY}}, ("name", "dictionaries")),
    also=_created(_GLOSSARY_V3),
)
LIST_MULTILINGUAL = _describe(object_schema({"glossaries": {"type": "array", "items": _GLOSSARY_V3}}, ("glossaries",)))
SHOW_MULTILINGUAL = _describe(_GLOSSARY_V3)
CHANGE_MULTILINGUAL = _describe(
    _GLOSSARY_V3, object_schema({"name": TEXT, "dictionaries": {"type": "array", "items": _DICTIONARY}})
)
SHOW_DICTIONARY = _describe(
    object_schema(
        {
            "dictionaries": {
                "type": "array",
                "items": object_schema(
                    {"source_lang": TEXT, "target_lang": TEXT, "entries": TEXT, "entries_format": {"const": "tsv"}},
                    ("source_lang", "target_lang", "entries", "entries_format"),
                ),
            }
        },
        ("dictionaries",),
    )
)
REPLACE_DICTIONARY = _describe(DICTIONARY_INFO, _DICTIONARY)
_HANDLE = object_schema({"document_id": TEXT, "document_key": TEXT}, ("document_id", "document_key"))
UPLOAD_DOCUMENT = _describe(
    _HANDLE,
    object_schema(
        {
            "file": {"type": "string", "format": "binary"},
            "target_lang": _LANGUAGE_CODE,
            "source_lang": _LANGUAGE_CODE,
            "filename": TEXT,
            "formality": _FORMALITY,
            "glossary_id": TEXT,
            "output_format": TEXT,
            **DOCUMENT_FIELDS,
        },
        ("file", "target_lang"),
    ),
    multipart=True,
)
_DOCUMENT_KEY = object_schema({"document_key": TEXT}, ("document_key",))
DOCUMENT_STATUS = _describe(
    object_schema(
        {
            "document_id": TEXT,
            "status": {"type": "string", "enum": ["translating", "done", "error"]},
            "seconds_remaining": _COUNT,
            "billed_characters": _COUNT,
            "error_message": TEXT,
        },
        ("document_id", "status"),
    ),
    _DOCUMENT_KEY,
)
DOCUMENT_RESULT = _describe(
    {},
    _DOCUMENT_KEY,
    also={
        200: {
            "description": "the file",
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
