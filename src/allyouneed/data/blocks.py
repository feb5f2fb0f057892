"""What preparation does with each pair alone, a block of pairs at a time: cleaning and encoding.

A block can be worked on by any process, of this machine or of another: its result depends on nothing but the block, and
the results are joined in the order of the blocks.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..config import CleanConfig
from ..errors import DataError, InputError
from ..text.vocabulary import Vocabulary
from .clean import as_example, broken_rule, clean_pairs
from .pair import Pair
from .pair_keys import PairKeys
from .report import Part, PartReport, RuleCount
from .store import FlatSentences, encode_within, flatten, flatten_texts

Columns = tuple[list[str], list[str]]  # sources and targets, which cross to another process faster than pairs do


class CleanedBlock(NamedTuple):
    """Pairs as texts and keys, and a report on the pairs of the block."""

    source: FlatSentences
    target: FlatSentences
    keys: PairKeys
    report: PartReport


CleanBlocks = Callable[[Iterable[Columns]], Iterator[CleanedBlock]]


class PairsToEncode(NamedTuple):
    """Some pairs, and the index of each among all that were read."""

    columns: Columns
    rows: Sequence[int]


class EncodedBlock(NamedTuple):
    """The ids of the pairs that are short enough, their indices, and how many were too long."""

    source: FlatSentences
    target: FlatSentences
    rows: list[int]
    too_long: RuleCount


def columns(pairs: Iterable[Pair]) -> Columns:
    """The sources and the targets of pairs."""
    sources, targets = [], []
    for source, target in pairs:
        sources.append(source)
        targets.append(target)
    return sources, targets


def clean_block(block: Columns, clean: CleanConfig) -> CleanedBlock:
    """Normalize pairs, drop those with an empty side, and note the rule that each of the others breaks."""
    keys, report = PairKeys(), PartReport()
    pairs = list(clean_pairs(map(Pair, *block), clean, report))
    for pair in pairs:
        keys.add(pair, broken_rule(pair, clean))
    sources, targets = columns(pairs)
    return CleanedBlock(flatten_texts(sources), flatten_texts(targets), keys, report)


@dataclass(frozen=True, slots=True)
class BlockEncoder:
    """Encodes pairs of one part as ids of type `dtype`, without those of more than `max_length` tokens on a side.

    `advice` ends the message about a text that the vocabulary cannot encode.
    """

    part: Part
    vocabulary: Vocabulary
    max_length: int
    dtype: str
    advice: str = ""

    def __call__(self, block: PairsToEncode) -> EncodedBlock:
        pairs = list(map(Pair, *block.columns))
        try:
            ids = encode_within(pairs, self.vocabulary.source, self.vocabulary.target, max_length=self.max_length)
        except InputError as error:
            raise DataError(f"data.{self.part}: {error}{self.advice}") from error
        too_long = RuleCount()
        for i in sorted(set(range(len(pairs))).difference(ids.kept)):
            too_long.add(as_example(pairs[i]))
        return EncodedBlock(
            flatten([ids.sources[i] for i in ids.kept], self.dtype),
            flatten([ids.targets[i] for i in ids.kept], self.dtype),
            [block.rows[i] for i in ids.kept],
            too_long,
        )
