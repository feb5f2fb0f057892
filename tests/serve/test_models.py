import gc
import shutil
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import copytree
from threading import Semaphore

import httpx
import pytest

from allyouneed import Translator
from allyouneed.apps.serve.app import create_app
from allyouneed.apps.serve.languages import ModelKey
from allyouneed.apps.serve.models import ModelSource, ModelStore
from allyouneed.apps.serve.options import ServeConfig
from allyouneed.bundle import Bundle
from allyouneed.errors import ConfigError, LanguageError
from serve.live import running
from waiting import PATIENCE


@pytest.fixture
def models(served: tuple[Path, Path]) -> ModelStore:
    return ModelStore([ModelSource.parse(folder) for folder in served], ServeConfig())


def test_the_languages_are_those_of_the_bundles(models: ModelStore) -> None:
    assert models.languages() == [("en", "English", ("it",)), ("it", "Italian", ("en",))]
    assert models.pair("EN", "it") == ModelKey("en", "it")


def test_a_pair_without_a_model_is_refused(models: ModelStore) -> None:
    with pytest.raises(LanguageError, match="xx"):
        models.pair("en", "xx")
    with pytest.raises(LanguageError, match=r"\(en\)"):
        models.pair("en", "en")


def test_the_second_model_of_a_pair_has_its_name_in_its_language(served: tuple[Path, Path]) -> None:
    sources = [ModelSource.parse(f"{folder}=en-it") for folder in served]
    name = served[1].name
    code = f"en-x-{name.replace('_', '-')}"
    named = ("en", "English", ("it",)), (code, f"English ({code[5:]})", ("it",))
    models = ModelStore(sources, ServeConfig())
    assert models.languages() == [*named]
    assert models.pair(code.upper(), "it") == ModelKey(code, "it")
    with pytest.raises(ConfigError, match="both translate en-it"):
        ModelStore([*sources, sources[1]], ServeConfig())


def test_a_model_of_no_languages_has_its_name_in_their_place(saved: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(saved, tmp_path / "dates")
    models = ModelStore([ModelSource.parse(folder)], ServeConfig())
    assert models.languages() == [("dates", "dates", ("dates",))]
    assert models.pair("dates", "Dates") == ModelKey("dates", "dates")
    assert str(ModelKey("dates", "dates")) == "dates"
    for source, target in (("und-x-dates", "und"), ("dates", "it"), ("und", "und")):
        with pytest.raises(LanguageError, match="dates$"):
            models.pair(source, target)


def test_a_model_whose_folder_is_called_like_a_language_is_none(saved: Path, tmp_path: Path) -> None:
    folders = [shutil.copytree(saved, tmp_path / name) for name in ("it", "Größen 2")]
    assert [ModelSource.parse(folder).key.source for folder in folders] == ["model-it", "gro-en-2"]


def test_languages_can_be_named(served: tuple[Path, Path]) -> None:
    assert ModelSource.parse(f"{served[0]}=de-pt-BR") == ModelSource(ModelKey("de", "pt-BR"), served[0])
    with pytest.raises(ConfigError, match="languages"):
        ModelSource.parse(f"{served[0]}=german")


def test_a_model_is_read_when_it_is_first_used_and_only_once(models: ModelStore) -> None:
    key = ModelKey("en", "it")
    assert models.loaded(key) is None
    with ThreadPoolExecutor(4) as pool:
        loaded = list(pool.map(models.load, [key] * 8))
    assert set(loaded) == {models.loaded(key)}
    assert models.memory() == {key: loaded[0].bytes}


def test_several_bundles_are_served_as_an_ensemble(served: tuple[Path, Path], tmp_path: Path) -> None:
    copytree(served[0], tmp_path / "again")
    models = ModelStore([ModelSource.parse(f"{served[0]},{tmp_path / 'again'}")], ServeConfig())
    (key,) = models.pairs()
    assert key == ModelKey("en", "it")
    model = models.load(key)
    assert len(model.base.bundles) == 2
    assert model.bytes == 2 * ModelStore([ModelSource.parse(served[0])], ServeConfig()).load(key).bytes
    assert model.is_current()
    (tmp_path / "again/tokenizer.json").touch()
    assert not model.is_current()


def test_the_model_used_longest_ago_is_unloaded(served: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("allyouneed.apps.serve.models.MEBIBYTE", 50_000)  # one of these models fits, two do not
    third = f"{served[0]}=en-de"
    models = ModelStore([ModelSource.parse(folder) for folder in (*served, third)], ServeConfig(max_loaded_memory=1))
    for key in models.pairs():
        assert 20_000 < models.load(key).bytes <= 50_000
        assert list(models.memory()) == [key]


def test_a_changed_bundle_is_read_again_and_a_broken_one_is_left(served: tuple[Path, Path], tmp_path: Path) -> None:
    folder, key = copytree(served[0], tmp_path / "bundle"), ModelKey("en", "it")
    models = ModelStore([ModelSource.parse(folder)], ServeConfig(device="cpu"))
    before = models.load(key)
    assert models.reload_changed() == {}
    Bundle.load(served[1]).save(folder)
    assert models.reload_changed() == {key: "reloaded"}
    after = models.load(key)
    assert after.base("abc") == Translator.load(served[1], device="cpu")("abc") != before.base("abc")
    (folder / "weights.safetensors").write_bytes(b"")
    assert models.reload_changed()[key].startswith("not reloaded: ")
    assert models.load(key) is after


def test_an_old_model_leaves_the_memory_at_once(served: tuple[Path, Path], tmp_path: Path) -> None:
    folder, key = copytree(served[0], tmp_path / "bundle"), ModelKey("en", "it")
    models = ModelStore([ModelSource.parse(folder)], ServeConfig(device="cpu"))
    old = weakref.ref(models.load(key))
    (folder / "tokenizer.json").touch()
    gc.disable()  # a server freezes the first models, and what it loads later is collected late
    try:
        assert models.reload_changed() == {key: "reloaded"}
        assert old() is None
    finally:
        gc.enable()


def test_files_that_cannot_be_looked_at_are_left_for_now(
    served: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    models, key = ModelStore([ModelSource.parse(served[0])], ServeConfig(device="cpu")), ModelKey("en", "it")
    before = models.load(key)

    def fail(_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr("allyouneed.apps.serve.models.model_files", fail)
        assert models.reload_changed() == {key: "not reloaded: [Errno 13] Permission denied"}
    assert models.reload_changed() == {}
    assert models.load(key) is before


def test_no_request_is_dropped_while_a_bundle_is_replaced(served: tuple[Path, Path], tmp_path: Path) -> None:
    folder, text = copytree(served[0], tmp_path / "bundle"), "abc dig"
    before, after = (Translator.load(one, device="cpu")(text) for one in served)
    assert before != after
    app = create_app([folder], ServeConfig(workers=2, device="cpu", reload_every=0.02))

    begun = Semaphore(0)

    def ask_until_new(url: str) -> list[str]:
        answers: list[str] = []
        with httpx.Client(base_url=url, timeout=PATIENCE) as client:
            while after not in answers:
                answer = client.post("/translate", json={"q": text, "source": "en", "target": "it"})
                assert answer.status_code == 200
                answers.append(answer.json()["translatedText"])
                if len(answers) == 3:
                    begun.release()
        return answers

    with running(app) as url, ThreadPoolExecutor(4) as pool:
        clients = [pool.submit(ask_until_new, url) for _ in range(4)]
        for _ in clients:
            assert begun.acquire(timeout=PATIENCE)
        Bundle.load(served[1]).save(folder)
        for client in clients:
            assert set(client.result(timeout=PATIENCE)) == {before, after}
