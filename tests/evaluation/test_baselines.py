from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from allyouneed.data.store import Side
from allyouneed.evaluation import baselines
from allyouneed.evaluation.baselines import find_nearest, searched_pairs

SENTENCES = some.lists(some.lists(some.integers(0, 5), max_size=6), max_size=12)


def similarity(first: list[int], second: list[int]) -> float:
    a, b = ({*((x,) for x in ids), *pairwise(ids)} for ids in (first, second))
    return 2 * len(a & b) / (len(a) + len(b)) if a or b else 0.0


@given(SENTENCES, SENTENCES.filter(lambda corpus: any(corpus)))
def test_the_nearest_is_that_of_all_comparisons(queries: list[list[int]], corpus: list[list[int]]) -> None:
    corpus = [ids for ids in corpus if ids]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(baselines, "SEARCHED_AT_ONCE", 5)
        nearest = find_nearest(queries, Side.from_sentences(corpus))
    for query, row in zip(queries, nearest, strict=True):
        assert row == max(range(len(corpus)), key=lambda i: similarity(query, corpus[i]))


def test_the_order_of_the_tokens_counts() -> None:
    corpus = [[3, 2, 1], [1, 2, 9], [1, 2, 3, 4]]
    assert find_nearest([[1, 2, 3]], Side.from_sentences(corpus)).tolist() == [2]


def test_of_a_large_corpus_evenly_spaced_sources_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baselines, "SEARCHED_AT_ONCE", 4)
    monkeypatch.setattr(baselines, "MAX_COMPARISONS", 20)
    assert searched_pairs(queries=2, pairs=100) == 10
    assert searched_pairs(queries=2, pairs=7) == 7
    corpus = Side.from_sentences([[i] for i in range(100)])
    nearest = find_nearest([[30], [31]], corpus)
    assert nearest.tolist() == [30, 0]  # 31 is not among 0, 10, 20, …
    assert nearest.dtype == np.int64
