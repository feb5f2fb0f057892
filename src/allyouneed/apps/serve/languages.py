"""The pairs of languages that models translate, codes as clients write them, and the language of a text.

py3langid detects the language of a text, with naive Bayes over byte n-grams.
"""

import re
import unicodedata
from collections.abc import Collection, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

    from .models import ModelStore


class ModelKey(NamedTuple):
    """The pair of languages that a model translates, as BCP 47 tags; for a model without languages, its name twice."""

    source: str
    target: str

    def __str__(self) -> str:
        return self.source if self.source == self.target else f"{self.source}-{self.target}"


class Language(NamedTuple):
    """A source language, and the languages it can be translated into."""

    code: str
    name: str
    targets: tuple[str, ...]


# Codes that clients use for the same language. LibreTranslate calls Brazilian Portuguese pb, and the two forms of
# written Chinese zh and zt; iw, in and ji are the ISO codes of 1988.
_SYNONYMS: Sequence[frozenset[str]] = [
    frozenset(group.split())
    for group in (
        "pb pt-br",
        "zh zh-hans zh-cn zh-sg",
        "zt zh-hant zh-tw zh-hk",
        "no nb nb-no no-no",
        "he iw",
        "id in",
        "yi ji",
        "tl fil",
    )
]


def find_code(code: str, served: Collection[str]) -> str | None:
    """Find the served code that a client means; None if there is none.

    This is the code itself, ignoring case, or a synonym. Otherwise it is the only served code of the same language,
    with or without a region or script (`en-GB` means `en`; `pt` means `pt-BR` if no other Portuguese is served).
    """
    name = code.strip().replace("_", "-").lower()
    by_name = {served_code.lower(): served_code for served_code in served}
    if name in by_name:
        return by_name[name]
    for group in _SYNONYMS:
        if name in group and (same := sorted(group & by_name.keys())):
            return by_name[same[0]]
    language = base_language(name)
    if language in by_name:
        return by_name[language]
    variants = [other for other in by_name if base_language(other) == language]
    return by_name[variants[0]] if name == language and len(variants) == 1 else None


def base_language(code: str) -> str:
    """Return the language of a code without region or script: `pt` for `pt-BR`."""
    return code.replace("_", "-").partition("-")[0].lower()


_MAX_CHARACTERS = 4_000  # characters of a text that are read; more make no difference
# A language of the models is this many times as likely as another, because a few words say little about 140 languages.
_PRIOR = 20
# In percent. From this confidence on, a detection is believed whatever the models translate. Among 544 descriptions of
# Debian packages, of one to three words, no English text is taken for Italian with this confidence, and two thirds of
# the Italian texts are recognized.
_SURE = 80.0
_NO_WORDS = re.compile(r"[\W\d_]*")


class Detection(NamedTuple):
    """A language, and its probability among all known languages, from 0 to 100."""

    language: str
    confidence: float


class Detector:
    """Detects which of 140 languages a text is in. It expects the languages of `models` more often than others.

    Any thread may use it. The first use loads the identifier (5 MB).
    """

    def __init__(self, models: "ModelStore") -> None:
        self._models = models

    def detect(self, text: str) -> list[Detection]:
        """Detect the languages of a text, the most likely first; [] for a text without words, such as numbers."""
        if _NO_WORDS.fullmatch(text):
            return []
        identifier, languages = _load_identifier(), self._models.codes()
        codes = _codes_by_label(languages, identifier.labels)
        ranked = identifier.rank(text[:_MAX_CHARACTERS].lower())
        weights = {label: share * (_PRIOR if label in codes else 1) for label, share in ranked}
        total = sum(weights.values())
        detections = [
            Detection(_by_script(text, codes.get(label, label), languages), round(100 * weight / total, 1))
            for label, weight in sorted(weights.items(), key=lambda item: -item[1])
        ]
        return [one for one in detections if one.confidence or one.language in languages]

    def find_source(self, text: str, target: str) -> Detection:
        """Choose a text's language: one that can be translated into `target`, or `target` itself.

        A few words say little about the language ("No data" may be Italian), and people who ask for a translation
        usually have a text to translate. So a language that cannot be translated into the target is returned only if
        its detection is certain. Otherwise the result is the most likely source language for the target or, if nothing
        indicates a language, English or the first source language, with confidence 0.
        """
        languages = self._models.languages()
        sources = [one.code for one in languages]
        fitting = [one.code for one in languages if target in one.targets] or sources
        detections = self.detect(text)
        for one in detections[:1]:
            if one.confidence >= _SURE and one.language in (*sources, target):
                return one
        likely = [one for one in detections if one.language in fitting and one.confidence]
        return likely[0] if likely else Detection("en" if "en" in fitting else fitting[0], 0.0)


@cache
def _load_identifier() -> "LanguageIdentifier":
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # slow to import, and may not be needed

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def _codes_by_label(languages: Collection[str], labels: Collection[str]) -> dict[str, str]:
    """Map the identifier's names of languages to their codes. If two languages share a name, the first one counts."""
    codes: dict[str, str] = {}
    for code in languages:
        label = base_language(code)
        label = {"nb": "no", "fil": "tl", "iw": "he"}.get(label, label)
        if label in labels:
            codes.setdefault(label, code)
    return codes


def _by_script(text: str, code: str, languages: Collection[str]) -> str:
    """Choose simplified or traditional Chinese by the characters, because the identifier does not distinguish them."""
    if base_language(code) != "zh":
        return code
    simplified, traditional = (len(text.encode(codec, "ignore")) for codec in ("gb2312", "big5"))
    script = "zh-Hans" if simplified >= traditional else "zh-Hant"
    return find_code(script, languages) or code


def is_untranslatable(text: str) -> bool:
    """Return True if a text has only emoji, symbols, blanks and their modifiers, which need no translation."""
    return all(unicodedata.category(letter) in _SYMBOLS or letter in "\u200d\u20e3" for letter in text)


_SYMBOLS = {"So", "Sk", "Zs", "Mn", "Me", "Cc", "Cn"}  # general categories of Unicode
