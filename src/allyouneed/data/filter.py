"""Which pairs of a corpus are trained on, which are held out and which are dropped: the rules that compare pairs."""

import random
from collections.abc import Iterable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..config import CleanConfig, DataConfig
from ..corpus.clean import EXAMPLES, DataReport, as_example
from ..corpus.pair import Pair
from ..errors import DataError
from .read import RULE_NUMBERS, Hashes, PairKeys, ReadPairs

Mask = NDArray[np.bool_]

HELD_OUT_MOST = 2_000  # pairs that validation holds when it is split off, and the test
TARGETS_REPEAT = 0.5  # share of the pairs; where more have a target that others have too, that is the task
FEWEST_HELD_OUT = 8  # pairs that say anything about a model
BY_THEMSELVES = ("longest", "ratio", "copies")  # rules that saw one pair at a time

_SIDES: tuple[Literal["source", "target"], ...] = ("source", "target")


class SelectedPairs(NamedTuple):
    """The places of the pairs to train on, and the pairs held out."""

    train: NDArray[np.int32]
    valid: list[Pair]
    test: list[Pair]


def select_pairs(
    data: DataConfig, clean: CleanConfig, train: ReadPairs, valid: ReadPairs, test: ReadPairs, report: DataReport
) -> SelectedPairs:
    """Apply the rules of `clean`, split if `data` gives no validation pairs, and report every pair left out.

    Pairs made on the spot are under no rule. Refuses a corpus that is too small to split.
    """
    marks = train.keys
    keep = np.ones(len(marks), bool)
    free = _made_on_the_spot(train)
    broken = np.frombuffer(marks.rule, np.uint8)
    rules = [(rule, ~free & (broken == RULE_NUMBERS[rule])) for rule in BY_THEMSELVES]
    if clean.deduplicate:
        rules.append(("duplicates", ~free & find_duplicates(marks)))
    dropped = _apply(rules, keep, clean, report)

    apart = [_drawn(valid, data.max_valid_samples, data.seed), list(test.pairs(range(len(test))))]
    theirs = {side: [part.keys.hashes(side) for part in (valid, test)] for side in _SIDES}
    if not valid.ends and data.held_out:
        parts = assign_splits(marks, share=data.held_out, parts=1 if test.ends else 2, seed=data.seed)
        usable = int(keep.sum())
        for number in range(1, parts.max(initial=1) + 1):
            mask = _first_shuffled(
                marks, keep & (parts == number), most=data.max_valid_samples or HELD_OUT_MOST, seed=data.seed
            )
            _refuse_too_small(int(mask.sum()), usable, data)
            apart[number - 1] = list(train.pairs(np.flatnonzero(mask)))
            for side in _SIDES:
                theirs[side].append(marks.hashes(side)[mask])
            keep &= ~mask
        dropped["held_back"] = keep & (parts > 0)
        keep &= parts == 0

    sides = [side for side in _SIDES if clean.overlap in (side, "either")]
    overlaps = {f"overlap_{side}": ~free & _among(marks.hashes(side), np.concatenate(theirs[side])) for side in sides}
    report.repeated_targets = _share_repeated(marks.hashes("target")[keep & ~free])
    if clean.overlap == "either" and report.repeated_targets > TARGETS_REPEAT:
        by_target = overlaps.pop("overlap_target")
        report.skipped_rules["overlap_target"] = float((by_target & keep).sum() / max(1, keep.sum()))
    dropped |= _apply(overlaps.items(), keep, clean, report)
    if 0 < data.max_train_samples < keep.sum():
        chosen = np.flatnonzero(keep)[random.Random(data.seed).sample(range(int(keep.sum())), data.max_train_samples)]
        dropped["limit"] = keep.copy()
        dropped["limit"][chosen] = False
        keep &= ~dropped["limit"]

    for rule, mask in dropped.items():
        found = report.dropped[rule]
        found.count += int(mask.sum())
        found.examples += map(as_example, train.pairs(np.flatnonzero(mask)[:EXAMPLES]))
    report.valid, report.test = map(len, apart)
    return SelectedPairs(np.flatnonzero(keep).astype(np.int32), *apart)


