"""`allyouneed score`: existing translations, by their log-probabilities or against references."""

from math import isfinite
from pathlib import Path
from typing import Annotated

import typer

from .command import DeviceOption, refuse_options, with_options
from .scores import Scoring


@with_options(Scoring, "scoring")
def score(
    target: Annotated[
        list[Path],
        typer.Option(help="The translations, a sentence a line; with --reference twice, to compare two systems."),
    ],
    bundle: Annotated[
        str | None,
        typer.Argument(
            metavar="BUNDLE",
            help="The folder of a trained model; several, separated by commas, are an ensemble. Not with --reference.",
        ),
    ] = None,
    source: Annotated[Path | None, typer.Option(help="The texts, a sentence a line.")] = None,
    reference: Annotated[
        list[Path] | None,
        typer.Option(help="Score against these translations, a sentence a line, without a model. May be repeated."),
    ] = None,
    batch_size: Annotated[int | None, typer.Option(help="Pairs scored together.")] = None,
    device: DeviceOption = "auto",
    *,
    scoring: Scoring,
) -> None:
    """Score existing translations.

    With a model: for each pair a line with its log-probability and the mean of its tokens, in nats; with --json, every
    token has its log-probability too.

    With --reference: BLEU, chrF2, chrF++, TER, character error rate and exact match with 95 % intervals, of whatever
    program the translations are; two --target are compared, as by `allyouneed evaluate`.

    For example:
      allyouneed score runs/mine --source test.en --target test.de
      allyouneed score runs/mine --source test.en --target test.de --json
      allyouneed score --target ours.de --reference test.de --at-least chrf=55
      allyouneed score --target old.de --target new.de --reference test.de
    """
    from ...errors import ConfigError
    from .screen import announce_pipes

    announce_pipes(source, *target, *(reference or ()))
    if not reference:
        why = "without --reference nothing is compared"
        refuse_options(scoring, why, besides=["--json"])
        if not bundle or not source or len(target) != 1:
            raise ConfigError(
                "name BUNDLE, --source and one --target for log-probabilities, or --target and --reference for BLEU "
                "and other metrics"
            )
        _score_with_model(bundle, source, target[0], as_json=scoring.as_json, batch_size=batch_size, device=device)
        return
    refuse_options({"--batch-size": batch_size, "--device": device != "auto"}, "--reference scores without a model")
    if bundle:
        raise ConfigError(f"--reference scores without a model; leave out {bundle} (evaluate translates and scores)")
    if len(target) > 2 or (scoring.no_worse and len(target) == 1):
        raise ConfigError(f"--reference scores one --target, or compares two; got {len(target)}")
    scoring.check(others=[source, *target, *reference])

    from ...data.readers import pair_lines
    from ...evaluation import TranslatedSet

    if scoring.comet and not source:
        raise ConfigError("COMET reads the source too; name it by --source")
    pairs = pair_lines(target[0], reference[0])
    outputs = [[pair.source for pair in pairs], *(_aligned_lines(path, len(pairs)) for path in target[1:])]
    others = [_aligned_lines(path, len(pairs)) for path in reference[1:]]
    references = list(zip([pair.target for pair in pairs], *others, strict=True))
    sources = _aligned_lines(source, len(pairs)) if source else [""] * len(pairs)
    metrics, limits = scoring.prepare(sources, references)
    names = [str(path) for path in target]
    systems = [TranslatedSet(name, sources, references, texts) for name, texts in zip(names, outputs, strict=True)]
    scoring.show(systems, metrics, limits)


def _aligned_lines(path: Path, count: int) -> list[str]:
    """The lines of a file; one with more or fewer than `count` is refused."""
    from ...errors import DataError
    from ...text.lines import read_lines

    lines = read_lines(path)
    if len(lines) != count:
        raise DataError(f"{path} has {len(lines)} lines but the first --target has {count}; line n belongs to line n")
    return lines


def _score_with_model(
    bundle: str, source: Path, target: Path, *, as_json: bool, batch_size: int | None, device: str
) -> None:
    from ...data.readers import pair_lines
    from ...errors import InputError
    from ...files import named_folders, to_json
    from ...translator import Translator

    pairs = pair_lines(source, target)
    translator = Translator.load(*named_folders(bundle), device=device, precision="float32", batch_size=batch_size)
    try:
        for scored in translator.score(pairs):
            mean = scored.log_probability / len(scored.log_probabilities)
            if as_json:
                row = {
                    "source": scored.source,
                    "target": scored.target,
                    "log_probability": _rounded(scored.log_probability),
                    "tokens": [
                        [piece, _rounded(value)]
                        for piece, value in zip(scored.pieces, scored.log_probabilities, strict=True)
                    ],
                }
                print(to_json(row))
            else:
                print(f"{scored.log_probability:.4f}\t{mean:.4f}")
    except InputError as error:
        raise InputError(f"{source} or {target}, line {error.line}: {error}") from error


def _rounded(log_probability: float) -> float | None:
    return round(log_probability, 6) if isfinite(log_probability) else None  # JSON has no infinity
