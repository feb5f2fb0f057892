from functools import cache

import pytest

from allyouneed.apps.serve.languages import Detector, find_code, is_untranslatable
from allyouneed.apps.serve.options import ServeConfig
from serve.stub import StubModels


@pytest.mark.parametrize(
    ("code", "served", "expected"),
    [
        ("en", ["en", "it"], "en"),
        ("EN", ["en", "it"], "en"),
        (" it ", ["en", "it"], "it"),
        ("en-GB", ["en"], "en"),
        ("pt_BR", ["pt"], "pt"),
        ("pb", ["pt", "pt-BR"], "pt-BR"),
        ("pt", ["pt", "pt-BR"], "pt"),
        ("pt", ["pt-BR"], "pt-BR"),
        ("pt", ["pt-BR", "pt-PT"], None),  # which of the two is not clear
        ("zh", ["zh-Hans", "zh-Hant"], "zh-Hans"),
        ("zt", ["zh-Hans", "zh-Hant"], "zh-Hant"),
        ("zh-TW", ["zh-Hans", "zh-Hant"], "zh-Hant"),
        ("nb", ["no"], "no"),
        ("de", ["en", "it"], None),
        ("", ["en"], None),
        ("auto", ["en"], None),
    ],
)
def test_a_client_may_write_a_code_in_its_own_way(code: str, served: list[str], expected: str | None) -> None:
    assert find_code(code, served) == expected


@cache
def detector(*languages: str) -> Detector:
    """Make the detector of a server whose models read and write these languages."""
    pairs = [f"{language}:{language}" for language in languages]
    return Detector(StubModels(pairs, ServeConfig()))


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Where is the next train station?", "en"),
        ("Dove si trova la prossima stazione?", "it"),
        ("Wo ist der nächste Bahnhof?", "de"),
        ("WO IST DER NÄCHSTE BAHNHOF?", "de"),
    ],
)
def test_the_language_of_a_sentence_comes_first(text: str, language: str) -> None:
    detections = detector("en", "it", "de").detect(text)
    assert detections[0].language == language
    assert {one.language for one in detections} >= {"en", "it", "de"}
    assert sum(one.confidence for one in detections) == pytest.approx(100, abs=0.3)
    assert [one.confidence for one in detections] == sorted((one.confidence for one in detections), reverse=True)


@pytest.mark.parametrize("text", ["", " \n", "12,5 %", "🙂 👍🏽", "1845-01-05", "?!"])
def test_a_text_without_words_has_no_language(text: str) -> None:
    assert detector("en", "it").detect(text) == []


def test_a_language_is_known_whatever_the_models_read() -> None:
    for languages in ([], ["en"], ["en", "it"], ["xx"]):
        first = detector(*languages).detect("これは私たちの新しい家です。")[0]
        assert (first.language, first.confidence > 99) == ("ja", True)


def test_of_few_words_the_languages_of_the_models_are_likelier() -> None:
    assert detector("en", "it").detect("I am hungry.")[0].language == "en"
    assert detector("cy", "it").detect("I am hungry.")[0].language == "cy"


def test_chinese_is_told_apart_by_its_script() -> None:
    chinese = detector("en", "zh-Hans", "zh-Hant")
    assert chinese.detect("汉语是一种语言,现在我们学习写字。")[0].language == "zh-Hans"
    assert chinese.detect("漢語是一種語言,現在我們學習寫字。")[0].language == "zh-Hant"


def test_the_beginning_of_a_long_text_is_enough() -> None:
    assert detector("en", "it").detect("Where is the house? " * 100_000)[0].language == "en"


def test_emoji_and_symbols_have_nothing_to_translate() -> None:
    assert all(map(is_untranslatable, ["🙂", "👩‍👩‍👧 ❤️", "🇮🇹 ✨", " "]))
    assert not any(map(is_untranslatable, ["🙂 ok", "42"]))


@pytest.mark.parametrize(
    ("text", "source", "is_sure"),
    [
        ("Where is the next train station?", "en", True),
        ("La casa è grande e il file è aperto.", "it", True),  # the target: it stays as it is
        ("Wo ist der nächste Bahnhof?", "en", False),
        ("これは私たちの新しい家です。", "en", False),
        ("42", "en", False),
    ],
)
def test_one_model_is_no_reason_to_call_a_text_english(text: str, source: str, is_sure: bool) -> None:
    models = StubModels(["en:it"], ServeConfig())
    detection = Detector(models).find_source(text, "it")
    assert (detection.language, detection.confidence > 50) == (source, is_sure)


@pytest.mark.parametrize("pairs", [("en:it",), ("en:it", "it:en"), ("de:it", "en:it", "it:de")])
def test_a_short_text_is_of_the_source_unless_it_is_surely_of_the_target(pairs: tuple[str, ...]) -> None:
    one = Detector(StubModels(pairs, ServeConfig()))
    for text in ("Save", "Edit", "Error", "Login", "No data", "Due date", "Success", "Cart"):
        if len(pairs) < 3:
            assert one.find_source(text, "it").language == "en"
        else:
            assert one.find_source(text, "it").language in ("en", "de")
    for text in ("Impostazioni", "Seleziona tutto", "Non trovato"):
        assert one.find_source(text, "it").language == "it"
