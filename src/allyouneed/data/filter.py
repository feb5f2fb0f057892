"""Apply the cleaning rules that compare pairs, and split off validation and test pairs."""

import random
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..config import CleanConfig, DataConfig
from ..errors import DataError
from .clean import PAIR_RULES, RULE_NUMBERS, CleanPairs, CorpusEnd, Hashes, PairKeys, as_example
from .pairs import Indices, Pair
from .report import MAX_EXAMPLES, DataReport, PartReport

Mask = NDArray[np.bool_]

MAX_HELD_OUT = 2_000  # most validation pairs, and most test pairs, to split off from the training pairs
# If more than this share of the pairs share their target with another pair, repeated targets belong to the task.
TARGETS_REPEAT = 0.5
MIN_HELD_OUT = 8  # held-out pairs; fewer would say too little about a model

_SIDES: tuple[Literal["source", "target"], ...] = ("source", "target")


class SelectedPairs(NamedTuple):
    """The indices of the training pairs, and the held-out pairs."""

    train: Indices
    valid: list[Pair]
    test: list[Pair]


def select_pairs(
    data: DataConfig, clean: CleanConfig, train: CleanPairs, valid: CleanPairs, test: CleanPairs, report: DataReport
) -> SelectedPairs:
    """Apply the rules of `clean`, split if `data` names no validation pairs, and report every pair that is dropped.

    The rules do not apply to generated pairs of tasks. Refuses a corpus that is too small to split, and named
    validation pairs if the rules drop all of them.
    """
    keys = train.keys
    keep = np.ones(len(keys), bool)
    checked = ~mask_corpora(train, lambda corpus: corpus.is_task)
    rules = [(rule, checked & (keys["rule"] == RULE_NUMBERS[rule])) for rule in PAIR_RULES]
    if clean.deduplicate:
        is_repeated = np.ones(len(keys), bool)
        is_repeated[np.unique(keys["exact"], return_index=True)[1]] = False  # keep the first of equal pairs
        rules.append(("deduplicate", checked & is_repeated))
    dropped = _apply(rules, keep, clean, report)

    validate = np.ones(len(valid), bool)
    if 0 < data.max_valid_samples < len(valid):
        validate = _sample(validate, data.max_valid_samples, data.seed)
        _report({"max_valid_samples": ~validate}, valid, report.valid)
    held_out = [list(valid.texts(np.flatnonzero(validate))), list(test.texts())]
    if valid.ends and not held_out[0]:
        raise DataError("data.valid has no pair to use: " + "; ".join(map(str.strip, report.valid.lines())))
    held_out_hashes = {side: [part.keys[side] for part in (valid, test)] for side in _SIDES}
    if not valid.ends and data.held_out:
        masks = _hold_out(data, train, keep, dropped, report, parts=1 if test.ends else 2)
        for number, mask in enumerate(masks):
            held_out[number] = list(train.texts(np.flatnonzero(mask)))
            for side in _SIDES:
                held_out_hashes[side].append(keys[side][mask])

    overlaps = {
        f"overlap_{side}": checked & _among(keys[side], np.concatenate(held_out_hashes[side]))
        for side in _SIDES
        if clean.overlap in (side, "either")
    }
    _, counts = np.unique(keys["target"][keep & checked], return_counts=True)
    report.repeated_targets = float(counts[counts > 1].sum() / max(1, counts.sum()))
    if clean.overlap == "either" and report.repeated_targets > TARGETS_REPEAT:
        by_target = overlaps.pop("overlap_target")
        report.skipped_rules["overlap_target"] = float((by_target & keep).sum() / max(1, keep.sum()))
    dropped |= _apply(overlaps.items(), keep, clean, report)
    if 0 < data.max_train_samples < keep.sum():
        drawn = _sample(keep, data.max_train_samples, data.seed)
        dropped["max_train_samples"] = keep & ~drawn
        keep = drawn

    _report(dropped, train, report.train)
    report.valid.used, report.test.used = map(len, held_out)
    return SelectedPairs(np.flatnonzero(keep).astype(np.int32), *held_out)


def _hold_out(
    data: DataConfig, train: CleanPairs, keep: Mask, dropped: dict[str, Mask], report: DataReport, *, parts: int
) -> list[Mask]:
    """Choose the validation pairs and, if `parts` is 2, the test pairs.

    All pairs of these splits are removed from `keep`; those beyond the largest number of held-out pairs are counted in
    `dropped`. Refuses a split that is too small.
    """
    if train.ends and all(corpus.is_synthetic for corpus in train.ends):
        raise DataError(
            "no pair may be held out: all corpora are synthetic; name your own pairs in data.valid, or train "
            "without validation (data.held_out=0)"
        )
    keys = train.keys
    is_synthetic = mask_corpora(train, lambda corpus: corpus.is_synthetic)
    part = assign_splits(keys, share=data.held_out, parts=parts, seed=data.seed)
    part[is_synthetic] = 0
    usable = keep & ~is_synthetic
    fewest = min(MIN_HELD_OUT, data.max_valid_samples or MIN_HELD_OUT)
    held_out = []
    for number in range(1, part.max(initial=1) + 1):
        mask = _first_shuffled(keys, keep & (part == number), data)
        if mask.sum() < fewest:
            _report(dropped, train, report.train)
            different = len(np.unique(keys["exact"][usable]))
            raise _too_small(int(mask.sum()), fewest, int(usable.sum()), different, data, report.train.sentence())
        held_out.append(mask)
        keep &= ~mask
    dropped["max_valid_samples"] = keep & (part > 0)
    keep &= part == 0
    return held_out


