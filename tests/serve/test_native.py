from pathlib import Path

from fastapi.testclient import TestClient

from allyouneed import Translator


def test_the_answer_is_that_of_the_translator(client: TestClient, served: tuple[Path, Path]) -> None:
    texts = ["abc", "", "jig hid", "a b c d"]
    answer = client.post("/v1/translate", json={"texts": texts, "source": "en", "target": "it"})
    assert answer.status_code == 200
    offline = Translator.load(served[0], device="cpu").translate(texts)
    assert [one["text"] for one in answer.json()["translations"]] == offline
