from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from allyouneed import Bundle, fit
from allyouneed.data.pairs import Side
from allyouneed.data.prepared_files import open_training_ids
from allyouneed.evaluation import baselines
from allyouneed.evaluation.baselines import affordable_pairs, find_nearest, nearest_training_pairs
from runs import TINY

SENTENCES = some.lists(some.lists(some.integers(0, 5), max_size=6), max_size=12)


def similarity(first: list[int], second: list[int]) -> float:
    a, b = ({*((x,) for x in ids), *pairwise(ids)} for ids in (first, second))
    return 2 * len(a & b) / (len(a) + len(b)) if a or b else 0.0


@given(SENTENCES, SENTENCES.filter(lambda corpus: any(corpus)), some.integers(1, 3))
def test_the_nearest_are_those_of_all_comparisons(
    queries: list[list[int]], corpus: list[list[int]], count: int
) -> None:
    corpus = [ids for ids in corpus if ids]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(baselines, "SEARCHED_AT_ONCE", 5)
        nearest = find_nearest(queries, Side.from_sentences(corpus), count=count)
    assert nearest.shape == (len(queries), min(count, len(corpus)))
    for query, rows in zip(queries, nearest, strict=True):
        assert rows.tolist() == sorted(range(len(corpus)), key=lambda i: -similarity(query, corpus[i]))[:count]


def test_the_order_of_the_tokens_counts() -> None:
    corpus = [[3, 2, 1], [1, 2, 9], [1, 2, 3, 4]]
    assert find_nearest([[1, 2, 3]], Side.from_sentences(corpus)).tolist() == [[2]]


def test_of_a_large_corpus_evenly_spaced_sources_are_searched() -> None:
    corpus = Side.from_sentences([[i] for i in range(100)])
    nearest = find_nearest([[30], [31]], corpus, searched=10)
    assert nearest.tolist() == [[30], [0]]  # 31 is not among 0, 10, 20, …
    assert nearest.dtype == np.int64


def test_less_time_searches_fewer_pairs() -> None:
    assert affordable_pairs(500, 1_000_000, seconds=3) == 300_000
    assert affordable_pairs(500, 1_000_000, seconds=0.3) == 30_000
    assert affordable_pairs(500, 20_000, seconds=3) == 20_000
    assert affordable_pairs(500, 20_000, seconds=0) == 1


def test_the_nearest_training_pairs_are_those_that_the_run_has_learned_from(tmp_path: Path) -> None:
    run = tmp_path / "run"
    fit(TINY, run, evaluate=None)
    known, tokenizer = open_training_ids(run / "data"), Bundle.load(run).source_tokenizer
    assert known
    learned = [tuple(map(tokenizer.decode, (known.source[row], known.target[row]))) for row in range(len(known))]
    nearest = nearest_training_pairs(run, [learned[7][0], "☃"])
    assert nearest["☃"] == []
    assert nearest[learned[7][0]][0] == learned[7]
    assert len(set(nearest[learned[7][0]]) & set(learned)) == 2
    assert nearest_training_pairs(tmp_path, ["1845-01-05"]) == {}
