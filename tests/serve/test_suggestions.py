import resource
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from allyouneed import Recipe, fit
from allyouneed.apps.serve.refusals import Refusal
from allyouneed.apps.serve.suggestions import SuggestionStore, latest_suggestions
from allyouneed.bundle import Bundle
from allyouneed.data.readers import read_pairs
from serve.stub import stub_app

SUGGESTION = {"q": "Hello", "s": "Ciao", "source": "en", "target": "it"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "suggestions.jsonl"


def client(path: Path, **settings: object) -> TestClient:
    return TestClient(stub_app(suggestions=str(path), **settings), base_url="http://localhost")


def test_a_suggestion_becomes_a_pair_that_training_reads(path: Path) -> None:
    with client(path) as browser:
        assert browser.post("/suggest", data=SUGGESTION).json() == {"success": True}
        assert browser.post("/suggest", json={**SUGGESTION, "q": 'a\nb\t"c"', "s": "d"}).json() == {"success": True}
    assert read_pairs(str(path)) == [("Hello", "Ciao"), ('a\nb\t"c"', "d")]


def test_what_the_model_wrote_itself_is_not_kept(path: Path) -> None:
    with client(path) as browser:
        for better in ("hELLO", " hELLO\n", "hELLO!"):
            assert browser.post("/suggest", json={**SUGGESTION, "s": better}).json() == {"success": True}
        assert browser.post("/suggest", json={**SUGGESTION, "q": "refuse!", "s": "b"}).json() == {"success": True}
    assert read_pairs(str(path)) == [("Hello", "hELLO!"), ("refuse!", "b")]


def test_a_model_learns_from_suggestions(path: Path, tmp_path: Path) -> None:
    sizes = {"d_model": 8, "d_ff": 8, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "max_length": 32}
    train = {"steps": 3, "validate_every": 3, "warmup": 1, "threads": 1, "tensorboard": False}
    before = {
        "data": {"train": "dates:train", "valid": "dates:valid", "vocabulary": "characters",
                 "max_train_samples": 100, "max_valid_samples": 10},
        "model": sizes,
        "train": train,
    }  # fmt: skip
    fit(Recipe.from_tables(before), tmp_path / "before")
    store = SuggestionStore(path, max_size=10_000)
    for day in range(10, 30):
        store.add(f"1999-01-{day}", f"January {day}, 1999", "en", "it")
    after = {
        "data": {"train": str(path), "valid": str(path)},
        "model": sizes,
        "train": {**train, "init_from": str(tmp_path / "before")},
    }
    fit(Recipe.from_tables(after), tmp_path / "after")
    assert Bundle.load(tmp_path / "after").model is not None


def test_a_full_disk_is_answered_503_and_leaves_no_half_line(path: Path) -> None:
    with client(path) as browser:
        assert browser.post("/suggest", data=SUGGESTION).status_code == 200
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 10, limits[1]))
        try:
            answer = browser.post("/suggest", data=SUGGESTION)  # Python has the write fail, without a signal
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert (answer.status_code, "Retry-After" in answer.headers) == (503, True)
        assert "disk" in answer.json()["error"]
        assert browser.post("/suggest", data=SUGGESTION).status_code == 200
    assert read_pairs(str(path)) == [("Hello", "Ciao")] * 2


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"q": ""}, "missing q parameter"),
        ({"q": " \n"}, " s parameters "),
        ({"s": "\t"}, " s parameters "),
        ({"target": "en"}, "English (en) "),
        ({"s": None}, "missing s parameter"),
        ({"source": None}, "missing source parameter"),
        ({"target": None}, "missing target parameter"),
        ({"target": "xx"}, "xx "),
        ({"s": "a" * 101}, "text limit (100)"),
        ({"s": ["a"]}, ": s parameter must"),
    ],
)
def test_what_is_no_suggestion_is_refused(path: Path, change: dict[str, object], error: str) -> None:
    with client(path, max_characters=100) as browser:
        answer = browser.post("/suggest", json={**SUGGESTION, **change})
    assert answer.status_code == 400
    assert error in answer.json()["error"]
    assert path.read_text() == ""


def test_the_file_does_not_grow_beyond_its_limit(path: Path) -> None:
    store = SuggestionStore(path, max_size=1_000)
    while path.stat().st_size < 850:
        store.add("text", "translation", "en", "it")
    with pytest.raises(Refusal, match="full"):
        store.add("text", "translation " * 20, "en", "it")
    assert 0 < path.stat().st_size <= 1_000
    with client(path, max_suggestions_size=1_000) as browser:
        assert browser.post("/suggest", json={**SUGGESTION, "q": "a" * 900}).status_code == 503


def test_a_file_that_is_moved_away_is_begun_anew(path: Path) -> None:
    with client(path) as browser:
        assert browser.post("/suggest", data=SUGGESTION).status_code == 200
        path.rename(path.with_suffix(".1"))
        assert browser.post("/suggest", data={**SUGGESTION, "q": "Bye"}).status_code == 200
    assert [one.source for one in latest_suggestions(path)] == ["Bye"]
    assert [one.source for one in latest_suggestions(path.with_suffix(".1"))] == ["Hello"]


def test_many_threads_may_suggest_at_once(path: Path) -> None:
    store = SuggestionStore(path, max_size=1_000_000)
    with ThreadPoolExecutor(8) as threads:
        for number in range(100):
            threads.submit(store.add, f"text {number}", "translation", "en", "it")
    assert len(latest_suggestions(path)) == 100


def test_a_page_of_another_origin_may_not_suggest(path: Path) -> None:
    with client(path, cors_origins=("*", "https://trusted.example")) as browser:
        for origin, status in [
            ("http://localhost", 200), ("https://trusted.example", 200), ("https://other.example", 403), ("null", 403),
        ]:  # fmt: skip
            assert browser.post("/suggest", data=SUGGESTION, headers={"Origin": origin}).status_code == status, origin
