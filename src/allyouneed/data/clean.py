"""The cleaning rules for single pairs; `data/filter.py` has those that compare pairs."""

from collections.abc import Callable, Iterable, Iterator

from ..config import CleanConfig
from ..errors import DataError
from ..text.lines import NOT_UTF8, windows_remedy
from ..text.normalize import Normalization
from .pair import Fault, Pair, Rows
from .report import MAX_EXAMPLES, PartReport, RuleCount

_SLACK = 20  # characters, since short texts often differ in length


def clean_pairs(pairs: Iterable[Pair], clean: CleanConfig, report: PartReport) -> Iterator[Pair]:
    """The pairs, normalized, without those that have an empty side; `report` counts all of them."""
    normalization = Normalization.from_config(clean)
    for row in pairs:
        report.read += 1
        source, target = (normalize_text(text, normalization, report.normalized) for text in row)
        pair = Pair(source, target)
        if source and target:
            yield pair
        else:
            report.dropped["empty"].add(as_example(pair))


def skip_malformed(rows: Rows, malformed: RuleCount, *, name: str, max_malformed: float) -> Iterator[Pair]:
    """The pairs of one source; `malformed` counts the lines without one.

    Refuses a source with a larger share of malformed lines than `max_malformed`, and shows the first of them; `name` is
    the source in error messages.
    """
    before, count = malformed.count, 0
    first: list[str] = []
    for row in rows:
        if isinstance(row, Fault):
            count += row.lines
            fault = f"{name}, line {row.line} {row.reason}"
            malformed.add(fault, row.lines)
            if len(first) < MAX_EXAMPLES:
                first.append(fault)
        else:
            count += 1
            yield row
    faults = malformed.count - before
    if faults > max_malformed * count:
        remedy = f"; {windows_remedy(name)}" if any(NOT_UTF8 in fault for fault in first) else ""
        raise DataError(
            f"{name} has {faults:,} malformed of {count:,} lines, more than data.max_malformed={max_malformed} "
            "allows: " + "; ".join(first) + remedy
        )


def normalize_text(text: str, normalization: Normalization, counts: dict[str, int]) -> str:
    """The text normalized and stripped; `counts` counts the texts that each setting changed."""
    text = text.strip()
    if text.isascii() and text.isprintable():
        return text
    plain = normalization.without_control(text).strip()
    composed = normalization.composed(plain).strip()
    counts["strip_control"] += plain != text
    counts["unicode"] += composed != plain
    return composed


def _differ_in_length(pair: Pair, max_ratio: float) -> bool:
    shorter, longer = sorted((len(pair.source), len(pair.target)))
    return longer + _SLACK > max_ratio * (shorter + _SLACK)


# Whether a pair breaks a rule, by the name of its setting, in the order in which they are tried. 0 switches a rule off.
PAIR_RULES: dict[str, Callable[[Pair, CleanConfig], bool]] = {
    "max_chars": lambda pair, clean: 0 < clean.max_chars < max(map(len, pair)),
    "max_length_ratio": lambda pair, clean: (
        clean.max_length_ratio > 0 and _differ_in_length(pair, clean.max_length_ratio)
    ),
    "drop_copies": lambda pair, clean: pair.source == pair.target and 0 < clean.drop_copies <= len(pair.source.split()),
}


def broken_rule(pair: Pair, clean: CleanConfig) -> str:
    """The first of `PAIR_RULES` that a pair breaks; empty if none."""
    return next((rule for rule, breaks in PAIR_RULES.items() if breaks(pair, clean)), "")


def dedup_key(text: str) -> str:
    """A key that is equal for texts that differ only in case and spaces."""
    return " ".join(text.casefold().split())


def as_example(pair: Pair) -> str:
    """A pair as an example in a report."""
    return f"{pair.source[:80]} → {pair.target[:80]}"
