"""A report on the pairs of each part: how many were read, used and dropped, and why."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self

Part = Literal["train", "valid", "test"]

MAX_EXAMPLES = 3  # kept for each rule

# Why a pair is dropped, in the order in which the rules are tried. Each rule has the name of its setting.
REASONS = {
    "malformed": "malformed lines",
    "empty": "with an empty side",
    "max_chars": "with too many characters",
    "max_length_ratio": "with sides of very different length",
    "drop_copies": "long copies of the source",
    "deduplicate": "exact duplicates",
    "overlap_source": "sharing a source with validation or test",
    "overlap_target": "sharing a target with validation or test",
    "max_valid_samples": "held out beyond data.max_valid_samples",
    "max_train_samples": "beyond data.max_train_samples",
    "max_length": "with too many tokens",
}


@dataclass(slots=True)
class RuleCount:
    """How many pairs a rule dropped, with the first few as examples."""

    count: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, example: str, count: int = 1) -> None:
        """Add `count` pairs, and keep the example if there are only a few yet."""
        self.count += count
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append(example)

    def merge(self, later: "RuleCount") -> None:
        """Add the counts of later pairs."""
        self.count += later.count
        self.examples += later.examples[: MAX_EXAMPLES - len(self.examples)]


@dataclass(slots=True)
class PartReport:
    """How many pairs of one part were read, normalized, dropped and used.

    `normalized` counts texts by the setting that changed them. `dropped` counts pairs by the first rule that they
    break. Held-out pairs are counted as read among the training pairs.
    """

    read: int = 0
    used: int = 0
    normalized: dict[str, int] = field(default_factory=lambda: {"unicode": 0, "strip_control": 0})
    dropped: dict[str, RuleCount] = field(default_factory=lambda: {rule: RuleCount() for rule in REASONS})

    def merge(self, later: Self) -> None:
        """Add a report on later pairs of this part."""
        self.read += later.read
        self.used += later.used
        for setting, count in later.normalized.items():
            self.normalized[setting] += count
        for rule, dropped in later.dropped.items():
            self.dropped[rule].merge(dropped)

    def excluded(self) -> int:
        """Count the dropped pairs and malformed lines."""
        return sum(rule.count for rule in self.dropped.values())

    def sentence(self) -> str:
        """Count the dropped pairs by reason in one line, the most frequent first; "" if none were dropped."""
        rules = sorted(self.dropped.items(), key=lambda item: -item[1].count)
        return ", ".join(f"{dropped.count:,} {REASONS[rule]}" for rule, dropped in rules if dropped.count)

    def lines(self) -> Iterator[str]:
        """Yield lines with the counts, and three examples for each rule that dropped pairs."""
        yield f"{self.read:,} read, {self.used:,} used"
        for setting, count in self.normalized.items():
            if count:
                yield f"  {count:,} texts normalized: {setting}"
        for rule, dropped in self.dropped.items():
            if dropped.count:
                yield f"  {dropped.count:,} dropped: {REASONS[rule]}"
                yield from (f"      {example}" for example in dropped.examples)


@dataclass(slots=True)
class SourceCount:
    """How many pairs a training corpus had, and how many of them are used."""

    name: str
    read: int
    used: int = 0


@dataclass(slots=True)
class DataReport:
    """A report on each part, and on all parts together.

    `columns` are lines that say which columns of tables make the pairs. `sources` are the training corpora.
    `skipped_rules` maps each rule that was not applied, because it would have dropped too many pairs, to the share that
    it would have dropped. `vocabulary` has the size of each vocabulary. `fingerprint` identifies the prepared pairs.
    """

    train: PartReport = field(default_factory=PartReport)
    valid: PartReport = field(default_factory=PartReport)
    test: PartReport = field(default_factory=PartReport)
    columns: list[str] = field(default_factory=list)
    sources: list[SourceCount] = field(default_factory=list)
    skipped_rules: dict[str, float] = field(default_factory=dict)
    vocabulary: list[int] = field(default_factory=list)
    fingerprint: str = ""

    def parts(self) -> dict[Part, PartReport]:
        """Return the report on each part, by the name of the part."""
        return {"train": self.train, "valid": self.valid, "test": self.test}

    def table(self) -> dict[str, Any]:
        """Return the report as plain values, for JSON."""
        return asdict(self)

    def text(self) -> str:
        """Return the whole report as text: parts with pairs, their rules, and the rules that were not applied."""
        lines = []
        for name, part in self.parts().items():
            if part.read or part.used or part.excluded():
                first, *rest = part.lines()
                lines += [f"{name}: {first}", *rest]
        if len(self.sources) > 1:
            lines += [f"  {source.name}: {source.read:,} read, {source.used:,} used" for source in self.sources]
        return "\n".join(self.columns + lines + self.unused_rules())

    def left_out(self) -> list[str]:
        """Return a line for each part with dropped pairs: how many, and by which rules."""
        return [
            f"{part.excluded():,} left out of data.{name}: {part.sentence()} (data-report.json has examples)"
            for name, part in self.parts().items()
            if part.excluded()
        ]

    def unused_rules(self) -> list[str]:
        """Explain each rule that was not applied, with the share of the pairs that break it."""
        return [
            f"kept the {share:.0%} {REASONS[rule]}: more than clean.max_dropped"
            for rule, share in self.skipped_rules.items()
        ]
