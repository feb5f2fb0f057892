"""Which segments share a batch: a queue without threads."""

from dataclasses import replace

import pytest

from allyouneed import Tokenizer, Transformer, Translator
from allyouneed.bundle import Bundle
from allyouneed.config import DecodeConfig
from allyouneed.serve.segment_queue import QueuedRequest, QueuedSegment, SegmentGroup, SegmentQueue
from allyouneed.serve.translation_options import PLAIN, TranslationOptions
from conftest import SMALL


@pytest.fixture(scope="module")
def translator() -> Translator:
    tokenizer = Tokenizer.characters("abcdefghij")
    model = Transformer(replace(SMALL, vocab_size=len(tokenizer), pad_id=tokenizer.pad_id)).eval()
    return Translator(Bundle(model, tokenizer, tokenizer, DecodeConfig(batch_size=4)))


def add(queue: SegmentQueue, translator: Translator, *texts: str, options: TranslationOptions = PLAIN) -> QueuedRequest:
    request = QueuedRequest(translator, options)
    split = translator.split(texts, prefix=options.prefix, glossary=dict(options.glossary))
    queue.add(SegmentGroup(request, split, lambda _: None))
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


def take_more(queue: SegmentQueue, taken: QueuedSegment, *, size: int = 4, max_tokens: float = 1_000) -> list[str]:
    return [one.segment.text for one in queue.take_more(taken.kind, size, max_tokens)]


def test_segments_join_a_batch_that_has_room(translator: Translator) -> None:
    queue = SegmentQueue()
    add(queue, translator, "aa")
    (taken,) = queue.take(lambda _: 1_000)
    assert taken.can_join
    assert take_more(queue, taken) == []
    add(queue, translator, "ba", "bb", "bc", "bd")
    assert take_more(queue, taken, size=0) == []
    assert take_more(queue, taken, max_tokens=3) == []
    assert take_more(queue, taken, max_tokens=8) == ["ba", "bb"]
    assert take_more(queue, taken) == ["bc", "bd"]
    queue.close()
    add(queue, translator, "ca")
    assert take_more(queue, taken) == []


def test_nothing_joins_while_it_is_the_turn_of_another_kind(translator: Translator) -> None:
    """Else it would wait as long as others come."""
    queue = SegmentQueue()
    add(queue, translator, "aa")
    (taken,) = queue.take(lambda _: 1_000)
    add(queue, translator, "ba", options=TranslationOptions(prefix="a"))
    add(queue, translator, "ca")
    assert take_more(queue, taken) == []
    assert take(queue) == ["ba"]
    assert take_more(queue, taken) == ["ca"]


def test_a_request_that_is_dropped_waits_no_longer(translator: Translator) -> None:
    queue = SegmentQueue()
    request = add(queue, translator, "aa", "ab")
    add(queue, translator, "ba")
    queue.drop(request)
    assert take(queue) == ["ba"]


def test_a_group_is_done_when_all_its_segments_are(translator: Translator) -> None:
    queue = SegmentQueue()
    add(queue, translator, "aa", "ab", "ac", "ad", "ae")
    batch: list[QueuedSegment] = queue.take(lambda _: 1_000)
    assert queue.deliver(batch, [None] * 4) == []
    last = queue.take(lambda _: 1_000)
    assert queue.deliver(last, [None]) == [last[0].group]


def test_a_closed_queue_gives_nothing(translator: Translator) -> None:
    queue = SegmentQueue()
    add(queue, translator, "aa")
    queue.close()
    assert take(queue) == []
