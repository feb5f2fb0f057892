"""The models of a server: bundles by language pair, each loaded when it is first used."""

import re
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ..bundle import read_languages
from ..errors import ConfigError, LanguageError
from ..translator import Translator
from .options import ServeConfig


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
        source, target = parse_pair(pair) if pair else read_languages(folder)
        if not (source and target):
            raise ConfigError(
                f"{folder} does not say which languages it translates; name them: {folder}=en-it (or with dates, "
                f"sums and the like, any two codes)"
            )
        return cls(ModelKey(source, target), Path(folder))


_PAIR = re.compile(r"([A-Za-z]{2,8}(?:-[A-Za-z]{4})?(?:-[A-Z]{2}|-\d{3})?)[-:]([A-Za-z]{2,8}(?:-[A-Za-z0-9]+)*)")


def parse_pair(pair: str) -> ModelKey:
    """Read "en-it", or "en:pt-BR"."""
    match = _PAIR.fullmatch(pair)
    if not match:
        raise ConfigError(f'languages are two codes, like "en-it" or "en:pt-BR"; got {pair!r}')
    return ModelKey(*match.groups())


class ModelStore:
    """The models by language pair. Any thread may call it."""

    def __init__(
        self, sources: Iterable[ModelSource], config: ServeConfig, decode: Mapping[str, Any] | None = None
    ) -> None:
        self._sources: dict[ModelKey, ModelSource] = {}
        for source in sources:
            if other := self._sources.get(source.key):
                raise ConfigError(f"{other.folder} and {source.folder} both translate {source.key}; serve one of them")
            self._sources[source.key] = source
        if not self._sources:
            raise ConfigError("a server needs at least one bundle")
        self._config, self._decode = config, dict(decode or {})
        self._loaded: dict[ModelKey, Translator] = {}
        self._lock = threading.Lock()

    def pairs(self) -> list[ModelKey]:
        """Every pair there is, in the order of the bundles."""
        return list(self._sources)

    def languages(self) -> list[Language]:
        """Every source language, with its name in English and its targets."""
        targets: dict[str, list[str]] = {}
        for source, target in self._sources:
            targets.setdefault(source, []).append(target)
        return [Language(code, language_name(code), tuple(others)) for code, others in targets.items()]

    def pair(self, source: str, target: str) -> ModelKey:
        """The key of a pair, upper or lower case. Refuses languages that no model here translates."""
        known = {code.lower(): code for key in self._sources for code in key}
        for code in (source, target):
            if code.lower() not in known:
                raise LanguageError(f"{code} is not supported")
        key = ModelKey(known[source.lower()], known[target.lower()])
        if key not in self._sources:
            raise LanguageError(
                f"{language_name(key.target)} ({key.target}) is not available as a target language from "
                f"{language_name(key.source)} ({key.source})"
            )
        return key

    def translator(self, key: ModelKey) -> Translator:
        """The translator of a pair, loaded now if it was not. Takes seconds then; call it from a worker thread."""
        with self._lock:
            if key not in self._loaded:
                self._loaded[key] = Translator.load(
                    self._sources[key].folder,
                    device=self._config.device,
                    precision=self._config.precision,
                    **self._decode,
                )
            return self._loaded[key]


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
