import babel
import pytest

from allyouneed.config.language_names import FOREIGN_NAMES
from allyouneed.config.language_tags import find_language, guess_languages, language_name, parse_pair, require_language
from allyouneed.errors import ConfigError


@pytest.mark.parametrize(
    ("pair", "languages"),
    [
        ("en-it", ("en", "it")), ("pt-BR-en", ("pt-BR", "en")), ("en-pt-BR", ("en", "pt-BR")),
        ("zh-Hant-TW-en", ("zh-Hant-TW", "en")), ("sr-Latn:en", ("sr-Latn", "en")), ("es-419-en", ("es-419", "en")),
    ],
)  # fmt: skip
def test_a_pair_is_two_tags(pair: str, languages: tuple[str, str]) -> None:
    assert parse_pair(pair) == languages


@pytest.mark.parametrize("pair", ["", "en", "en-", "english and italian", "e-it", "en:it:de"])
def test_what_is_no_pair_is_refused(pair: str) -> None:
    with pytest.raises(ConfigError):
        parse_pair(pair)


def test_a_name_is_that_of_the_tag_or_of_its_language() -> None:
    assert [language_name(tag) for tag in ("it", "pt-BR", "de-CH", "xx")] == [
        "Italian", "Portuguese (Brazil)", "German", "xx",
    ]  # fmt: skip


def test_a_tag_has_letters_figures_and_hyphens() -> None:
    require_language("data.source_language", "zh-Hans")
    with pytest.raises(ConfigError, match="source_language"):
        require_language("data.source_language", "en_US")


def test_languages_are_guessed_only_where_the_names_are_clear() -> None:
    assert guess_languages(["corpus/train.en", "corpus/train.it.gz"]) == ("en", "it")
    assert guess_languages("memory.tmx", ["en", "it"]) == ("en", "it")
    assert guess_languages(["train.lc.norm.tok.en", "train.lc.norm.tok.de"]) == ("en", "de")
    for files in ("train.en", ["source.txt", "target.txt"], ["a.en", "b.en"], ["a.en", "b.csv"], ["a", "b"], ()):
        assert guess_languages(files) is None


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("en", "en"), ("EN", "en"), ("en_us", "en-US"), ("zh-hans", "zh-Hans"), ("English", "en"), ("ITALIANO", "it"),
        ("Portuguese (Brazil)", "pt-BR"), (" Deutsch ", "de"), ("Englisch", "en"), ("中文", "zh"), ("x", ""), ("", ""),
        ("en-nonsense-here", ""), ("status", ""),
        ("Italienisch", "it"), ("tedesco", "de"), ("ANGLAIS", "en"), ("французский", "fr"), ("英語", "en"),
    ],
)  # fmt: skip
def test_a_language_is_found_by_its_tag_or_name(text: str, tag: str) -> None:
    assert find_language(text) == tag


def test_names_in_other_languages_are_those_of_unicode() -> None:
    languages = [babel.Locale(code).languages for code in ("de", "fr", "it", "es", "pt", "nl", "pl", "ru", "sv")]
    for tag, names in FOREIGN_NAMES.items():
        known = {table.get(tag.replace("-", "_")) for table in languages}
        assert tag == "en" or {*names.split(", ")} <= known
        assert {find_language(name) for name in names.split(", ")} == {tag}
