import shutil
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from allyouneed import Translator
from allyouneed.apps.serve.app import create_app
from allyouneed.apps.serve.options import ServeConfig
from allyouneed.errors import ConfigError


def test_liveness_and_readiness_are_apart(served: tuple[Path, Path]) -> None:
    app = create_app(served, ServeConfig(device="cpu"))
    before = TestClient(app, base_url="http://localhost")
    assert before.get("/ready").json() == {"status": "starting"}
    with TestClient(app, base_url="http://localhost") as client:
        assert client.get("/health").json() == {"status": "ok"}
        assert client.get("/ready").status_code == 200
        app.state.server.monitoring.status = "draining"
        assert (client.get("/ready").status_code, client.get("/health").status_code) == (503, 200)


def test_a_server_is_not_ready_without_one_of_its_models(served: tuple[Path, Path], tmp_path: Path) -> None:
    folders = [shutil.copytree(folder, tmp_path / folder.name) for folder in served]
    with TestClient(create_app(folders, ServeConfig(device="cpu")), base_url="http://localhost") as client:
        request = {"q": "abc", "source": "en", "target": "it"}
        shutil.rmtree(folders[0])
        assert (client.get("/ready").status_code, client.post("/translate", json=request).status_code) == (503, 503)
        assert client.get("/health").status_code == 200
        shutil.copytree(served[0], folders[0])
        assert (client.get("/ready").status_code, client.post("/translate", json=request).status_code) == (200, 200)
        shutil.rmtree(folders[0])  # it is in memory now
        assert (client.get("/ready").status_code, client.post("/translate", json=request).status_code) == (200, 200)


def test_metrics_count_requests_batches_and_tokens(client: TestClient) -> None:
    client.post("/v1/translate", json={"texts": ["abc", "abd"], "source": "en", "target": "it"})
    client.get("/nowhere")
    lines = client.get("/metrics").text.splitlines()
    name = "libretranslate_http_request_duration_seconds_count"
    assert f'{name}{{endpoint="/v1/translate",status="200"}} 1.0' in lines
    assert f'{name}{{endpoint="other",status="404"}} 1.0' in lines
    assert "libretranslate_http_requests_in_flight 1.0" in lines  # this one
    assert "allyouneed_batch_segments_sum 2.0" in lines
    assert "allyouneed_source_tokens_total 10.0" in lines
    assert "allyouneed_queued_texts 0.0" in lines
    assert any(line.startswith('allyouneed_loaded_model_bytes{languages="en-it"}') for line in lines)


def test_settings_of_the_search_are_obeyed_by_every_route_and_refused_at_the_start(served: tuple[Path, Path]) -> None:
    with pytest.raises(ConfigError, match="beam"):
        create_app(served, decode={"beam": 0})
    languages = {"source": "en", "target": "it"}
    app = create_app(served, ServeConfig(device="cpu"), decode={"max_length": 3})
    with TestClient(app, base_url="http://localhost") as client:
        (native,) = client.post("/v1/translate", json={"texts": ["abcdefgh"], **languages}).json()["translations"]
        other = client.post("/translate", json={"q": "abcdefgh", **languages}).json()
    expected = Translator.load(served[0], max_length=3)("abcdefgh")
    assert native["text"] == other["translatedText"] == expected
    assert expected != Translator.load(served[0])("abcdefgh")
