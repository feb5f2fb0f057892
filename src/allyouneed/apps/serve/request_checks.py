"""What a request must have, with the words of LibreTranslate for what it lacks."""

import math
from collections.abc import Collection, Sequence

from ...files import parse_json
from .language_codes import find_code
from .models import ModelStore
from .options import ServeConfig
from .refusals import Refusal
from .request_fields import Fields


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


def known_codes(models: ModelStore) -> list[str]:
    """Every language that some model reads or writes, the sources first."""
    languages = models.languages()
    return list(dict.fromkeys([one.code for one in languages] + [code for one in languages for code in one.targets]))


def require_code(code: str, served: Collection[str]) -> str:
    """The served code that a client means. Refuses a language that no model reads or writes."""
    match = find_code(code, served)
    if match is None:
        raise Refusal(400, f"{code.strip().lower()[:40]} is not supported")
    return match


def finite(number: float) -> float | None:
    """A number, or None for one that JSON cannot write."""
    return round(number, 4) if math.isfinite(number) else None
