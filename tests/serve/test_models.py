from pathlib import Path

import pytest

from allyouneed.errors import ConfigError, LanguageError
from allyouneed.serve.languages import ModelKey, ModelSource
from allyouneed.serve.models import ModelStore
from allyouneed.serve.options import ServeConfig


@pytest.fixture
def models(served: tuple[Path, Path]) -> ModelStore:
    return ModelStore([ModelSource.parse(folder) for folder in served], ServeConfig())


def test_the_languages_are_those_of_the_bundles(models: ModelStore) -> None:
    assert models.languages() == [("en", "English", ("it",)), ("it", "Italian", ("en",))]
    assert models.pair("EN", "it") == ModelKey("en", "it")


def test_a_pair_without_a_model_is_refused(models: ModelStore) -> None:
    with pytest.raises(LanguageError, match="xx is not supported"):
        models.pair("en", "xx")
    with pytest.raises(LanguageError, match="English \\(en\\) is not available as a target language from English"):
        models.pair("en", "en")


def test_two_bundles_of_one_pair_are_refused(served: tuple[Path, Path]) -> None:
    with pytest.raises(ConfigError, match="both translate en-it"):
        ModelStore([ModelSource.parse(f"{folder}=en-it") for folder in served], ServeConfig())


def test_languages_can_be_named(served: tuple[Path, Path]) -> None:
    assert ModelSource.parse(f"{served[0]}=de-pt-BR") == ModelSource(ModelKey("de", "pt-BR"), served[0])
    with pytest.raises(ConfigError, match="languages are two tags"):
        ModelSource.parse(f"{served[0]}=german")
