"""The languages of a run: those of its recipe, of the names of its files, or of the model it starts from."""

from pathlib import Path

from ..bundle import read_languages
from ..config import CorpusConfig, DataConfig, Recipe
from ..data.readers import read_columns
from ..errors import AllYouNeedError, BundleError
from ..language_tags import guess_languages

UNKNOWN = ("", "")


def find_languages(recipe: Recipe) -> tuple[tuple[str, str], str]:
    """The source and the target language, empty if they are unknown, and a message if they are not the recipe's."""
    data = recipe.data
    if data.source_language:
        return (data.source_language, data.target_language), ""
    for corpus in data.corpora()[:1]:
        if guess := guess_languages(corpus.train, corpus.columns or _heading(data, corpus)):
            return guess, f"{guess[0]} → {guess[1]}, by the names of the data; --languages sets others"
    if recipe.train.init_from:
        try:
            languages = read_languages(recipe.train.init_from)
        except BundleError:  # of a run that is resumed, when that model is gone
            return UNKNOWN, ""
        message = f"{languages[0]} → {languages[1]}, as {Path(recipe.train.init_from)}"
        return languages, message if any(languages) else ""
    return UNKNOWN, ""


def _heading(data: DataConfig, corpus: CorpusConfig) -> tuple[str, ...]:
    if not corpus.train:
        return ()
    try:
        known = read_columns(corpus.train, folder=data.data_dir, sheet=corpus.sheet)
    except AllYouNeedError:  # of a run that is resumed, when its pairs are gone
        return ()
    return known.names if known else ()
