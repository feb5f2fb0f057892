"""The fields of an API's requests and answers: how they are parsed, which message a wrong one gets, and how /spec
describes them.

LibreTranslate's fields are in `libretranslate_bodies.py`, DeepL's in `deepl_bodies.py`, and ours in `native.py`.
"""

from typing import Annotated, Any, Self, TypeVar, get_origin

from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    InstanceOf,
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
TermsField = Annotated[dict[str, str], BeforeValidator(_parsed)]

STATUSES = {
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
        """Parse the fields of a request, wherever they were in it. A null or empty field counts as missing.

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
        """Make the answer to a field that is missing or, for any `reason` except "missing", has a wrong value."""
        raise NotImplementedError


AnyBody = TypeVar("AnyBody", bound=Body)


class DocumentBody(BaseModel):
    """How to read a document, in both APIs. Each API adds fields of its own."""

    file: Upload
    numbers: bool = Field(False, description="beyond this API: translate texts without a letter too")
    encoding: str = Field("", description="beyond this API: of a file without a byte order mark")
    column: str = Field("", description="beyond this API: the column of a table to translate")
    into: str = Field("", description="beyond this API: the column that the translation goes to")


def answer(name: str, /, **fields: Any) -> type[BaseModel]:
    """Make the type of an object from its fields. A type in a tuple with a description makes an optional field."""
    definitions: dict[str, Any] = {
        field: (kind[0], Field(None, description=kind[1])) if isinstance(kind, tuple) else (kind, ...)
        for field, kind in fields.items()
    }
    return create_model(name, **definitions)


def many(kind: Any) -> Any:
    """Return the type of a list."""
    return list[kind]


def batch(kind: Any) -> Any:
    """Return the type of a value for one text, or of a list of values for a batch."""
    return kind | list[kind]


def failure(description: str, field: str) -> dict[str, Any]:
    """Describe an error whose answer has one field. FastAPI would rebuild a model for every route."""
    schema = {"type": "object", "properties": {field: {"type": "string"}}, "required": [field]}
    return {"description": description, "content": {"application/json": {"schema": schema}}}


ERRORS: dict[int | str, dict[str, Any]] = {status: failure(text, "error") for status, text in STATUSES.items()}


def described(answer: Any, body: type[Body] | None = None, *, status: int = 200) -> dict[str, Any]:
    """Return arguments of a FastAPI route: its `answer`, a type or a description, and the schema of its body."""
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
