"""The fields of a request, wherever a client puts them: a JSON object, a form, or the query string."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import parse_qsl

from fastapi import Request
from starlette.datastructures import UploadFile

from ...files import parse_json
from .languages import find_code
from .options import ServeConfig
from .refusals import Refusal

_FORM, _MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
_MAX_FORM_FIELDS, _MAX_FILES = 1000, 4
# Subtitle Edit leaves out the comma before the key: {"q": "…", "target": "it" "api_key": "…"}.
_MISSING_COMMA = re.compile(r'(?<!\\)"\s*("api_key"\s*:)')


class UploadedFile(NamedTuple):
    """A file of a form: the name that the client gives it, and its bytes."""

    filename: str
    content: bytes


class Fields:
    """The fields of one request by name; of a field that is repeated the first value counts, or `all_texts`."""

    def __init__(self, values: Mapping[str, list[object]], *, is_json: bool) -> None:
        self._values, self.is_json = values, is_json

    def get(self, name: str) -> object:
        """The value of a field, or None; a number, list or object only in JSON."""
        values = self._values.get(name)
        return values[0] if values else None

    def text(self, name: str) -> str:
        """The value of a text field; "" if it is missing or null. Refuses any other type."""
        value = self.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise Refusal(400, f"Invalid request: {name} parameter must be a string")
        return value

    def flag(self, name: str) -> bool:
        """A yes or no: a boolean or 0 or 1 in JSON; "true", "1" or "yes" in a form; missing is no."""
        value = self.get(name)
        if isinstance(value, str):
            return value.strip().lower() in ("1", "true", "yes", "on")
        if value is None or isinstance(value, bool) or value in (0, 1):
            return bool(value)
        raise Refusal(400, f"Invalid request: {name} parameter must be true or false")

    def all_texts(self, name: str) -> list[str] | None:
        """Every value of a field that may be a list or be repeated; None if it is missing."""
        values = self._values.get(name)
        if values is None or values == [None]:
            return None
        if len(values) == 1 and isinstance(values[0], list):
            values = values[0]
        if not all(isinstance(value, str) for value in values):
            raise Refusal(400, f"Invalid request: {name} parameter must be a list of strings")
        return [str(value) for value in values]

    def upload(self, name: str) -> UploadedFile | None:
        """The file that a form sends under a name."""
        value = self.get(name)
        return value if isinstance(value, UploadedFile) else None


async def read_fields(request: Request) -> Fields:
    """The fields of a request. Of form and query string the query string has precedence, as in LibreTranslate.

    Refuses JSON that is none or no object, and text that is not Unicode.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    values: dict[str, list[object]] = {}
    is_json = kind == "application/json" or kind.endswith("+json")
    if is_json:
        body = await request.body()
        values = {name: [value] for name, value in _json_object(body).items()} if body.strip() else {}
    else:
        form: list[tuple[str, str | UploadedFile]] = []
        if kind == _FORM:
            form = [*_parse_form(await request.body())]
        elif kind == _MULTIPART:
            form = await _read_multipart(request)
        for name, value in (*request.query_params.multi_items(), *form):
            values.setdefault(name, []).append(value)
    files_apart = {name: [one for one in some if not isinstance(one, UploadedFile)] for name, some in values.items()}
    require_unicode(files_apart)
    return Fields(values, is_json=is_json)


def _parse_form(body: bytes) -> list[tuple[str, str]]:
    """The fields of a form, also where a client leaves letters beyond ASCII as they are, in UTF-8, as curl does."""
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
        raise Refusal(400, "Invalid request: a text has half of a surrogate pair, which is no character") from None
    except RecursionError:
        raise Refusal(400, "Invalid JSON format: it is nested too deeply") from None


def require_text(fields: Fields, name: str) -> str:
    """The value of a text field that must not be empty. In a form, ends of lines become line feeds."""
    value = fields.text(name)
    if not value:
        raise Refusal(400, f"Invalid request: missing {name} parameter")
    return value


def require_texts(fields: Fields, config: ServeConfig) -> tuple[list[str], bool]:
    """The texts in `q`, and whether they are a batch: a list, which only JSON has.

    Refuses none, too many (config.max_texts), and a text with too many characters (config.max_characters).
    """
    value = fields.get("q")
    if not value:
        raise Refusal(400, "Invalid request: missing q parameter")
    is_batch = isinstance(value, list)
    values = value if isinstance(value, list) else [value]
    texts = [text for text in values if isinstance(text, str)]
    if len(texts) < len(values):
        raise Refusal(400, "Invalid request: q parameter must be a string or a list of strings")
    if not fields.is_json:  # forms have CR LF at the ends of lines
        texts = [text.replace("\r\n", "\n") for text in texts]
    refuse_too_much(texts, config)
    return texts, is_batch


def refuse_too_much(texts: Sequence[str], config: ServeConfig) -> None:
    """Refuse more texts than `config.max_texts`, and a text of more than `config.max_characters`."""
    sizes = [(len(texts), config.max_texts), (max(map(len, texts), default=0), config.max_characters)]
    for size, limit in sizes:
        if limit and size > limit:
            raise Refusal(400, f"Invalid request: request ({size}) exceeds text limit ({limit})")


def read_count(fields: Fields, name: str, *, limit: int) -> int:
    """A number of at least 0, which may be written as a string; less than 0 is 0, and missing is 0."""
    value = fields.get(name)
    if value is None or value == "":
        return 0
    try:
        number = int(value) if isinstance(value, str | int) or (isinstance(value, float) and value % 1 == 0) else None
    except (ValueError, OverflowError):
        number = None
    if number is None:
        raise Refusal(400, f"Invalid request: {name} parameter is not a number")
    return checked_count(max(0, number), name, limit=limit)


def checked_count(number: int, name: str, *, limit: int) -> int:
    """The same number. Refuses one beyond a limit."""
    if number > limit:
        raise Refusal(400, f"Invalid request: {name} parameter must be <= {limit}")
    return number


def read_glossary(value: object, config: ServeConfig) -> tuple[tuple[str, str], ...]:
    """The terms of a glossary, an object of terms and their translations; in a form it is written as JSON.

    Refuses more than `config.max_terms`.
    """
    if value is None or value == "":
        return ()
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except ValueError as error:
            raise Refusal(400, f"Invalid request: glossary parameter {error}") from None
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise Refusal(400, "Invalid request: glossary parameter must be an object of terms and their translations")
    return checked_terms(value, config)


def checked_terms(terms: dict[str, str], config: ServeConfig) -> tuple[tuple[str, str], ...]:
    """The same terms, sorted, so that equal glossaries share batches. Refuses blank ones, and too many."""
    if len(terms) > config.max_terms:
        raise Refusal(400, too_many_terms(len(terms), config.max_terms))
    if not all(term.strip() and translation.strip() for term, translation in terms.items()):
        raise Refusal(400, "Invalid request: a glossary needs a term and a translation in each entry")
    return tuple(sorted((" ".join(term.split()), " ".join(text.split())) for term, text in terms.items()))


def too_many_terms(count: int, limit: int) -> str:
    """Why a glossary is refused."""
    return f"Invalid request: glossary ({count}) exceeds the limit of terms ({limit})"


def require_code(code: str, served: Collection[str]) -> str:
    """The served code that a client means. Refuses a language that no model reads or writes."""
    match = find_code(code, served)
    if match is None:
        raise Refusal(400, f"{code.strip().lower()[:40]} is not supported")
    return match
