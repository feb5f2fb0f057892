"""Programs that speak LibreTranslate's or DeepL's API, against a running server: their libraries, or their requests.

The requests of Mastodon, Discourse, Weblate and Subtitle Edit are written as these programs write them.
"""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import deepl
import httpx
import pytest
from deepl.api_data import MultilingualGlossaryDictionaryEntries
from libretranslatepy import LibreTranslateAPI

from allyouneed.apps.serve.keys import add_key
from serve.live import running
from serve.stub import stub_app

PAIRS = ("en:it", "it:en", "de:it", "en:pt")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running(stub_app(*PAIRS)) as url:
        yield url


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Run a server that requires a key, and a key of 100 characters a day."""
    path = tmp_path_factory.mktemp("keys") / "keys.json"
    key = add_key(path, "test", characters_per_day=100)
    with running(stub_app(*PAIRS, keys=str(path))) as url:
        yield url, key


@pytest.fixture
def translator(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[deepl.DeepLClient]:
    monkeypatch.setattr(deepl.http_client, "max_network_retries", 0)
    with closing(deepl.DeepLClient("any", server_url=url)) as client:
        yield client


def test_libretranslatepy(url: str) -> None:
    client = LibreTranslateAPI(url)
    assert client.translate("Hello World", "en", "it") == "hELLO wORLD"
    assert client.detect("Wo ist der nächste Bahnhof?")[0]["language"] == "de"
    assert {language["code"] for language in client.languages()} == {"en", "it", "de", "pt"}


def test_libretranslatepy_with_a_key(keyed: tuple[str, str]) -> None:
    url, key = keyed
    assert LibreTranslateAPI(url, key).translate("Hello", "en", "it") == "hELLO"
    with pytest.raises(Exception, match="400") as no_key:
        LibreTranslateAPI(url).translate("Hello", "en", "it")
    assert "API key" in json.load(no_key.value)["error"]  # type: ignore[arg-type]
    with pytest.raises(Exception, match="403") as wrong_key:
        LibreTranslateAPI(url, key + "x").translate("Hello", "en", "it")
    assert json.load(wrong_key.value) == {"error": "Invalid API key"}  # type: ignore[arg-type]


def test_mastodon(url: str) -> None:
    languages = httpx.get(f"{url}/languages").json()
    assert {one["code"]: one["targets"] for one in languages}["en"] == ["it", "pt"]
    body = {"q": ["<p>Hello</p>", "World &amp; all"], "source": "en", "target": "it", "format": "html", "api_key": None}
    answer = httpx.post(f"{url}/translate", content=json.dumps(body), headers={"Content-Type": "application/json"})
    assert answer.json() == {"translatedText": ["<p>hELLO</p>", "wORLD &amp; ALL"]}
    body |= {"q": "<p>Wo ist der nächste Bahnhof?</p>", "source": "auto"}  # a post without a language
    answer = httpx.post(f"{url}/translate", content=json.dumps(body), headers={"Content-Type": "application/json"})
    assert answer.json()["translatedText"] == "<p>wO IST DER NÄCHSTE bAHNHOF?</p>"


def test_weblate(url: str) -> None:
    assert "it" in [one["code"] for one in httpx.get(f"{url}/languages").json()]
    one_text = httpx.post(f"{url}/translate", data={"api_key": "", "q": "Hello", "source": "en", "target": "it"})
    assert one_text.json()["translatedText"] == "hELLO"
    batch = {"api_key": "", "q": ["Hello", "World %d"], "source": "en", "target": "it"}
    assert httpx.post(f"{url}/translate", json=batch).json()["translatedText"] == ["hELLO", "wORLD %D"]


def test_discourse(url: str) -> None:
    text = "Wo ist der nächste Bahnhof?"
    detected = httpx.post(f"{url}/detect", data={"q": text, "api_key": ""}).json()[0]["language"]
    assert detected in [one["code"] for one in httpx.get(f"{url}/languages").json()]
    form = {"q": f"<p>{text}</p>", "source": detected, "target": "it", "format": "html", "api_key": ""}
    assert httpx.post(f"{url}/translate", data=form).json()["translatedText"] == f"<p>{text.swapcase()}</p>"


def test_subtitle_edit(keyed: tuple[str, str]) -> None:
    url, key = keyed
    # Between the target and the key it writes no comma.
    body = f'{{"q": "Hello \\"api_key\\": 1", "source": "en", "target": "it" "api_key": "{key}" }}'
    answer = httpx.post(f"{url}/translate", content=body, headers={"Content-Type": "application/json; charset=utf-8"})
    assert answer.json() == {"translatedText": 'hELLO "API_KEY": 1'}


def test_the_page_of_libretranslate(url: str) -> None:
    settings = httpx.get(f"{url}/frontend/settings").json()
    assert settings["language"]["source"]["code"] == "auto"
    form = {"q": "Where is the house?", "source": "auto", "target": "it", "format": "text", "alternatives": "3"}
    answer = httpx.post(f"{url}/translate", files={name: (None, value) for name, value in form.items()}).json()
    assert answer["detectedLanguage"]["language"] == "en"
    assert len(answer["alternatives"]) == 3


def test_deepl_translates_texts(translator: deepl.DeepLClient) -> None:
    result = translator.translate_text("Hello World", source_lang="EN", target_lang="IT")
    assert isinstance(result, deepl.TextResult)
    assert (result.text, result.detected_source_lang, result.billed_characters) == ("hELLO wORLD", "EN", 11)
    results = translator.translate_text(["Wo ist der Bahnhof?", "Where is the house?"], target_lang="IT")
    assert isinstance(results, list)
    assert [(one.text, one.detected_source_lang) for one in results] == [
        ("wO IST DER bAHNHOF?", "DE"),
        ("wHERE IS THE HOUSE?", "EN"),
    ]


def test_deepl_splits_at_lines_or_not(translator: deepl.DeepLClient) -> None:
    def translate(mode: str, end: str = "\n") -> str:
        result = translator.translate_text(f"Hello{end}World", source_lang="EN", target_lang="IT", split_sentences=mode)
        assert isinstance(result, deepl.TextResult)
        return result.text

    assert [translate(mode) for mode in ("1", "nonewlines", "0")] == ["hELLO\nwORLD", "hELLO wORLD", "hELLO wORLD"]
    assert [translate(mode, "\r\n") for mode in ("nonewlines", "0")] == ["hELLO wORLD", "hELLO wORLD"]


@pytest.mark.parametrize("handling", ["html", "xml"])
def test_deepl_keeps_tags(translator: deepl.DeepLClient, handling: str) -> None:
    text = 'Hello <Name id="1">World</Name>. <br/>And more'
    result = translator.translate_text(text, source_lang="EN", target_lang="IT", tag_handling=handling)
    assert isinstance(result, deepl.TextResult)
    assert result.text == 'hELLO <Name id="1">wORLD</Name>. <br/>aND MORE'


def test_deepl_rules_for_tags(translator: deepl.DeepLClient) -> None:
    def translate(text: str, handling: str = "xml", **options: Any) -> str:
        result = translator.translate_text(text, source_lang="EN", target_lang="IT", tag_handling=handling, **options)
        assert isinstance(result, deepl.TextResult)
        return result.text

    for handling in ("html", "xml"):
        assert translate("Open <x>the Page</x> now", handling, ignore_tags="x,y") == "oPEN <x>the Page</x> NOW"
    # The model of this server cannot read this sentence; what is around it, it can.
    split: dict[str, Any] = {"outline_detection": False, "splitting_tags": ["par"], "non_splitting_tags": ["seg"]}
    assert (
        translate("<par>refuse</par><par>!</par> <seg>a</seg>", **split) == "<par>REFUSE</par><par>!</par> <seg>A</seg>"
    )
    with pytest.raises(deepl.DeepLException, match="vocabulary"):
        translate("<seg>refuse</seg><seg>!</seg>", outline_detection=False)
    assert translate("<p>One\ntwo</p>") == "<p>oNE\nTWO</p>"
    assert translate("<p>One\ntwo</p>", split_sentences="nonewlines") == "<p>oNE TWO</p>"
    with pytest.raises(deepl.DeepLException, match="vocabulary"):
        translate("<p>refuse!</p>", split_sentences="0")


def test_deepl_formality_that_is_only_preferred_is_accepted(translator: deepl.DeepLClient) -> None:
    for formality in ("default", "prefer_more", "prefer_less"):
        assert translator.translate_text("Hello", source_lang="EN", target_lang="IT", formality=formality, context="x")
    for formality in ("more", "less"):
        with pytest.raises(deepl.DeepLException, match="'formality' .*'target_lang'"):
            translator.translate_text("Hello", target_lang="IT", formality=formality)
    assert not any(language.supports_formality for language in translator.get_target_languages())


def test_deepl_refuses_options_that_would_change_the_translation(translator: deepl.DeepLClient) -> None:
    for options in ({"custom_instructions": ["short"]}, {"style_rule": "x"}, {"translation_memory": "x"}):
        with pytest.raises(deepl.DeepLException, match="this server"):
            translator.translate_text("Hello", target_lang="IT", **options)


def test_deepl_lists_languages(translator: deepl.DeepLClient) -> None:
    assert {one.code: one.name for one in translator.get_source_languages()} == {
        "EN": "English", "IT": "Italian", "DE": "German",
    }  # fmt: skip
    targets = [one.code for one in translator.get_target_languages()]
    assert sorted(targets) == ["EN-GB", "EN-US", "IT", "PT-BR", "PT-PT"]
    for target in targets:
        source = "IT" if target.startswith("EN") else "EN"
        assert translator.translate_text("Hello", source_lang=source, target_lang=target)


def test_deepl_glossaries_of_one_pair(translator: deepl.DeepLClient) -> None:
    made = translator.create_glossary("ours", "EN", "IT", {"house": "Casa", "tree": "Albero"})
    assert (made.name, made.ready, made.source_lang, made.target_lang, made.entry_count) == (
        "ours",
        True,
        "EN",
        "IT",
        2,
    )
    assert translator.get_glossary_entries(made) == {"house": "Casa", "tree": "Albero"}
    assert made.glossary_id in [one.glossary_id for one in translator.list_glossaries()]
    assert translator.get_glossary(made.glossary_id).creation_time == made.creation_time
    result = translator.translate_text("the house", source_lang="EN", target_lang="IT", glossary=made)
    assert isinstance(result, deepl.TextResult)
    assert result.text == "THE Casa"
    csv = translator.create_glossary_from_csv("csv", "EN", "IT", '"a, b",c\nd,e,en,it\n')
    assert translator.get_glossary_entries(csv) == {"a, b": "c", "d": "e"}
    translator.delete_glossary(made)
    with pytest.raises(deepl.GlossaryNotFoundException):
        translator.get_glossary(made.glossary_id)
    with pytest.raises(deepl.DeepLException, match="not found"):
        translator.translate_text("the house", source_lang="EN", target_lang="IT", glossary=made)
    assert ("EN", "IT") in [
        (pair.source_lang.upper(), pair.target_lang.upper()) for pair in translator.get_glossary_languages()
    ]


def test_deepl_glossaries_of_several_pairs(translator: deepl.DeepLClient) -> None:
    entries = MultilingualGlossaryDictionaryEntries
    made = translator.create_multilingual_glossary(
        "both", [entries("EN", "IT", {"house": "Casa"}), entries("IT", "EN", {"casa": "House"})]
    )
    assert [(one.source_lang, one.target_lang, one.entry_count) for one in made.dictionaries] == [
        ("EN", "IT", 1), ("IT", "EN", 1),
    ]  # fmt: skip
    result = translator.translate_text("casa", source_lang="IT", target_lang="EN-GB", glossary=made)
    assert isinstance(result, deepl.TextResult)
    assert result.text == "House"
    translator.update_multilingual_glossary_dictionary(made, entries("EN", "IT", {"tree": "Albero"}))
    (dictionary,) = translator.get_multilingual_glossary_entries(made, "EN", "IT").dictionaries
    assert str(dictionary.entries) == "house\tCasa\ntree\tAlbero"
    replaced = translator.replace_multilingual_glossary_dictionary(made, entries("EN", "IT", {"a": "b"}))
    assert replaced.entry_count == 1
    assert translator.update_multilingual_glossary_name(made, "new name").name == "new name"
    translator.delete_multilingual_glossary_dictionary(made, source_lang="IT", target_lang="EN")
    assert len(translator.get_multilingual_glossary(made.glossary_id).dictionaries) == 1
    assert made.glossary_id in [one.glossary_id for one in translator.list_multilingual_glossaries()]
    translator.delete_multilingual_glossary(made)
    with pytest.raises(deepl.GlossaryNotFoundException):
        translator.get_multilingual_glossary(made.glossary_id)


def test_deepl_counts_characters_and_refuses_more_than_the_quota(
    keyed: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deepl.http_client, "max_network_retries", 0)
    url, key = keyed
    with closing(deepl.DeepLClient(key, server_url=url)) as client:
        before = client.get_usage().character
        client.translate_text("Hello", source_lang="EN", target_lang="IT")
        after = client.get_usage().character
        assert (after.count, after.limit) == ((before.count or 0) + 5, 100)
        with pytest.raises(deepl.QuotaExceededException):
            client.translate_text("a" * 101, source_lang="EN", target_lang="IT")
    with (
        closing(deepl.DeepLClient("wrong", server_url=url)) as stranger,
        pytest.raises(deepl.AuthorizationException, match="API key"),
    ):
        stranger.get_usage()


def test_deepl_refuses_what_is_wrong(translator: deepl.DeepLClient) -> None:
    with pytest.raises(deepl.DeepLException, match="'target_lang' not supported"):
        translator.translate_text("Hello", target_lang="XX")
    with pytest.raises(deepl.DeepLException, match="target language"):
        translator.translate_text("Hello", source_lang="DE", target_lang="PT-PT")
    with pytest.raises(deepl.DeepLException, match="413"):
        translator.translate_text("a" * 2**22, target_lang="IT")


def test_deepl_form_requests_repeat_the_text(url: str) -> None:
    answer = httpx.post(
        f"{url}/v2/translate",
        data={"text": ["Hello", "World"], "target_lang": "IT", "source_lang": "EN", "auth_key": "any"},
    )
    assert [one["text"] for one in answer.json()["translations"]] == ["hELLO", "wORLD"]


def test_glossaries_belong_to_their_key(tmp_path: Path) -> None:
    one, other = add_key(tmp_path / "keys", "one"), add_key(tmp_path / "keys", "other")
    with running(stub_app(keys=str(tmp_path / "keys"), glossaries=str(tmp_path / "glossaries.sqlite"))) as url:
        with closing(deepl.DeepLClient(one, server_url=url)) as client:
            made = client.create_glossary("ours", "EN", "IT", {"house": "Casa"})
        with closing(deepl.DeepLClient(other, server_url=url)) as client:
            assert client.list_glossaries() == []
            with pytest.raises(deepl.GlossaryNotFoundException):
                client.delete_glossary(made)
    with (
        running(stub_app(keys=str(tmp_path / "keys"), glossaries=str(tmp_path / "glossaries.sqlite"))) as url,
        closing(deepl.DeepLClient(one, server_url=url)) as client,
    ):
        assert [glossary.name for glossary in client.list_glossaries()] == ["ours"]
