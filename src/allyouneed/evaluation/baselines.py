"""The target of the nearest training pair: a translation without a model, which every model should surpass."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ..data.pairs import Side

COMPARISONS_PER_SECOND = 50_000_000  # of a query with a training source; a fast core makes twice as many
SEARCHED_AT_ONCE = 20_000  # training sources that are searched at a time, so that the numbers fit into a cache
_BITS = 21  # of an id; a feature of two ids has 42, and the number of a sentence in its chunk fits above

Integers = NDArray[np.int64]


def find_nearest(queries: Sequence[Sequence[int]], sources: Side, *, searched: int | None = None) -> Integers:
    """Find for each query the number of the most similar training source, the first of several equal ones.

    The similarity of two sentences of ids is the Dice coefficient of their ids and pairs of neighbouring ids, each
    counted once: twice the number that both have, divided by the sum of both numbers. `searched` limits
    the search to as many evenly spaced sources. Refuses an empty corpus. Returns shape (queries,).
    """
    assert len(sources)
    features = [_distinct(_features(np.array(query, np.int64), np.zeros(len(query), np.int64))[1]) for query in queries]
    known = _distinct(np.concatenate([*features, np.zeros(0, np.int64)]))
    columns = [np.searchsorted(known, one) for one in features]
    best, nearest = np.full(len(queries), -1.0), np.zeros(len(queries), np.int64)
    for rows in _chunks(len(sources), min(len(sources), searched or len(sources))):
        sizes, postings, ends = _index(sources, rows, known)
        for number, own_columns in enumerate(columns):
            shared = [postings[ends[column] : ends[column + 1]] for column in own_columns]
            counts = np.bincount(np.concatenate([*shared, postings[:0]]), minlength=len(rows))
            similarity = 2 * counts / (sizes + len(own_columns))
            row = int(similarity.argmax())
            if similarity[row] > best[number]:
                best[number], nearest[number] = similarity[row], rows[row]
    return nearest


def affordable_pairs(queries: int, pairs: int, *, seconds: float) -> int:
    """Return how many of the training pairs can be searched for this number of queries in the time, on a slow core."""
    return min(pairs, max(1, int(COMPARISONS_PER_SECOND * seconds) // max(1, queries)))


def _chunks(pairs: int, searched: int) -> Iterator[Integers]:
    rows = np.linspace(0, pairs, searched, endpoint=False).astype(np.int64)
    for begin in range(0, searched, SEARCHED_AT_ONCE):
        yield rows[begin : begin + SEARCHED_AT_ONCE]


def _index(sources: Side, rows: Integers, known: Integers) -> tuple[Integers, Integers, Integers]:
    """Count the features of each of these sources, and list for each of the `known` features the sources that have it.

    The lists hold positions within `rows`: feature i has postings[ends[i]:ends[i + 1]].
    """
    starts, lengths = sources.starts[rows], sources.starts[rows + 1] - sources.starts[rows]
    sentences = np.repeat(np.arange(len(rows)), lengths)
    positions = np.arange(len(sentences)) - np.repeat(lengths.cumsum() - lengths, lengths) + np.repeat(starts, lengths)
    where, features = _features(sources.ids[positions].astype(np.int64), sentences)
    once = _distinct(where << 2 * _BITS | features)
    where, features = once >> 2 * _BITS, once & (1 << 2 * _BITS) - 1
    sizes = np.bincount(where, minlength=len(rows))
    columns = np.searchsorted(known, features)
    is_known = columns < len(known)
    is_known[is_known] = known[columns[is_known]] == features[is_known]
    columns, where = columns[is_known], where[is_known]
    order = np.argsort(columns, kind="stable")
    return sizes, where[order], np.searchsorted(columns[order], np.arange(len(known) + 1))


def _features(ids: Integers, sentences: Integers) -> tuple[Integers, Integers]:
    """Return every id and every pair of neighbours within a sentence, as one number, and the sentence of each."""
    within = sentences[:-1] == sentences[1:]
    pairs = ((ids[:-1] + 1) << _BITS | ids[1:])[within]
    return np.concatenate([sentences, sentences[:-1][within]]), np.concatenate([ids, pairs])


def _distinct(numbers: Integers) -> Integers:
    """Return the different numbers in order; np.unique hashes, which is many times slower here."""
    ordered = np.sort(numbers)
    different: Integers = ordered[np.append(np.full(min(1, len(ordered)), True), ordered[1:] != ordered[:-1])]
    return different
