"""Find training pairs similar to a text.

They show what a model could have learned from. The target of the nearest pair is a translation that needs no model.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..config import Recipe
from ..data.pairs import Pair, Side
from ..data.prepared_files import open_training_ids
from ..errors import InputError
from ..text.tokenizer import Tokenizer
from ..text.vocabulary import Vocabulary
from .held_out import find_prepared

COMPARISONS_PER_SECOND = 50_000_000  # of a query with a training source; a fast core makes twice as many
SEARCHED_AT_ONCE = 20_000  # training sources that are searched at a time, so that the numbers fit into a cache
_BITS = 21  # of an id; a feature of two ids has 42 bits, which leaves room for the sentence's index in its chunk

Integers = NDArray[np.int64]


def nearest_training_pairs(
    run: Path, texts: Sequence[str], *, count: int = 2, seconds: float = 3.0
) -> dict[str, list[Pair]]:
    """Find, for each text, the training pairs of a run whose sources are most similar to it, best first.

    Equal pairs count once. Searches only as many training pairs as fit into `seconds`. The result is empty for a folder
    without training pairs.
    """
    known = None
    if texts and (run / "recipe.toml").is_file():
        known = open_training_ids(find_prepared(run, Recipe.read(run / "recipe.toml")))
    if not known:
        return {}
    vocabulary = Vocabulary.load(run, joint=not (run / "tokenizer.target.json").exists())
    queries = [encode_known(vocabulary.source, text) for text in texts]
    searched = affordable_pairs(len(texts), len(known), seconds=seconds)
    nearest = find_nearest(queries, known.source, searched=searched, count=2 * count)  # some of the pairs may be equal
    found = {}
    for text, query, rows in zip(texts, queries, nearest, strict=True):
        alike = [row for row in rows if {*query[1:-1]} & {*known.source[row][1:-1]}]
        sources, targets = vocabulary.source, vocabulary.target
        pairs = (Pair(sources.decode(known.source[row]), targets.decode(known.target[row])) for row in alike)
        found[text] = list(dict.fromkeys(pairs))[:count]
    return found


def encode_known(tokenizer: Tokenizer, text: str) -> list[int]:
    """Return the ids of a text, or [] if it has a character that no training text has."""
    try:
        return tokenizer.encode(text)
    except InputError:
        return []


def find_nearest(
    queries: Sequence[Sequence[int]], sources: Side, *, searched: int | None = None, count: int = 1
) -> Integers:
    """Find the most similar training sources for each query, best first; among equals, the earlier comes first.

    The similarity of two sentences is the Dice coefficient of their ids and pairs of neighbouring ids, each counted
    once: twice the number that both have, divided by the sum of both numbers. `searched` limits the search to that many
    evenly spaced sources. Refuses an empty corpus. Returns the indices of sources, (queries, count) or fewer columns.
    """
    assert len(sources)
    features = [_distinct(_features(np.array(query, np.int64), np.zeros(len(query), np.int64))[1]) for query in queries]
    known = _distinct(np.concatenate([*features, np.zeros(0, np.int64)]))
    columns = [np.searchsorted(known, one) for one in features]
    searched = min(len(sources), searched or len(sources))
    best = np.full((len(queries), 0), -1.0)
    nearest = np.zeros((len(queries), 0), np.int64)
    for rows in _chunks(len(sources), searched):
        sizes, postings, ends = _index(sources, rows, known)
        similarities = []
        for own_columns in columns:
            shared = [postings[ends[column] : ends[column + 1]] for column in own_columns]
            counts = np.bincount(np.concatenate([*shared, postings[:0]]), minlength=len(rows))
            similarities.append(_first_highest(2 * counts / (sizes + len(own_columns)), count))
        of_chunk = np.array([order for order, _ in similarities], np.int64).reshape(len(queries), min(count, len(rows)))
        values = np.array([highest for _, highest in similarities]).reshape(of_chunk.shape)
        best = np.concatenate([best, values], 1)
        nearest = np.concatenate([nearest, rows[of_chunk]], 1)
        order = np.argsort(-best, 1, kind="stable")[:, :count]
        best, nearest = np.take_along_axis(best, order, 1), np.take_along_axis(nearest, order, 1)
    return nearest


def _first_highest(values: NDArray[np.float64], count: int) -> tuple[Integers, NDArray[np.float64]]:
    """Return the positions of the `count` highest values, earlier positions first among equals, and these values."""
    if count == 1:
        order = np.array([values.argmax()])
    else:
        lowest = np.partition(values, -count)[-count] if len(values) > count else -np.inf
        candidates = np.flatnonzero(values >= lowest)
        order = candidates[np.argsort(-values[candidates], kind="stable")[:count]]
    return order, values[order]


def affordable_pairs(queries: int, pairs: int, *, seconds: float) -> int:
    """Return how many training pairs can be searched for this number of queries in the time, on a slow core."""
    return min(pairs, max(1, int(COMPARISONS_PER_SECOND * seconds) // max(1, queries)))


def _chunks(pairs: int, searched: int) -> Iterator[Integers]:
    rows = np.linspace(0, pairs, searched, endpoint=False).astype(np.int64)
    for begin in range(0, searched, SEARCHED_AT_ONCE):
        yield rows[begin : begin + SEARCHED_AT_ONCE]


def _index(sources: Side, rows: Integers, known: Integers) -> tuple[Integers, Integers, Integers]:
    """Count the features of these sources, and list, for each of the `known` features, the sources that have it.

    The lists contain positions within `rows`: the list of feature i is postings[ends[i]:ends[i + 1]].
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
    """Return all ids and all pairs of neighbouring ids, each as one number, together with its sentence."""
    within = sentences[:-1] == sentences[1:]
    pairs = ((ids[:-1] + 1) << _BITS | ids[1:])[within]
    return np.concatenate([sentences, sentences[:-1][within]]), np.concatenate([ids, pairs])


def _distinct(numbers: Integers) -> Integers:
    """Return the distinct numbers, sorted. np.unique uses hashing, which is many times slower here."""
    ordered = np.sort(numbers)
    different: Integers = ordered[np.append(np.full(min(1, len(ordered)), True), ordered[1:] != ordered[:-1])]
    return different
