"""Languages of models: pairs of BCP 47 tags, and their names in English."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ..bundle import read_languages
from ..errors import ConfigError


class ModelKey(NamedTuple):
    """The pair of languages that a model translates, as BCP 47 tags."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source}-{self.target}"


class Language(NamedTuple):
    """A source language, and the languages it can be translated into."""

    code: str
    name: str
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ModelSource:
    """Where a model comes from: the folder of its bundle, and its languages."""

    key: ModelKey
    folder: Path

    @classmethod
    def parse(cls, argument: str | Path) -> "ModelSource":
        """Read `BUNDLE` or `BUNDLE=en-it`. Refuses a bundle that does not say its languages where none are named."""
        folder, equals, pair = str(argument).rpartition("=")
        if not equals or Path(argument).is_dir():
            folder, pair = str(argument), ""
        languages = read_languages(folder)  # refuses what is no bundle
        source, target = parse_pair(pair) if pair else languages
        if not (source and target):
            raise ConfigError(
                f"{folder} does not say which languages it translates; name them: {folder}=en-it "
                "(for dates, sums and the like any two codes do)"
            )
        return cls(ModelKey(source, target), Path(folder))


_PAIR = re.compile(r"([A-Za-z]{2,8}(?:-[A-Za-z]{4})?(?:-[A-Z]{2}|-\d{3})?)[-:]([A-Za-z]{2,8}(?:-[A-Za-z0-9]+)*)")


def parse_pair(pair: str) -> ModelKey:
    """Read "en-it", or "en:pt-BR"."""
    match = _PAIR.fullmatch(pair)
    if not match:
        raise ConfigError(f'languages are two codes, like "en-it" or "en:pt-BR"; got {pair!r}')
    return ModelKey(*match.groups())


def language_name(code: str) -> str:
    """The English name of a language, or its code if it is not a common one."""
    return NAMES.get(code) or NAMES.get(code.partition("-")[0], code)


NAMES = {
    "ar": "Arabic", "az": "Azerbaijani", "bg": "Bulgarian", "bn": "Bengali", "bs": "Bosnian", "ca": "Catalan",
    "cs": "Czech", "cy": "Welsh", "da": "Danish", "de": "German", "el": "Greek", "en": "English", "eo": "Esperanto",
    "es": "Spanish", "et": "Estonian", "eu": "Basque", "fa": "Persian", "fi": "Finnish", "fr": "French",
    "ga": "Irish", "gl": "Galician", "he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian",
    "hy": "Armenian", "id": "Indonesian", "is": "Icelandic", "it": "Italian", "ja": "Japanese", "ka": "Georgian",
    "kk": "Kazakh", "ko": "Korean", "ky": "Kyrgyz", "la": "Latin", "lt": "Lithuanian", "lv": "Latvian",
    "mk": "Macedonian", "ms": "Malay", "mt": "Maltese", "nb": "Norwegian Bokmål", "nl": "Dutch", "nn":
    "Norwegian Nynorsk", "no": "Norwegian", "pl": "Polish", "pt": "Portuguese", "pt-BR": "Portuguese (Brazil)",
    "ro": "Romanian", "ru": "Russian", "sk": "Slovak", "sl": "Slovenian", "sq": "Albanian", "sr": "Serbian",
    "sv": "Swedish", "sw": "Swahili", "ta": "Tamil", "te": "Telugu", "th": "Thai", "tl": "Tagalog", "tr": "Turkish",
    "uk": "Ukrainian", "ur": "Urdu", "uz": "Uzbek", "vi": "Vietnamese", "zh": "Chinese",
    "zh-Hans": "Chinese (simplified)", "zh-Hant": "Chinese (traditional)",
}  # fmt: skip
