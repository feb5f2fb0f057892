"""The page of a run: what it is told, what its folder has, and the model that is served as it learns."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from shutil import copyfile, copytree

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import expect

from allyouneed import fit
from allyouneed.apps.reports import evaluate_run
from allyouneed.apps.reports.verdict import Verdict
from allyouneed.apps.serve.app import assemble
from allyouneed.apps.serve.models import ModelStore
from allyouneed.apps.serve.options import ServeConfig
from allyouneed.apps.serve.training import TrainingState
from allyouneed.bundle import FILES
from chromium_page import TIMEOUT, open_browser
from runs import TINY
from serve.live import running


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train a run to its end."""
    folder = tmp_path_factory.mktemp("runs") / "dates"
    recipe = replace(TINY, data=replace(TINY.data, test="dates:test"))
    evaluate_run(fit(recipe, folder), folder, seconds=2)
    return folder


def copied(run: Path, folder: Path, *names: str) -> None:
    """Let a folder have these files of the run, as if it came so far."""
    folder.mkdir(exist_ok=True)
    for name in names:
        copyfile(run / name, folder / name)


def test_a_page_without_a_model_gets_one_and_translates(run: Path, tmp_path: Path) -> None:
    config = ServeConfig(suggestions=str(tmp_path / "corrections.jsonl"), device="cpu", cors_origins=())
    models = ModelStore([], config)
    training, folder = TrainingState(models), tmp_path / "dates"
    with TestClient(assemble(config, models, training), base_url="http://localhost") as client:
        training.tell({"state": "preparing", "folder": str(folder)})
        assert client.get("/languages").json() == []
        settings = client.get("/frontend/settings").json()
        assert (settings["training"], settings["suggestions"]) == (True, True)
        assert client.get("/v1/training/page").status_code == 409
        assert client.get("/v1/training").json() == {
            "state": "preparing", "kept": 0, "losses": "", "scores": "", "worst": [], "commands": {},
            "exports_page": True,
        }  # fmt: skip

        copied(
            run, folder, "recipe.toml", "metrics.jsonl", "updates.jsonl", "validation.jsonl", "README.md", *FILES[:3]
        )
        copied(run, folder, "SHA256SUMS")
        training.tell({"state": "training", "step": 14, "loss": 2.5, "kept": True})
        answer = client.get("/v1/training").json()
        assert (answer["state"], answer["step"], answer["kept"]) == ("training", 14, 1)
        assert answer["losses"].count("<svg") == 2
        assert "<b>2.5</b>" in answer["losses"]  # the last of the training, which the folder does not have yet
        assert [set(sample) >= {"source", "output", "reference"} for sample in answer["worst"]]

        (language,) = (one for one in client.get("/languages").json() if one["targets"])
        pair = {"source": language["code"], "target": language["targets"][0]}
        answer = client.post("/v1/translate", json={"texts": ["1845-01-05"], **pair})
        assert answer.status_code == 200
        better = {"q": "1845-01-05", "s": "January 5, 1845", **pair}
        assert client.post("/suggest", json=better).json() == {"success": True}
        assert json.loads((tmp_path / "corrections.jsonl").read_text())["target"] == "January 5, 1845"

        training.tell({"kept": True})
        assert client.get("/v1/training").json()["kept"] == 1  # the same model
        copytree(run, tmp_path / "moved/dates")
        training.tell({"state": "finished", "folder": str(tmp_path / "moved/dates")})
        assert client.get("/v1/training").json()["kept"] == 2
        page = client.get("/v1/training/page")
        assert "attachment" in page.headers["Content-Disposition"]
        assert page.text.startswith("<!doctype html>")


def test_what_is_no_page_of_a_run_has_no_training(client: TestClient) -> None:
    assert client.get("/v1/training").status_code == 404
    assert client.get("/frontend/settings").json()["training"] is False


def test_no_page_of_another_origin_reads_the_pairs(run: Path, tmp_path: Path) -> None:
    config = ServeConfig(device="cpu", cors_origins=())
    models = ModelStore([], config)
    with TestClient(assemble(config, models, TrainingState(models)), base_url="http://localhost") as client:
        answer = client.get("/v1/training", headers={"Origin": "http://elsewhere.example"})
        assert "Access-Control-Allow-Origin" not in answer.headers


def test_a_browser_sees_the_run_and_the_translations_of_the_model_that_it_has_now(run: Path, tmp_path: Path) -> None:
    config = ServeConfig(suggestions=str(tmp_path / "corrections.jsonl"), device="cpu", cors_origins=())
    models = ModelStore([], config)
    training = TrainingState(models, tmp_path / "corrections.jsonl")
    training.tell({"state": "preparing", "name": "dates", "about": "encoding", "done": 3, "total": 9})
    with running(assemble(config, models, training)) as url, open_browser() as browser:
        page = browser.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.set_default_timeout(TIMEOUT)
        page.goto(url)
        expect(page.locator("#training-lines")).to_contain_text("encoding: 3 of 9")
        expect(page.locator("#message")).to_contain_text("The first model comes with the first validation")
        training.tell({
            "state": "finished", "folder": str(run), "step": 12, "steps": 12, "commands": {"Train longer": "train me"},
            "learn_command": "learn me",
            "verdict": asdict(Verdict.read(run)),
        })  # fmt: skip
        expect(page.locator("#message")).to_be_hidden()
        page.fill("#source", "1845-01-05")
        expect(page.locator("#target-foot")).to_be_visible()
        expect(page.locator("#training-curves figure")).not_to_have_count(0)
        expect(page.locator("#training-commands")).to_contain_text("train me")
        for line in Verdict.read(run).lines():
            for words in line.removeprefix("- ").split("  "):
                expect(page.locator("#training-verdict")).to_contain_text(words.strip(" :"))
        expect(page.locator("#training-worst textarea")).to_have_count(0)  # the right translation is known
        expect(page.locator("#training-commands")).not_to_contain_text("learn me")
        page.click("#correct")
        page.click("#correction [type=submit]")  # unchanged
        expect(page.locator("#correction")).to_be_hidden()
        assert not (tmp_path / "corrections.jsonl").read_text()
        page.click("#correct")
        page.fill("#corrected", "the fifth of January")
        page.click("#correction [type=submit]")
        expect(page.locator("#training-commands")).to_contain_text("learn me")
        assert "the fifth of January" in (tmp_path / "corrections.jsonl").read_text()
        with page.expect_download() as download:
            page.click("#training-download")
        assert download.value.suggested_filename == "dates.html"
        assert errors == []
