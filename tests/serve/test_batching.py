"""Which segments share a batch, and how fast that is: without threads."""

from dataclasses import replace

import pytest

from allyouneed import Tokenizer, Transformer, Translator
from allyouneed.apps.serve.batching import (
    PLAIN,
    QueuedRequest,
    SegmentGroup,
    SegmentQueue,
    TranslationOptions,
    TranslationSpeed,
)
from allyouneed.bundle import Bundle
from allyouneed.config import DecodeConfig
from conftest import SMALL


@pytest.fixture(scope="module")
def translator() -> Translator:
    tokenizer = Tokenizer.characters("abcdefghij")
    model = Transformer(replace(SMALL, vocab_size=len(tokenizer), pad_id=tokenizer.pad_id)).eval()
    return Translator(Bundle(model, tokenizer, tokenizer, DecodeConfig(batch_size=4)))


def add(
    queue: SegmentQueue,
    translator: Translator,
    *texts: str,
    options: TranslationOptions = PLAIN,
    done: list[SegmentGroup] | None = None,
) -> QueuedRequest:
    request = QueuedRequest(translator, options)
    split = translator.split(texts, prefix=options.prefix, glossary=dict(options.glossary))
    queue.add(SegmentGroup(request, split, (list[SegmentGroup]() if done is None else done).append))
    return request


def take(queue: SegmentQueue, *, max_tokens: float = 1_000) -> list[str]:
    return [one.segment.text for one in queue.take(lambda _: max_tokens)]


def test_requests_of_one_model_share_a_batch_in_turn(translator: Translator) -> None:
    queue = SegmentQueue()
    add(queue, translator, "aa", "ab", "ac", "ad", "ae", "af")
    add(queue, translator, "ba")
    add(queue, translator, "ca", "cb")
    assert take(queue) == ["aa", "ba", "ca", "ab"]
    assert sorted(take(queue)) == ["ac", "ad", "ae", "cb"]
    assert take(queue) == ["af"]
    assert len(queue) == 0


def test_other_options_make_another_batch(translator: Translator) -> None:
    queue = SegmentQueue()
    add(queue, translator, "aa")
    add(queue, translator, "bb", options=TranslationOptions(alternatives=2))
    add(queue, translator, "cc", options=TranslationOptions(prefix="a"))
    add(queue, translator, "dd", options=TranslationOptions(glossary=(("a", "b"),)))
    assert take(queue) == ["aa", "dd"]  # no term of the glossary is in the text
    assert take(queue) == ["bb"]
    assert take(queue) == ["cc"]


def test_of_many_the_nearest_in_length_are_taken(translator: Translator) -> None:
    queue = SegmentQueue()
    add(queue, translator, "aaa", "b", "ccc", "d" * 9, "eee", "f", "ggg", "h" * 8)
    assert take(queue) == ["aaa", "ccc", "eee", "ggg"]


def test_a_batch_has_at_most_so_many_tokens_but_never_none(translator: Translator) -> None:
    queue = SegmentQueue()
    add(queue, translator, "aaa", "bbb", "ccc")  # 5 tokens each with start and end
    assert take(queue, max_tokens=10) == ["aaa", "bbb"]
    assert take(queue, max_tokens=1) == ["ccc"]


def test_a_request_that_is_dropped_waits_no_longer(translator: Translator) -> None:
    queue = SegmentQueue()
    request = add(queue, translator, "aa", "ab")
    add(queue, translator, "ba")
    queue.drop(request)
    assert take(queue) == ["ba"]


def test_a_group_is_done_when_all_its_segments_are(translator: Translator) -> None:
    queue, done = SegmentQueue(), list[SegmentGroup]()
    add(queue, translator, "aa", "ab", "ac", "ad", "ae", done=done)
    queue.deliver(queue.take(lambda _: 1_000), [None] * 4)
    assert done == []
    last = queue.take(lambda _: 1_000)
    queue.deliver(last, [None])
    assert done == [last[0].group]


def test_the_next_request_has_the_first_turn_of_the_next_batch(translator: Translator) -> None:
    queue = SegmentQueue()
    add(queue, translator, "aa", "ab", "ac")
    add(queue, translator, "ba", "bb", "bc")
    assert take(queue, max_tokens=1) == ["aa"]
    assert take(queue, max_tokens=1) == ["ba"]
    assert take(queue, max_tokens=1) == ["ab"]


def test_a_group_with_an_error_is_done_before_all_its_segments_are(translator: Translator) -> None:
    queue, done = SegmentQueue(), list[SegmentGroup]()
    add(queue, translator, "aa", "ab", "ac", "ad", "ae", done=done)
    batch = queue.take(lambda _: 1_000)
    batch[0].group.error = RuntimeError("a planted fault")
    queue.deliver(batch, [None] * 4)
    assert done == [batch[0].group]


@pytest.mark.parametrize("abort", [False, True])
def test_only_a_queue_that_is_broken_off_cancels_what_is_translated(translator: Translator, abort: bool) -> None:
    queue = SegmentQueue()
    translated, delivered = (add(queue, translator, text) for text in ("aa", "bb"))
    batch = queue.take(lambda _: 1_000)
    queue.deliver(batch[1:], [None])
    queue.close(abort=abort)
    assert (translated.cancelled, delivered.cancelled) == (abort, False)


def test_a_closed_queue_gives_nothing(translator: Translator) -> None:
    queue = SegmentQueue()
    add(queue, translator, "aa")
    queue.close()
    assert take(queue) == []


def test_speed_is_in_tokens_for_each_translator_and_in_texts_for_all(translator: Translator) -> None:
    speed = TranslationSpeed()
    assert (speed.texts, speed.batch_tokens(translator)) == (10.0, float("inf"))
    speed.update(translator, 5, 100, 0.5)
    assert (speed.texts, speed.batch_tokens(translator)) == pytest.approx((0.8 * 10 + 0.2 * 10, 200))
    speed.update(translator, 1, 400, 1.0)
    assert (speed.texts, speed.batch_tokens(translator)) == pytest.approx((0.8 * 10 + 0.2 * 1, 0.8 * 200 + 0.2 * 400))
