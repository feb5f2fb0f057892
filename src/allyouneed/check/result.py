"""What a check takes and what it says."""

from dataclasses import dataclass

import torch

from ..config import ModelConfig
from ..data.batch import Batch, pad

LONG = 40  # words of the longest sentences; faults that begin with the second or third dozen show


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check found, in words. `fine` is None where it could not be made."""

    check: str
    passed: bool | None
    explanation: str


@dataclass(frozen=True, slots=True)
class Ids:
    """Sentences to try a model on: ids with their start and end signs, of different lengths."""

    sources: list[list[int]]
    targets: list[list[int]]
    sos_id: int
    eos_id: int

    def batch(self, pad_id: int) -> Batch:
        """All of them at once, padded."""
        return Batch(pad(self.sources, pad_id), pad(self.targets, pad_id))


def random_ids(
    config: ModelConfig,
    *,
    sos_id: int,
    eos_id: int,
    source_signs: tuple[int, int] | None = None,
    count: int = 6,
    seed: int = 1,
    long: int = LONG,
) -> Ids:
    """`count` pairs of random words for a model whose start and end signs are these; the source may have its own.

    The first two are about `long` words long, the others 12 at most.
    """
    chance = torch.Generator().manual_seed(seed)
    ids = range(min(config.vocab_size, config.effective_target_vocab_size))
    begin, end = source_signs or (sos_id, eos_id)
    words = [i for i in ids if i not in (config.pad_id, sos_id, eos_id, begin, end)]
    room = max(1, config.max_length - 4)
    longest = min(long, room)

    def sentence(place: int, begin: int, end: int) -> list[int]:
        length = longest - place % longest  # lengths differ, so that there is padding
        if place >= 2:  # two long ones are enough
            length = min(12, room) - place % min(12, room)
        return [begin, *(words[i] for i in torch.randint(len(words), (length,), generator=chance).tolist()), end]

    sources = [sentence(i, begin, end) for i in range(count)]
    return Ids(sources, [sentence((i + count // 2) % count, sos_id, eos_id) for i in range(count)], sos_id, eos_id)
