"""Bundles are replaced while requests come."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import copytree
from threading import Semaphore

import httpx

from allyouneed import Translator
from allyouneed.apps.serve.app import create_app
from allyouneed.apps.serve.options import ServeConfig
from allyouneed.bundle import Bundle
from serve.live import running
from waiting import PATIENCE


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
