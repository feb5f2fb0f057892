"""What pairs are compared by: short keys, which stay in memory while their texts are on disk."""

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .clean import dedup_key
from .pair import Pair
from .report import REASONS

Hashes = NDArray[np.uint64]
RULE_NUMBERS = {rule: number for number, rule in enumerate(REASONS, start=1)}


@dataclass(slots=True)
class PairKeys:
    """What pairs are compared by, 25 bytes a pair: the number of the rule of `PAIR_RULES` it breaks, or 0, and hashes.

    `exact` hashes the whole pair; `source` and `target` hash the dedup key of a side, which ignores case and spaces.
    Hashes have 64 bits: of corpora of ten million texts, about 1 in 300,000 has two texts with the same hash.
    """

    rule: bytearray = field(default_factory=bytearray)
    exact: bytearray = field(default_factory=bytearray)
    source: bytearray = field(default_factory=bytearray)
    target: bytearray = field(default_factory=bytearray)

    def add(self, pair: Pair, rule: str) -> None:
        """Append the keys of one pair."""
        self.rule.append(RULE_NUMBERS[rule] if rule else 0)
        self.exact += _hash(f"{pair.source}\n{pair.target}")
        self.source += _hash(dedup_key(pair.source))
        self.target += _hash(dedup_key(pair.target))

    def extend(self, later: "PairKeys") -> None:
        """Append the keys of later pairs."""
        for name in ("rule", "exact", "source", "target"):
            getattr(self, name).extend(getattr(later, name))

    def hashes(self, name: Literal["exact", "source", "target"]) -> Hashes:
        """One hash of each pair."""
        return np.frombuffer(getattr(self, name), np.uint64)

    def __len__(self) -> int:
        return len(self.rule)


def _hash(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=8).digest()
