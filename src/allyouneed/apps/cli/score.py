"""`allyouneed score`: score existing translations by their log-probabilities or against references."""

from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .command import DeviceOption, refuse_options, with_options
from .program import command_without
from .scores import Scoring

if TYPE_CHECKING:
    from ...translator import Scored


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoreOptions:
    """The options of `allyouneed score`, besides scoring."""

    target: Annotated[
        list[Path],
        typer.Option(
            help="Translations, one sentence per line; with --reference, give it twice to compare two systems."
        ),
    ]
    bundle: Annotated[
        str | None,
        typer.Argument(
            metavar="BUNDLE",
            help="Folder of a trained model; A,B,… is an ensemble. Not with --reference.",
        ),
    ] = None
    source: Annotated[Path | None, typer.Option(help="The source texts, one sentence per line.")] = None
    reference: Annotated[
        list[Path] | None,
        typer.Option(help="Score against these reference translations, without a model. Repeatable."),
    ] = None
    batch_size: Annotated[int | None, typer.Option(help="Pairs scored together.")] = None
    device: DeviceOption = "auto"


@with_options(Scoring, "scoring")
@with_options(ScoreOptions, "options")
def score(options: ScoreOptions, scoring: Scoring) -> None:
    """Score existing translations, with a model or against references.

    With a model, print each pair's log-probability and its mean per token, in nats; --json adds the log-probability of
    every token.

    With --reference, print BLEU, chrF2, chrF++, TER, character error rate and exact match with 95 % intervals,
    whichever program made the translations. Give --target twice to compare two sets, as `allyouneed evaluate` does.

    For example:
      allyouneed score runs/mine --source test.en --target test.de
      allyouneed score runs/mine --source test.en --target test.de --json
      allyouneed score --target ours.de --reference test.de --at-least chrf=55
      allyouneed score --target old.de --target new.de --reference test.de
    """
    from .screen import announce_pipes

    announce_pipes(options.source, *options.target, *(options.reference or ()))
    if options.reference:
        _score_against_references(options, options.reference, scoring)
    else:
        _score_with_model(options, scoring)


def _score_against_references(options: ScoreOptions, reference: list[Path], scoring: Scoring) -> None:
    """Score one set of translations, or compare two."""
    _refuse_beside_references(options, scoring)
    scoring.check(others=[options.source, *options.target, *reference])

    from ...data.readers import pair_lines
    from ...errors import ConfigError
    from ...evaluation import TranslatedSet

    if scoring.comet and not options.source:
        raise ConfigError("COMET also reads the source; name it with --source")
    pairs = pair_lines(options.target[0], reference[0])
    outputs = [[pair.source for pair in pairs], *(_aligned_lines(path, len(pairs)) for path in options.target[1:])]
    others = [_aligned_lines(path, len(pairs)) for path in reference[1:]]
    references = list(zip([pair.target for pair in pairs], *others, strict=True))
    sources = _aligned_lines(options.source, len(pairs)) if options.source else [""] * len(pairs)
    metrics, limits = scoring.prepare(sources, references)
    names = [str(path) for path in options.target]
    systems = [TranslatedSet(name, sources, references, texts) for name, texts in zip(names, outputs, strict=True)]
    scoring.show(systems, metrics, limits)


def _refuse_beside_references(options: ScoreOptions, scoring: Scoring) -> None:
    from ...errors import ConfigError

    of_models = {"--batch-size": options.batch_size, "--device": options.device != "auto"}
    refuse_options(of_models, "--reference scores without a model")
    if options.bundle:
        raise ConfigError(
            f"--reference scores without a model; leave out {options.bundle} (evaluate translates and scores)"
        )
    if len(options.target) > 2:
        error = ConfigError(f"--reference scores one --target, or compares two; got {len(options.target)}")
        raise error.mended_by("--target", str(options.target[0]), "--target", str(options.target[-1]))
    if scoring.no_worse and len(options.target) == 1:
        raise ConfigError(f"--no-worse compares two --target; got 1: {command_without(['--no-worse'])}")


def _aligned_lines(path: Path, count: int) -> list[str]:
    """Read the lines of a file. Refuses a file with more or fewer than `count`."""
    from ...errors import DataError
    from ...text.lines import read_lines

    lines = read_lines(path)
    if len(lines) != count:
        raise DataError(f"{path} has {len(lines)} lines but the first --target has {count}; line n belongs to line n")
    return lines


def _score_with_model(options: ScoreOptions, scoring: Scoring) -> None:
    """Print the log-probability of each pair."""
    from ...errors import ConfigError, InputError
    from ...machine.files import named_folders, to_json

    refuse_options(scoring, "without --reference nothing is compared", besides=["--json"])
    source = options.source
    if not options.bundle or not source or len(options.target) != 1:
        raise ConfigError(
            "name BUNDLE, --source and one --target for log-probabilities, or --target and --reference for BLEU "
            "and other metrics"
        )

    from ...data.readers import pair_lines
    from ...translator import Translator

    target = options.target[0]
    pairs = pair_lines(source, target)
    folders = named_folders(options.bundle)
    translator = Translator.load(*folders, device=options.device, precision="float32", batch_size=options.batch_size)
    try:
        for scored in translator.score(pairs):
            if scoring.as_json:
                print(to_json(_as_table(scored)))
            else:
                mean = scored.log_probability / len(scored.log_probabilities)
                print(f"{scored.log_probability:.4f}\t{mean:.4f}")
    except InputError as error:
        raise InputError(f"{source} or {target}, line {error.line}: {error}") from error


def _as_table(scored: "Scored") -> dict[str, object]:
    tokens = zip(scored.pieces, scored.log_probabilities, strict=True)
    return {
        "source": scored.source,
        "target": scored.target,
        "log_probability": _rounded(scored.log_probability),
        "tokens": [[piece, _rounded(value)] for piece, value in tokens],
    }


def _rounded(log_probability: float) -> float | None:
    return round(log_probability, 6) if isfinite(log_probability) else None  # JSON has no infinity
