"""The languages of models: what a pair is called, and which bundle translates it."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ...bundle import read_languages
from ...errors import ConfigError
from ...files import named_folders
from ...language_tags import parse_pair


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

        Refuses a bundle that does not say its languages where none are named.
        """
        folder, equals, pair = str(argument).rpartition("=")
        if not equals or Path(argument).is_dir():
            folder, pair = str(argument), ""
        languages = read_languages(named_folders(folder)[0])  # refuses what is no bundle
        source, target = parse_pair(pair) if pair else languages
        if not (source and target):
            raise ConfigError(
                f"{folder} does not say which languages it translates; name them: {folder}=en-it "
                "(for dates, sums and the like any two codes do)"
            )
        return cls(ModelKey(source, target), Path(folder))
