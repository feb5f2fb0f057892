"""The languages of models: what a pair is called, and which bundle translates it."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from ...bundle import read_languages
from ...files import named_folders
from ...language_tags import parse_pair, with_name


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
    """Where a model comes from: the folder of its bundle, or several of an ensemble with commas, and its languages."""

    key: ModelKey
    folder: Path

    @classmethod
    def parse(cls, argument: str | Path) -> "ModelSource":
        """Read `BUNDLE` or `BUNDLE=en-it`, where BUNDLE may be the ensemble `a,b`.

        A model of no languages, such as one of dates, has the name of its folder in their place, as a private part of
        a tag: "und-x-dates".
        """
        folder, equals, pair = str(argument).rpartition("=")
        if not equals or Path(argument).is_dir():
            folder, pair = str(argument), ""
        languages = read_languages(named_folders(folder)[0])  # refuses what is no bundle
        source, target = parse_pair(pair) if pair else languages
        if not (source and target):
            source, target = (with_name(code, Path(folder).name) for code in ("und", "zxx"))
        return cls(ModelKey(source, target), Path(folder))

    def renamed(self) -> "ModelSource":
        """The same model under a source language that has the name of its folder."""
        return replace(self, key=ModelKey(with_name(self.key.source, self.folder.name), self.key.target))
