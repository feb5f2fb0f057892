from pathlib import Path

from fastapi.testclient import TestClient

from allyouneed import Translator


def test_the_answer_is_that_of_the_translator(client: TestClient, served: tuple[Path, Path]) -> None:
    texts = ["abc", "", "jig hid", "a b c d"]
    answer = client.post("/v1/translate", json={"texts": texts, "source": "en", "target": "it"})
    assert answer.status_code == 200
    offline = Translator.load(served[0], device="cpu").translate(texts)
    assert [one["text"] for one in answer.json()["translations"]] == offline


def test_alternatives_begin_with_the_prefix_and_words_are_aligned(client: TestClient) -> None:
    request = {
        "texts": ["abc def"],
        "source": "en",
        "target": "it",
        "align": "words",
        "prefix": "ab",
        "alternatives": 3,
    }
    (one,) = client.post("/v1/translate", json=request).json()["translations"]
    assert len(one["alternatives"]) == 2
    assert all(text.startswith("ab") for text in [one["text"], *(other["text"] for other in one["alternatives"])])
    assert one["alignment"]["source"] == ["abc", "def"]
    assert one["alignment"]["target"] == one["text"].split()
    assert one["tokens"] > 2
    assert one["log_probability"] < 0
