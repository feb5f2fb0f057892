"""A language model that is a table of numbers: no weights, no encoder, nothing to train."""

import math
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

from allyouneed.decode import SearchLimits, Step

SOS, EOS = 0, 1


def limits(*max_lengths: int) -> SearchLimits:
    """The limits of a search over a `Table`, of as many sentences as there are lengths."""
    return SearchLimits(sos_id=SOS, eos_id=EOS, max_lengths=torch.tensor(max_lengths))


@dataclass(frozen=True)
class Prefixes:
    """A state that is nothing but the words so far, (N, L), and each row's sentence, (N,)."""

    words: Tensor
    sentences: Tensor

    def reorder(self, hypotheses: Tensor) -> "Prefixes":
        # What a hypothesis becomes must belong to the same sentence.
        return Prefixes(self.words[hypotheses], self.sentences[hypotheses])

    def keep(self, sentences: Tensor) -> "Prefixes":
        rows = torch.arange(len(self.words)).view(len(set(self.sentences.tolist())), -1)[sentences].flatten()
        return Prefixes(self.words[rows], self.sentences[rows])


@dataclass(frozen=True)
class Table:
    """Random log-probabilities of `vocabulary` words for every prefix of every sentence; 0 is never said."""

    vocabulary: int
    seed: int
    evenness: float = 1.0

    def after(self, sentence: int, prefix: tuple[int, ...]) -> Tensor:
        rng = torch.Generator().manual_seed(hash((self.seed, sentence, prefix)) % 2**31)
        logits = torch.randn(self.vocabulary, generator=rng, dtype=torch.float64) / self.evenness
        logits[SOS] = -torch.inf
        return logits.log_softmax(-1)

    def start(self, sentences: int) -> Prefixes:
        return Prefixes(torch.empty(sentences, 0, dtype=torch.int64), torch.arange(sentences))

    def __call__(self, last: Tensor, state: Prefixes) -> tuple[Tensor, Prefixes]:
        words = torch.cat((state.words, last[:, None]), 1)
        rows = [
            self.after(sentence, tuple(prefix[1:]))
            for sentence, prefix in zip(state.sentences.tolist(), words.tolist(), strict=True)
        ]
        return torch.stack(rows), Prefixes(words, state.sentences)

    def log_probability(self, sentence: int, ids: tuple[int, ...]) -> float:
        return sum(float(self.after(sentence, ids[:i])[ids[i]]) for i in range(len(ids)))

    def every_sentence(self, longest: int) -> list[tuple[int, ...]]:
        """All sentences of at most `longest` ids, the end sign included."""
        words = range(2, self.vocabulary)
        return [(*ids, EOS) for length in range(longest) for ids in product(words, repeat=length)]


def make_step(after: dict[tuple[int, ...], dict[int, float]], vocabulary: int) -> Step[Prefixes]:
    """A model given by its probabilities after each beginning; after others it ends."""

    def step(last: Tensor, state: Prefixes) -> tuple[Tensor, Prefixes]:
        words = torch.cat((state.words, last[:, None]), 1)
        rows = torch.full((len(words), vocabulary), -torch.inf)
        for row, prefix in zip(rows, words.tolist(), strict=True):
            for word, probability in after.get(tuple(prefix[1:]), {EOS: 1.0}).items():
                row[word] = math.log(probability)
        return rows, Prefixes(words, state.sentences)

    return step
