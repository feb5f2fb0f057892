"""The fields of a request, which a client may put into a JSON object, a form, or the query string."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl

from fastapi import Request
from starlette.datastructures import UploadFile

from ...machine.files import parse_json
from .languages import find_code
from .options import ServeConfig
from .refusals import Refusal

if TYPE_CHECKING:
    from .models import ModelStore

_FORM, _MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
_MAX_FORM_FIELDS, _MAX_FILES = 1000, 4
# Subtitle Edit omits the comma before the key: {"q": "…", "target": "it" "api_key": "…"}.
_MISSING_COMMA = re.compile(r'(?<!\\)"\s*("api_key"\s*:)')


class UploadedFile(NamedTuple):
    """A file in a form: the name that the client gives it, and its bytes."""

    filename: str
    content: bytes


class Fields:
    """The fields of a request by name. A repeated field has several values."""

    def __init__(self, values: Mapping[str, list[object]]) -> None:
        self._values = values

    def every(self, name: str) -> list[object]:
        """Return the values of a field. Only JSON can give numbers, lists and objects."""
        return self._values.get(name, [])

    def text(self, name: str) -> str:
        """Return the value of a text field; "" if it is missing, null or not text."""
        value = next(iter(self.every(name)), "")
        return value if isinstance(value, str) else ""


async def read_fields(request: Request) -> Fields:
    """Read the fields of a request. The query string has precedence over a form, as in LibreTranslate.

    Line ends in a form become line feeds. Refuses malformed JSON, JSON other than an object, and text that is not
    Unicode.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    values: dict[str, list[object]] = {}
    if kind == "application/json" or kind.endswith("+json"):
        body = await request.body()
        values = {name: [value] for name, value in _json_object(body).items()} if body.strip() else {}
    else:
        form: list[tuple[str, str | UploadedFile]] = []
        if kind == _FORM:
            form = [*_parse_form(await request.body())]
        elif kind == _MULTIPART:
            form = await _read_multipart(request)
        for name, value in (*request.query_params.multi_items(), *form):
            values.setdefault(name, []).append(value.replace("\r\n", "\n") if isinstance(value, str) else value)
    files_apart = {name: [one for one in some if not isinstance(one, UploadedFile)] for name, some in values.items()}
    require_unicode(files_apart)
    return Fields(values)


def _parse_form(body: bytes) -> list[tuple[str, str]]:
    """Parse the fields of a form, even if a client like curl leaves characters beyond ASCII unescaped, in UTF-8."""
    try:
        return parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=_MAX_FORM_FIELDS)
    except ValueError:
        raise Refusal(400, f"Invalid request: a form of more than {_MAX_FORM_FIELDS} fields") from None


async def _read_multipart(request: Request) -> list[tuple[str, str | UploadedFile]]:
    async with request.form(max_files=_MAX_FILES, max_fields=_MAX_FORM_FIELDS) as fields:
        return [
            (name, UploadedFile(value.filename or "", await value.read()) if isinstance(value, UploadFile) else value)
            for name, value in fields.multi_items()
        ]


def _json_object(body: bytes) -> dict[str, object]:
    try:
        text = body.decode("utf-8-sig")
        try:
            value = parse_json(text)
        except ValueError:
            value = parse_json(_MISSING_COMMA.sub(r'", \1', text, count=1))
    except UnicodeDecodeError as error:
        raise Refusal(400, f"Invalid JSON format: not UTF-8 at byte {error.start + 1}") from None
    except ValueError as error:
        raise Refusal(400, f"Invalid JSON format: the body {error}") from None
    if not isinstance(value, dict):
        raise Refusal(400, "Invalid JSON format")
    return value


def require_unicode(values: object) -> None:
    """Refuse JSON with a text that is not Unicode."""
    try:
        json.dumps(values, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Refusal(400, "Invalid request: a text has half of a surrogate pair, which is not a character") from None
    except RecursionError:
        raise Refusal(400, "Invalid JSON format: it is nested too deeply") from None


def refuse_too_much(texts: Sequence[str], config: ServeConfig) -> None:
    """Refuse more texts than `config.max_texts`, and a text of more than `config.max_characters`."""
    sizes = [(len(texts), config.max_texts), (max(map(len, texts), default=0), config.max_characters)]
    for size, limit in sizes:
        if limit and size > limit:
            raise Refusal(400, f"Invalid request: request ({size}) exceeds text limit ({limit})")


def checked_count(number: int, name: str, *, limit: int) -> int:
    """Return the number. Refuses a number above the limit."""
    if number > limit:
        raise Refusal(400, f"Invalid request: {name} parameter must be <= {limit}")
    return number


def checked_terms(terms: dict[str, str], config: ServeConfig) -> tuple[tuple[str, str], ...]:
    """Return the terms, sorted so that equal glossaries share batches. Refuses blank terms, and too many terms."""
    if len(terms) > config.max_terms:
        raise Refusal(400, too_many_terms(len(terms), config.max_terms))
    if not all(term.strip() and translation.strip() for term, translation in terms.items()):
        raise Refusal(400, "Invalid request: a glossary needs a term and a translation in each entry")
    return tuple(sorted((" ".join(term.split()), " ".join(text.split())) for term, text in terms.items()))


def too_many_terms(count: int, limit: int) -> str:
    """Return the message that refuses a glossary with too many terms."""
    return f"Invalid request: glossary ({count}) exceeds the limit of terms ({limit})"


def require_code(code: str, models: "ModelStore") -> str:
    """Return the served code that a client means. Refuses a language that no model reads or writes."""
    match = find_code(code, models.codes())
    if match is None:
        raise Refusal(400, f"{code.strip().lower()[:40]} is not supported; {models.listed()}")
    return match
