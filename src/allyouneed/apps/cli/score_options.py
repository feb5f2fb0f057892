"""The options that commands which score translations have in common, and the limits that some of them set."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, nan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ...metrics import Metric, References

TokenizeOption = Annotated[str, typer.Option(help='Of BLEU, by sacrebleu; "none": text is tokenized.')]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
WrongOption = Annotated[
    str,
    typer.Option(
        "--wrong",
        metavar="N|FILE",
        help="List the N worst translations, or all in FILE.",
        show_default=False,
    ),
]
MetricsOption = Annotated[
    str | None,
    typer.Option(
        "--metrics",
        metavar="METRIC,…",
        help="Of bleu, chrf, chrf++, ter, cer, wer, exact.",
        show_default=False,
    ),
]
AtLeastOption = Annotated[
    list[str] | None,
    typer.Option(
        "--at-least",
        metavar="METRIC=NUMBER",
        help="Exit with 1 if this score is lower. Repeatable.",
        show_default=False,
    ),
]
AtMostOption = Annotated[
    list[str] | None,
    typer.Option(
        "--at-most",
        metavar="METRIC=NUMBER",
        help="Exit with 1 if this error rate is higher.",
        show_default=False,
    ),
]
NoWorseOption = Annotated[
    bool,
    typer.Option("--no-worse", help="Exit with 1 if the second is worse (p < 0.05)."),
]
CometOption = Annotated[
    Path | None,
    typer.Option(metavar="CHECKPOINT", help="COMET too, by this model and comet-score.", show_default=False),
]


@dataclass(frozen=True, slots=True)
class ScoreLimit:
    """The lowest or the highest value that a score may have."""

    name: str
    value: float

    def missed(self, score: float, metric: "Metric", system: str) -> str:
        """A line if the score is beyond the limit, else nothing."""
        if score >= self.value if metric.higher_is_better else score <= self.value:
            return ""
        option = "--at-least" if metric.higher_is_better else "--at-most"
        return f"{metric.title} of {system} is {score:.2f}, and {option} asks for {self.value:g}"


def make_chosen_metrics(
    names: str | None, comet: Path | None, sources: Sequence[str], *, tokenize: str
) -> "dict[str, Metric]":
    """The metrics that an option names, or all; and COMET if its checkpoint is named."""
    from ...metrics import METRICS, make_metrics

    chosen = METRICS if names is None else [name.strip() for name in names.split(",")]
    metrics = make_metrics(chosen, tokenize=tokenize)
    if comet:
        from ...evaluation.comet import make_comet

        metrics["comet"] = make_comet(comet, sources)
    return metrics


def warn_of_tokenized(references: "References", tokenize: str) -> None:
    """A warning if the references are tokenized already, and BLEU would tokenize them again."""
    from ...metrics import looks_tokenized
    from .screen import console

    if tokenize != "none" and looks_tokenized(references):
        console.print(
            'the references have spaces before their full stops, as if tokenized already; with "--tokenize none" BLEU '
            "does not tokenize them again"
        )


def refuse_few_pairs(count: int) -> None:
    """Refuse to compare by a test what is too little for one."""
    from ...errors import ConfigError
    from ...metrics import FEWEST

    if count < FEWEST:
        raise ConfigError(f"--no-worse needs at least {FEWEST} pairs to tell a difference from chance; got {count}")


def parse_limits(
    metrics: "Mapping[str, Metric]", at_least: Sequence[str] | None, at_most: Sequence[str] | None
) -> list[ScoreLimit]:
    """The limits that options name. Refuses an unknown metric, no number, and a limit on the wrong side."""
    from ...errors import ConfigError

    limits = []
    for option, texts in (("--at-least", at_least or ()), ("--at-most", at_most or ())):
        for text in texts:
            name, _, number = text.partition("=")
            if name not in metrics:
                raise ConfigError(f'{option} {text}: no metric "{name}" is counted; counted are {", ".join(metrics)}')
            if metrics[name].higher_is_better != (option == "--at-least"):
                other = "--at-least" if metrics[name].higher_is_better else "--at-most"
                raise ConfigError(f"{option} {text}: a good {name} is on the other side; write {other} {text}")
            limits.append(ScoreLimit(name, _number(number)))
            if not isfinite(limits[-1].value):
                raise ConfigError(f"{option} is written METRIC=NUMBER, like chrf=55; got {text!r}")
    return limits


def check_wrong_file(wrong: str, *, overwrite: bool, others: Iterable[Path | None]) -> None:
    """Refuse what is a number but no count, and a file that exists already or is one of `others`."""
    from ...errors import ConfigError
    from ...files import check_output_file

    if not wrong or wrong.isdecimal():
        return
    if wrong.startswith("-") or isfinite(_number(wrong)):
        raise ConfigError(f"--wrong takes a whole number from 0 or a file; got {wrong}")
    check_output_file(Path(wrong), what="the list", overwrite=overwrite, inputs=filter(None, others))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return nan