def assign_splits(keys: PairKeys, *, share: float, parts: int, seed: int) -> NDArray[np.int8]:
    """Assign each pair to a split: 0 is training, and each split from 1 to `parts` gets `share` of the pairs.

    The split of a pair depends only on its text and the seed, so adding lines never moves a pair. Pairs with equal
    dedup keys are in the same split.
    """
    shuffle_keys = _shuffle_keys(keys, seed)
    part = np.zeros(len(keys), np.int8)
    for number in range(parts, 0, -1):
        part[shuffle_keys < np.uint64(int(share * number * 2**64))] = number
    return part


def _apply(rules: Iterable[tuple[str, Mask]], keep: Mask, clean: CleanConfig, report: DataReport) -> dict[str, Mask]:
    """Remove the pairs that break each rule from `keep`, and return the removed pairs by rule.

    A rule that would drop more than `clean.max_dropped` of the pairs describes the task instead of a fault in the data:
    it is reported and not applied.
    """
    dropped = {}
    for rule, mask in rules:
        broken = mask & keep
        share = float(broken.sum() / max(1, keep.sum()))
        if share > clean.max_dropped:
            report.skipped_rules[rule] = share
        else:
            dropped[rule] = broken
            keep &= ~broken
    return dropped


def _report(dropped: dict[str, Mask], pairs: CleanPairs, report: PartReport) -> None:
    for rule, mask in dropped.items():
        indices = np.flatnonzero(mask)
        report.dropped[rule].count += len(indices)
        report.dropped[rule].examples += map(as_example, pairs.texts(indices[:MAX_EXAMPLES]))


def mask_corpora(train: CleanPairs, condition: Callable[[CorpusEnd], bool]) -> Mask:
    """Mask the pairs of all corpora that satisfy a condition."""
    mask = np.zeros(len(train), bool)
    begin = 0
    for corpus in train.ends:
        mask[begin : corpus.end] = condition(corpus)
        begin = corpus.end
    return mask


def _sample(mask: Mask, count: int, seed: int) -> Mask:
    """Draw `count` of the pairs in `mask`, by `seed`."""
    drawn = np.zeros_like(mask)
    drawn[np.flatnonzero(mask)[random.Random(seed).sample(range(int(mask.sum())), count)]] = True
    return drawn


def _first_shuffled(keys: PairKeys, mask: Mask, data: DataConfig) -> Mask:
    """Choose the first pairs of `mask` in shuffled order, as many as a split may hold out."""
    indices = np.flatnonzero(mask)
    few = np.zeros_like(mask)
    order = np.argsort(_shuffle_keys(keys, data.seed)[indices], kind="stable")
    few[indices[order[: data.max_valid_samples or MAX_HELD_OUT]]] = True
    return few


def _among(some: Hashes, others: Hashes) -> Mask:
    if len(others) == 0:
        return np.zeros(len(some), bool)
    others = np.sort(others)
    mask: Mask = others[np.minimum(np.searchsorted(others, some), len(others) - 1)] == some
    return mask


def _shuffle_keys(keys: PairKeys, seed: int) -> Hashes:
    """Compute a pseudo-random number for each pair by mixing both hashes and the seed, as splitmix64 does."""
    mixed: Hashes = keys["source"] * np.uint64(0x9E3779B97F4A7C15) + keys["target"]
    mixed += np.uint64(seed * 0xD1342543DE82EF95 % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def _too_small(held: int, fewest: int, usable: int, different: int, data: DataConfig, dropped: str) -> DataError:
    share = min(0.4, max(2 * data.held_out, 3 * fewest / max(1, different)))
    more = f"hold out more (data.held_out={share:.2f}), " if different * share >= fewest else ""
    return DataError(
        f"the corpus is too small to split: of {usable:,} usable pairs"
        + (f" ({different:,} different)" if different < usable else "")
        + (f" (dropped: {dropped})" if dropped else "")
        + f", data.held_out={data.held_out} holds out {held}, where at least {fewest} are needed; name your own "
        f"pairs in data.valid, {more}or train without validation (data.held_out=0)"
    )
