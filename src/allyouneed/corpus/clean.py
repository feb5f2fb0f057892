"""Which pairs are worth learning from, and a report of what was mended, what was dropped and why.

Here are the rules that see one pair at a time; `data/filter.py` has those that compare pairs.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from ..config import CleanConfig
from ..errors import DataError
from .normalize import Normalization
from .pair import Fault, Pair, Rows

EXAMPLES = 3  # of each rule, kept in the report

# The rules in the order they are tried, and what a report calls them.
REASONS = {
    "malformed": "malformed lines",
    "empty": "with an empty side",
    "longest": "with too many characters",
    "ratio": "with sides of very different length",
    "copies": "long copies of the source",
    "duplicates": "exact duplicates",
    "overlap_source": "sharing a source with validation or test",
    "overlap_target": "sharing a target with validation or test",
    "held_back": "held out beyond what valid and test hold",
    "limit": "beyond data.max_train_samples",
    "tokens": "with too many tokens",
}

_SLACK = 20  # characters: short texts differ in length for good reasons


@dataclass(slots=True)
class RuleCount:
    """How many pairs a rule found, and the first few."""

    count: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, example: str, count: int = 1) -> None:
        """So many more; an example of them is kept if there are few yet."""
        self.count += count
        if len(self.examples) < EXAMPLES:
            self.examples.append(example)


@dataclass(slots=True)
class SourceCount:
    """How many pairs one of several sources had, and how many of them are trained on."""

    name: str
    read: int
    train: int = 0


@dataclass(slots=True)
class DataReport:
    """What became of the pairs that were read.

    `dropped` is by rule, each pair under the first that found it. `skipped_rules` are rules that would have
    taken too many pairs and so were not used, with the share they would have taken. `repeated_targets` is
    the share of the pairs to train on whose target others have too: where that is usual, a target in common
    with validation or test is no overlap.
    """

    read: int = 0
    train: int = 0
    valid: int = 0
    test: int = 0
    normalized: dict[str, int] = field(default_factory=lambda: {"unicode": 0, "control": 0})
    dropped: dict[str, RuleCount] = field(default_factory=lambda: {rule: RuleCount() for rule in REASONS})
    skipped_rules: dict[str, float] = field(default_factory=dict)
    repeated_targets: float = 0.0
    sources: list[SourceCount] = field(default_factory=list)
    vocabulary: list[int] = field(default_factory=list)

    def table(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_table(cls, table: dict[str, Any]) -> Self:
        """The report that `table` was made of."""
        dropped = {rule: RuleCount(**found) for rule, found in table["dropped"].items()}
        return cls(**table | {"dropped": dropped, "sources": [SourceCount(**source) for source in table["sources"]]})

    def text(self) -> str:
        """As a reader would want it, a line for each rule that found something."""
        lines = [f"{self.read:,} read: {self.train:,} to train on, {self.valid:,} to validate, {self.test:,} to test"]
        if len(self.sources) > 1:
            lines += [f"  {source.name}: {source.read:,} read, {source.train:,} to train on" for source in self.sources]
        lines += [f"  {count:,} mended: {name}" for name, count in self.normalized.items() if count]
        for rule, found in self.dropped.items():
            if found.count:
                lines.append(f"  {found.count:,} dropped: {REASONS[rule]}")
                lines += [f"      {example}" for example in found.examples]
        lines += [f"  {line}" for line in self.rules_left_out()]
        return "\n".join(lines)

    def rules_left_out(self) -> list[str]:
        """Each rule that was not used, with the share of the pairs it found, and why."""
        return [
            f"kept the {share:.0%} {REASONS[rule]}: "
            + (
                f"{self.repeated_targets:.0%} of the pairs have a target that others have too"
                if rule == "overlap_target" and self.repeated_targets > share
                else "more than clean.max_dropped"
            )
            for rule, share in self.skipped_rules.items()
        ]

    def excluded(self) -> int:
        """How many of the pairs and lines of the training corpora are in no part."""
        return sum(found.count for found in self.dropped.values())

    def sentence(self) -> str:
        """What was left out, the most first, in a line; empty if nothing was."""
        found = sorted(self.dropped.items(), key=lambda item: -item[1].count)
        return ", ".join(f"{finding.count:,} {REASONS[rule]}" for rule, finding in found if finding.count)


def skip_malformed(rows: Rows, *, name: str, malformed: float, found: RuleCount) -> Iterable[Pair]:
    """The pairs among `rows`. Lines at fault are counted in `found`, and refused if more than a share of all."""
    before, count = found.count, 0
    worst: list[str] = []
    for row in rows:
        count += row.lines if isinstance(row, Fault) else 1
        if isinstance(row, Fault):
            what = f"{name}, line {row.line} {row.reason}"
            found.add(what, row.lines)
            if len(worst) < EXAMPLES:
                worst.append(what)
        else:
            yield row
    faults = found.count - before
    if faults > malformed * count:
        raise DataError(
            f"{name} has {faults:,} malformed of {count:,} lines, more than data.max_malformed={malformed} allows:\n  "
            + "\n  ".join(worst)
        )


def normalization_of(clean: CleanConfig) -> Normalization:
    """The form that `clean` gives to text."""
    return Normalization(unicode=clean.unicode, strip_control=clean.strip_control)


def normalize_text(text: str, clean: CleanConfig, normalized: dict[str, int]) -> str:
    """A text composed as `clean.unicode` says, without control characters and outer blanks; counts what it changes."""
    text = text.strip()
    if text.isascii() and text.isprintable():
        return text
    form = normalization_of(clean)
    plain = form.without_control(text).strip()
    composed = form.composed(plain).strip()
    normalized["control"] += plain != text
    normalized["unicode"] += composed != plain
    return composed


def broken_rule(pair: Pair, clean: CleanConfig) -> str:
    """The first rule that a pair of two texts breaks by itself; empty if none."""
    shorter, longer = sorted((len(pair.source), len(pair.target)))
    if clean.max_chars and longer > clean.max_chars:
        return "longest"
    if clean.max_length_ratio and longer + _SLACK > clean.max_length_ratio * (shorter + _SLACK):
        return "ratio"
    if clean.drop_copies and pair.source == pair.target and len(pair.source.split()) >= clean.drop_copies:
        return "copies"
    return ""


def dedup_key(text: str) -> str:
    """What two texts have in common that differ only in case and blanks."""
    return " ".join(text.casefold().split())


def as_example(pair: Pair) -> str:
    """A pair as an example in a report."""
    return f"{pair.source[:80]} → {pair.target[:80]}"
