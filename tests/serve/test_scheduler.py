"""Requests of many clients at once get the answers they would get alone."""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest
from fastapi.testclient import TestClient

from allyouneed import Translation, Translator
from allyouneed.apps.serve.batching import PLAIN, TranslationOptions
from allyouneed.apps.serve.languages import ModelKey
from allyouneed.apps.serve.models import ModelSource, ModelStore
from allyouneed.apps.serve.options import ServeConfig
from allyouneed.apps.serve.scheduler import Scheduler
from allyouneed.decode import Step
from allyouneed.errors import DeadlineExceeded, InputError, Overloaded
from allyouneed.translator.generation import TranslationGenerator
from serve.stub import stub_app
from waiting import PATIENCE

pytestmark = pytest.mark.anyio
EN_IT, IT_EN = ModelKey("en", "it"), ModelKey("it", "en")


@asynccontextmanager
async def running(folders: Sequence[Path], **settings: float) -> AsyncIterator[Scheduler]:
    models = ModelStore([ModelSource.parse(folder) for folder in folders], ServeConfig(device="cpu"))
    scheduler = Scheduler(models, **{"workers": 2, **settings})  # type: ignore[arg-type]
    scheduler.start()
    try:
        yield scheduler
    finally:
        scheduler.close()


class Gate:
    """Holds every batch back until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open, self.batches, self.results = threading.Event(), list[int](), list[Translation | None]()
        original = Translator.translate_segments

        def gated(translator: Translator, segments: Sequence[object], **options: object) -> object:
            self.batches.append(len(segments))
            assert self.open.wait(PATIENCE)
            self.results += (results := original(translator, segments, **options))  # type: ignore[arg-type]
            return results

        monkeypatch.setattr(Translator, "translate_segments", gated)

    async def reached(self, batches: int = 1) -> None:
        async with asyncio.timeout(PATIENCE):
            while len(self.batches) < batches:
                await asyncio.sleep(0.001)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    return Gate(monkeypatch)


def random_text(rng: Random, most_words: int = 6) -> str:
    words = ("".join(rng.choice("abcdefghij") for _ in range(rng.randrange(1, 9))) for _ in range(most_words))
    return " ".join(list(words)[: rng.randrange(most_words + 1)])


async def test_answers_do_not_depend_on_the_other_requests(served: tuple[Path, Path]) -> None:
    rng = Random(1)
    choices = (
        PLAIN, TranslationOptions(alternatives=2), TranslationOptions(align="words"), TranslationOptions(prefix="ab"),
        TranslationOptions(glossary=(("abc", "dig"),)),
    )  # fmt: skip
    requests = [
        (
            rng.choice((EN_IT, IT_EN)),
            [random_text(rng) for _ in range(rng.choice((1, 1, 1, 7)))],
            rng.choice(choices),
        )
        for _ in range(40)
    ]
    async with running(served, max_queue=10_000) as scheduler:
        answers = await asyncio.gather(*(scheduler.translate(*request) for request in requests))
    offline = {key: Translator.load(folder, device="cpu") for key, folder in zip((EN_IT, IT_EN), served, strict=True)}
    for (key, texts, options), answer in zip(requests, answers, strict=True):
        translator = offline[key].using(glossary=dict(options.glossary))
        alone = translator.translations(
            texts, prefix=options.prefix, alternatives=options.alternatives, align=options.align
        )
        assert [comparable(one) for one in answer] == [comparable(one) for one in alone]


def comparable(one: Translation) -> tuple[object, ...]:
    others = [(other.text, pytest.approx(other.log_probability, abs=1e-4)) for other in one.alternatives]
    return one.source, one.text, one.flags, one.alignment, one.tokens, others


async def test_requests_that_wait_share_a_batch(served: tuple[Path, Path], gate: Gate) -> None:
    async with running(served) as scheduler:
        busy = [asyncio.create_task(scheduler.translate(EN_IT, ["abc"])) for _ in range(1)]
        await gate.reached(1)
        busy.append(asyncio.create_task(scheduler.translate(EN_IT, ["abd"])))
        await gate.reached(2)  # both workers
        waiting = [asyncio.create_task(scheduler.translate(EN_IT, [f"ab{letter}"])) for letter in "cdefg"]
        await asyncio.sleep(0)
        gate.open.set()
        await asyncio.gather(*busy, *waiting)
    assert gate.batches == [1, 1, 5]


async def test_too_many_texts_are_refused_at_once(served: tuple[Path, Path], gate: Gate) -> None:
    async with running(served, max_queue=3) as scheduler:
        first = asyncio.create_task(scheduler.translate(EN_IT, ["a", "b", "c", "d", "e"]))  # an idle server takes it
        await asyncio.sleep(0)
        assert scheduler.queue_length == 5
        with pytest.raises(Overloaded, match="5 texts") as refused:
            await scheduler.translate(EN_IT, ["f"])
        assert refused.value.retry_after == 1  # five texts, at ten a second until it is known better
        gate.open.set()
        await first
        assert scheduler.queue_length == 0
        await scheduler.translate(EN_IT, ["f"])


@pytest.mark.parametrize("alternatives", [0, 2])
async def test_a_request_that_was_accepted_does_not_collide_with_itself(alternatives: int) -> None:
    with TestClient(stub_app(max_queue=100), base_url="http://localhost") as client:
        texts = [f"a {number}" for number in range(140)]
        body = {"q": texts, "source": "en", "target": "it", "alternatives": alternatives}
        answer = client.post("/translate", json=body)
    assert answer.status_code == 200
    assert answer.json()["translatedText"] == [text.upper() for text in texts]


async def test_a_request_is_given_up_at_its_deadline(served: tuple[Path, Path], gate: Gate) -> None:
    async with running(served, timeout=0.01) as scheduler:
        with pytest.raises(DeadlineExceeded, match="within 0.01 seconds"):
            await scheduler.translate(EN_IT, ["abc"])
        assert scheduler.queue_length == 0
        gate.open.set()


async def test_a_request_that_is_cancelled_leaves_the_queue(served: tuple[Path, Path], gate: Gate) -> None:
    async with running(served) as scheduler:
        scheduler.models.load(EN_IT)
        busy = [asyncio.create_task(scheduler.translate(EN_IT, ["abc"]))]
        await gate.reached(1)
        busy.append(asyncio.create_task(scheduler.translate(EN_IT, ["abc"])))
        await gate.reached(2)
        leaving = asyncio.create_task(scheduler.translate(EN_IT, ["abd"]))
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        gate.open.set()
        await asyncio.gather(*busy)
    assert gate.batches == [1, 1]


async def test_a_request_that_is_cancelled_leaves_the_batch_it_is_in(served: tuple[Path, Path], gate: Gate) -> None:
    async with running(served) as scheduler:
        leaving = asyncio.create_task(scheduler.translate(EN_IT, ["abc"]))
        await gate.reached(1)
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        gate.open.set()
    assert gate.results == [None]


async def test_what_the_model_cannot_read_is_refused_by_its_number(served: tuple[Path, Path]) -> None:
    async with running(served) as scheduler:
        with pytest.raises(InputError, match="'x' at position 2") as refused:
            await scheduler.translate(EN_IT, ["abc", "axb"])
        assert refused.value.line == 2
        with pytest.raises(InputError) as refused:  # of texts that are split one after the other
            await scheduler.translate(EN_IT, ["a " * 750, "b " * 750, "axb"])
        assert refused.value.line == 3


async def test_one_failure_leaves_the_others_of_its_batch(
    served: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, gate: Gate
) -> None:
    start, bad = TranslationGenerator._start, Translator.load(served[0]).source_tokenizer.encode("bad")

    def failing(generator: TranslationGenerator, sources: Sequence[list[int]]) -> Step:
        if bad in sources:
            raise RuntimeError("a planted fault")
        return start(generator, sources)

    monkeypatch.setattr(TranslationGenerator, "_start", failing)
    async with running(served) as scheduler:
        tasks = [asyncio.create_task(scheduler.translate(EN_IT, [text])) for text in ("abc", "abd", "bad", "dab")]
        await asyncio.sleep(0.05)
        gate.open.set()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(outcome, RuntimeError) for outcome in outcomes] == [False, False, True, False]


async def test_a_stream_ends_with_the_whole_text(served: tuple[Path, Path]) -> None:
    async with running(served) as scheduler:
        pieces = [piece async for piece in scheduler.stream(EN_IT, "abc dig")]
    assert len(pieces) > 1
    assert "".join(pieces) == "".join(Translator.load(served[0], device="cpu").stream("abc dig"))


async def test_a_large_text_is_answered_beside_small_ones(served: tuple[Path, Path]) -> None:
    rng = Random(2)
    large = " ".join(random_text(rng) for _ in range(100))
    async with running(served) as scheduler:
        waiting = asyncio.create_task(scheduler.translate(EN_IT, [large]))
        await asyncio.sleep(0)
        await scheduler.translate(EN_IT, ["abc"])
        assert not waiting.done()
        (answer,) = await waiting
    assert comparable(answer) == comparable(next(Translator.load(served[0], device="cpu").translations([large])))


async def test_there_is_a_thread_for_each_core_that_the_process_may_use(
    served: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("allyouneed.apps.serve.scheduler.available_cores", lambda: 3)
    async with running(served, workers=0):
        names = [thread.name for thread in threading.enumerate()]
    assert [f"translate-{number}" in names for number in range(4)] == [True, True, True, False]
