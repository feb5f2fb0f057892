"""A language model that is a table of numbers: no weights, no encoder, nothing to train, and plain Python."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby, product
from random import Random

from allyouneed.decode import Continuation, Restriction, SearchLimits

SOS, EOS = 0, 1


def limits(*max_lengths: int) -> SearchLimits:
    """Make the limits of a search over a `Table`, of as many sentences as there are lengths."""
    return SearchLimits(sos_id=SOS, eos_id=EOS, max_lengths=max_lengths)


class TableStep:
    """A `Step` over a function of a sentence and its words so far → log-probabilities of the next."""

    def __init__(self, after: Callable[[int, tuple[int, ...]], Sequence[float]], sentences: Sequence[int]) -> None:
        self.after, self.sentences = after, list(sentences)
        self.words: list[tuple[int, ...]] = [()] * len(sentences)
        self.rows: list[list[float]] = []

    def __call__(self, hypotheses: Sequence[int], tokens: Sequence[int]) -> None:
        self.sentences = [self.sentences[n] for n in hypotheses]
        assert self.sentences == sorted(self.sentences), "hypotheses of a sentence are side by side, in order"
        self.words = [(*self.words[n], token) for n, token in zip(hypotheses, tokens, strict=True)]
        pairs = zip(self.sentences, self.words, strict=True)
        self.rows = [list(self.after(sentence, words[1:])) for sentence, words in pairs]

    def restrict(self, hypothesis: int, restriction: Restriction) -> None:
        banned, forced, penalized, penalty = restriction
        row = [gain * penalty if token in penalized else gain for token, gain in enumerate(self.rows[hypothesis])]
        left = [-math.inf if token in banned or forced not in (None, token) else gain for token, gain in enumerate(row)]
        self.rows[hypothesis] = left if max(left) > -math.inf else row

    def best(self, totals: Sequence[float], count: int) -> list[list[Continuation]]:
        found = []
        for _, group in groupby(range(len(totals)), key=self.sentences.__getitem__):
            every = [
                Continuation(totals[n] + gain, n, token)
                for n in group
                for token, gain in enumerate(self.rows[n])
                if totals[n] + gain > -math.inf
            ]
            found.append(sorted(every, key=lambda one: (-one.total, one.hypothesis, one.token))[:count])
        return found

    def log_probability(self, hypothesis: int, token: int) -> float:
        return self.rows[hypothesis][token]


@dataclass(frozen=True)
class Table:
    """Random log-probabilities of `vocabulary` words for every prefix of every sentence; 0 is never said."""

    vocabulary: int
    seed: int
    evenness: float = 1.0

    def after(self, sentence: int, prefix: tuple[int, ...]) -> tuple[float, ...]:
        return _random_row(self.vocabulary, self.evenness, repr((self.seed, sentence, prefix)))

    def start(self, *sentences: int) -> TableStep:
        return TableStep(self.after, sentences)

    def log_probability(self, sentence: int, ids: tuple[int, ...]) -> float:
        return sum(self.after(sentence, ids[:i])[ids[i]] for i in range(len(ids)))

    def every_sentence(self, longest: int) -> list[tuple[int, ...]]:
        """List all sentences of at most `longest` ids, the end sign included."""
        words = range(2, self.vocabulary)
        return [(*ids, EOS) for length in range(longest) for ids in product(words, repeat=length)]


@cache
def _random_row(vocabulary: int, evenness: float, seed: str) -> tuple[float, ...]:
    rng = Random(seed)
    logits = [rng.gauss() / evenness for _ in range(vocabulary)]
    total = math.log(sum(math.exp(logit) for logit in logits[1:]))
    return (-math.inf, *(logit - total for logit in logits[1:]))


def step_by_hand(after: Mapping[tuple[int, ...], Mapping[int, float]], vocabulary: int) -> TableStep:
    """Make a model of one sentence from its probabilities after each beginning; after others it ends."""

    def log_probabilities(_: int, prefix: tuple[int, ...]) -> list[float]:
        probabilities = after.get(prefix, {EOS: 1.0})
        return [math.log(probabilities[word]) if word in probabilities else -math.inf for word in range(vocabulary)]

    return TableStep(log_probabilities, [0])
