import asyncio
import json
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from allyouneed import Translator
from allyouneed.apps.explain import trace_translation
from allyouneed.apps.explain.page_data import build_page_data
from allyouneed.apps.serve import explanation
from allyouneed.apps.serve.explanation import MAX_EXPLAINED_CHARACTERS, _Explainer
from allyouneed.apps.serve.languages import ModelKey
from allyouneed.errors import Overloaded


def explain(client: TestClient, text: str, **languages: str) -> tuple[int, dict[str, object]]:
    answer = client.post("/v1/explain", json={"text": text, "source": "en", "target": "it", **languages})
    return answer.status_code, answer.json()


def test_it_is_the_data_of_the_page_of_explain(client: TestClient, served: tuple[Path, Path]) -> None:
    status, answer = explain(client, "abc")
    assert status == 200
    translator = Translator.load(served[0], device="cpu")
    assert answer == json.loads(json.dumps(build_page_data(trace_translation(translator, "abc"), translator)))
    assert answer["output"] == translator("abc")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "explain needs a text"),
        ("a" * (MAX_EXPLAINED_CHARACTERS + 1), "301 characters is too long"),
        ("a" * MAX_EXPLAINED_CHARACTERS, "reads at most 40"),
        ("é", "not in the vocabulary"),
    ],
    ids=["empty", "too many characters", "too many tokens", "unknown"],
)
def test_a_text_that_cannot_be_explained_is_refused(client: TestClient, text: str, error: str) -> None:
    status, answer = explain(client, text)
    assert status == 400
    assert error in str(answer["error"])


def test_a_pair_without_a_model_is_refused(client: TestClient) -> None:
    assert explain(client, "abc", target="de") == (400, {"error": "de is not supported"})


def test_a_queue_that_is_full_refuses_at_once(served: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explanation, "_MAX_WAITING", 0)
    with pytest.raises(Overloaded):
        asyncio.run(_Explainer().explain(None, ModelKey("en", "it"), "abc"))  # type: ignore[arg-type]
