"""Inputs and results of checks."""

from dataclasses import dataclass

import torch

from ...config import ModelConfig
from ...data.batch import Batch, pad

LONG = 40  # tokens of the longest sentences: faults that begin at token 20 or 30 show


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check. `passed` is None if the check could not be made."""

    check: str
    passed: bool | None
    explanation: str


@dataclass(frozen=True, slots=True)
class Ids:
    """Sentences of different lengths to try a model on, as ids with `<sos>` and `<eos>`."""

    sources: list[list[int]]
    targets: list[list[int]]
    sos_id: int
    eos_id: int

    def batch(self, config: ModelConfig) -> Batch:
        """All of them at once, padded."""
        return Batch(pad(self.sources, config.pad_id), pad(self.targets, config.effective_target_pad_id))


def random_ids(
    config: ModelConfig,
    *,
    sos_id: int,
    eos_id: int,
    source_special_ids: tuple[int, int] | None = None,
    count: int = 6,
    long: int = LONG,
) -> Ids:
    """`count` pairs of random sentences; the source may have other ids for `<sos>` and `<eos>`.

    The first two have about `long` tokens, the others at most 12.
    """
    rng = torch.Generator().manual_seed(1)
    ids = range(min(config.vocab_size, config.effective_target_vocab_size))
    source_sos, source_eos = source_special_ids or (sos_id, eos_id)
    special = (config.pad_id, config.effective_target_pad_id, sos_id, eos_id, source_sos, source_eos)
    tokens = [i for i in ids if i not in special]
    room = max(1, config.max_length - 4)
    longest = min(long, room)

    def sentence(index: int, sos: int, eos: int) -> list[int]:
        length = longest - index % longest  # lengths differ, so that there is padding
        if index >= 2:  # two long ones are enough
            length = min(12, room) - index % min(12, room)
        return [sos, *(tokens[i] for i in torch.randint(len(tokens), (length,), generator=rng).tolist()), eos]

    sources = [sentence(i, source_sos, source_eos) for i in range(count)]
    return Ids(sources, [sentence((i + count // 2) % count, sos_id, eos_id) for i in range(count)], sos_id, eos_id)
