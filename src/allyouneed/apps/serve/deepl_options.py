"""What a request to DeepL's API asks for besides its languages: tags, sentences, formality; and what is refused."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..documents.unit import TagRules
from .document_requests import Markup
from .refusals import Refusal
from .request_fields import Fields

# Left out, these would change a translation in a way that its reader may not notice.
_UNSUPPORTED = ("custom_instructions", "style_id", "translation_memory_id")
_MODES = {"": "", "1": "1", "True": "1", "0": "0", "False": "0", "nonewlines": "nonewlines"}


@dataclass(frozen=True, slots=True)
class SentenceOptions:
    """How the texts of a request are split: at lines and sentences, at sentences, or not at all."""

    split_lines: bool
    split_sentences: bool
    markup: Markup | None

    def prepared(self, texts: Sequence[str]) -> list[str]:
        """The texts as they are to be translated: where lines do not end sentences, a line break is a blank."""
        return [text if self.split_lines or self.markup else re.sub(r"\r\n?|\n", " ", text) for text in texts]


def read_sentence_options(fields: Fields) -> SentenceOptions:
    """How the texts of /v2/translate are split, and what their tags mean, which DeepL's options for tags say.

    Without `tag_handling` a tag is text like any other, and the options for tags have no meaning.
    """
    split_sentences, handling = fields.get("split_sentences"), fields.text("tag_handling")
    if handling not in ("", "html", "xml"):
        raise Refusal(400, "Bad request: Value for 'tag_handling' not supported.")
    mode = _MODES.get("" if split_sentences is None else str(split_sentences))
    if mode is None:
        raise Refusal(400, "Bad request: Value for 'split_sentences' not supported.")
    split_lines, split_sentences = mode == "1" or (mode == "" and handling != "html"), mode != "0"
    if not handling:
        return SentenceOptions(split_lines, split_sentences, None)
    outline = fields.get("outline_detection") in (None, "") or fields.flag("outline_detection")
    ignored, splitting, non_splitting = (
        _names(fields, name) for name in ("ignore_tags", "splitting_tags", "non_splitting_tags")
    )
    rules = TagRules(ignored, splitting, non_splitting, outline)
    markup = Markup("html" if handling == "html" else "xml", rules, keep_lines=split_lines)
    return SentenceOptions(split_lines, split_sentences, markup)


def refuse_unsupported(fields: Fields) -> None:
    """Refuse what no model here can do. `prefer_more` and `prefer_less` accept a language without formality."""
    formality = fields.text("formality")
    if formality in ("more", "less"):
        raise Refusal(400, "Bad request: 'formality' is not supported for given 'target_lang'.")
    if formality not in ("", "default", "prefer_more", "prefer_less"):
        raise Refusal(400, "Bad request: Value for 'formality' not supported.")
    for name in _UNSUPPORTED:
        if fields.get(name) not in (None, "", []):
            raise Refusal(400, f"Bad request: '{name}' is not supported by this server.")


def _names(fields: Fields, name: str) -> frozenset[str]:
    """The names of tags in a field: a list, or in a form also separated by commas."""
    names = (part.strip() for value in fields.all_texts(name) or () for part in value.split(","))
    return frozenset(filter(None, names))