def assign_splits(marks: PairKeys, *, share: float, parts: int, seed: int) -> NDArray[np.int8]:
    """For each pair the part it is in: 0 to train on, or 1 to `parts`, each with that share.

    A pair's part follows from its own text and the seed, whatever else the corpus holds: more lines
    never move it. Pairs that differ only in case and blanks are in one part.
    """
    place = _shuffle_keys(marks, seed)
    part = np.zeros(len(marks), np.int8)
    for number in range(parts, 0, -1):
        part[place < np.uint64(int(share * number * 2**64))] = number
    return part


def find_duplicates(marks: PairKeys) -> Mask:
    """The pairs that stood before, letter for letter."""
    _, first = np.unique(marks.hashes("exact"), return_index=True)
    mask = np.ones(len(marks), bool)
    mask[first] = False
    return mask


def _apply(rules: Iterable[tuple[str, Mask]], keep: Mask, clean: CleanConfig, report: DataReport) -> dict[str, Mask]:
    """Take out of `keep` what each rule finds, and return it.

    A rule that would drop more of the pairs than the share `clean.max_dropped` says what the task is, not what
    is wrong with it: it is left out, and reported.
    """
    dropped = {}
    for rule, mask in rules:
        found = mask & keep
        share = float(found.sum() / max(1, keep.sum()))
        if share > clean.max_dropped:
            report.skipped_rules[rule] = share
        else:
            dropped[rule] = found
            keep &= ~found
    return dropped


def _share_repeated(hashes: Hashes) -> float:
    """How many of some texts stand among them more than once."""
    _, counts = np.unique(hashes, return_counts=True)
    return float(counts[counts > 1].sum() / max(1, len(hashes)))


def _made_on_the_spot(train: ReadPairs) -> Mask:
    mask = np.zeros(len(train), bool)
    begin = 0
    for end, _, made in train.ends:
        mask[begin:end] = made
        begin = end
    return mask


def _drawn(part: ReadPairs, limit: int, seed: int) -> list[Pair]:
    places: Iterable[int] = range(len(part))
    if 0 < limit < len(part):
        places = sorted(random.Random(seed).sample(range(len(part)), limit))
    return list(part.pairs(places))


def _first_shuffled(marks: PairKeys, mask: Mask, *, most: int, seed: int) -> Mask:
    """At most `most` of the pairs in `mask`: those that come first in the shuffle."""
    chosen = np.flatnonzero(mask)
    few = np.zeros_like(mask)
    few[chosen[np.argsort(_shuffle_keys(marks, seed)[chosen], kind="stable")[:most]]] = True
    return few


def _among(some: Hashes, others: Hashes) -> Mask:
    if len(others) == 0:
        return np.zeros(len(some), bool)
    others = np.sort(others)
    found: Mask = others[np.minimum(np.searchsorted(others, some), len(others) - 1)] == some
    return found


def _shuffle_keys(marks: PairKeys, seed: int) -> Hashes:
    """A number for each pair, as good as random: both hashes and the seed, mixed as splitmix64 mixes."""
    mixed = marks.hashes("source") * np.uint64(0x9E3779B97F4A7C15) + marks.hashes("target")
    mixed += np.uint64(seed * 0xD1342543DE82EF95 % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


def _refuse_too_small(held: int, pairs: int, data: DataConfig) -> None:
    if held < FEWEST_HELD_OUT:
        share = min(0.4, max(2 * data.held_out, 3 * FEWEST_HELD_OUT / max(1, pairs)))
        raise DataError(
            f"the corpus is too small to split: of {pairs:,} usable pairs, data.held_out={data.held_out} keeps {held} "
            f"apart, where at least {FEWEST_HELD_OUT} are needed; name your own pairs in data.valid, hold out more "
            f"(data.held_out={share:.2f}), or train without validation (data.held_out=0)"
        )
