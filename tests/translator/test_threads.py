"""Many threads use one `Translator` at once, and find what one thread finds."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

from allyouneed.bundle import Bundle
from allyouneed.translator import Translator

TEXTS = ["abc", "i", "i abcd efg", "ab", "abcdefghi", "cdefg", "fghi"]
USES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"beam": 4, "nbest": 3}, {}),
    ({"beam": 1}, {"align": "words"}),
    ({"sample": True}, {}),
    ({"beam": 4}, {"align": "tokens"}),
    ({"no_repeat_ngram_size": 2, "repetition_penalty": 1.3}, {"prefix": "d"}),
    ({"glossary": {"ab": "i"}}, {}),
    ({"batch_size": 2}, {"glossary": {"c": "ff"}, "alternatives": 2}),
]


def use(translator: Translator, setting: dict[str, Any], call: dict[str, Any]) -> list[Any]:
    translations = translator.using(**setting).translations(TEXTS, **call)
    return [(one.text, one.flags, one.alignment, [other.text for other in one.alternatives]) for one in translations]


@pytest.mark.slow
def test_eight_threads_with_other_texts_and_settings_find_what_one_finds(
    spaced: Bundle,
) -> None:
    translator = Translator(spaced).using(copy_untranslatable=False)
    expected = [use(translator, *one) for one in USES]
    streamed = ["".join(translator.stream(text)) for text in TEXTS]
    scored = [one.log_probabilities for one in translator.score(zip(TEXTS, TEXTS, strict=True))]

    def work(number: int) -> None:
        for which in (number, (number + 3) % len(USES)):
            assert use(translator, *USES[which]) == expected[which]
        assert "".join(translator.stream(TEXTS[number % len(TEXTS)])) == streamed[number % len(TEXTS)]
        assert [one.log_probabilities for one in translator.score(zip(TEXTS, TEXTS, strict=True))] == scored

    with ThreadPoolExecutor(8, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        for job in [pool.submit(work, number) for number in range(8)]:
            job.result()


def test_models_may_be_loaded_by_several_threads(spaced: Bundle) -> None:
    expected = Translator(spaced).translate(TEXTS)
    with ThreadPoolExecutor(4, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        jobs = [pool.submit(lambda: Translator(spaced).translate(TEXTS)) for _ in range(4)]
        assert all(job.result() == expected for job in jobs)
