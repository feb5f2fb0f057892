"""`allyouneed report`: write a page about a training run, or a comparison of several."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...errors import ConfigError, InputError
from ...machine.files import check_output_file, write_whole
from .command import with_options
from .screen import console, progress

if TYPE_CHECKING:
    from ...run import Sample


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportOptions:
    """The options of `allyouneed report`."""

    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
    others: Annotated[list[Path] | None, typer.Argument(metavar="[RUN]", help="More runs to compare.")] = None
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="File of the page. Default: report.html in the run, or compared.html for several."
        ),
    ] = None
    test: Annotated[
        bool,
        typer.Option(
            "--test",
            help="Translate the test pairs that all runs hold out, and compare these translations.",
        ),
    ] = False
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False


@with_options(ReportOptions, "options")
def report(options: ReportOptions) -> None:
    """Write the report of a training run, or compare several, as one page that works offline.

    The page of one run has its curves, outputs, data, environment and settings. While the run is going on, the page
    reloads every few seconds. The page of two runs has both curves, the settings that differ, the sentences that
    changed most, and a paired bootstrap test of the scores on the validation pairs that both have translated. The page
    of three or more has their curves and a table of scores, in which runs that differ only in train.seed share one row.

    For example:
      allyouneed report runs/mine
      allyouneed report runs/first runs/second --test --output compared.html
      allyouneed report runs/wide-1 runs/wide-2 runs/deep-1 runs/deep-2
    """
    others = options.others or []
    if options.test and not others:
        raise InputError("--test compares the translations of several runs; name a second run")
    path = options.output or (Path("compared.html") if others else options.run / "report.html")
    if options.output or others:
        check_output_file(path, what="the report", overwrite=options.overwrite)
    if not others:
        _report(options.run, path)
    else:
        _compare([options.run, *others], path, test=options.test)
    console.print(str(path))


def _report(run: Path, path: Path) -> None:
    from ...run.run_folder import is_running
    from ..reports.report import write_report

    write_report(run, running=is_running(run), path=path)


def _compare(runs: list[Path], path: Path, *, test: bool) -> None:
    """Write the page of several runs, and print its summary."""
    from ..reports.comparison import build_comparison_page, compare_runs
    from ..reports.many_runs import build_page_of_runs, compare_many_runs

    translations = _translate_test_pairs(runs) if test else None
    if len(runs) == 2:
        comparison = compare_runs(*runs, translations=translations)
        page, summary = build_comparison_page(comparison), comparison.summary()
    else:
        compared = compare_many_runs(runs, translations=translations)
        page, summary = build_page_of_runs(compared), list(compared.lines())
    write_whole(path, page)
    for line in summary:
        console.print(line)


def _translate_test_pairs(runs: list[Path]) -> list[list["Sample"]]:
    """Translate the test pairs that all runs hold out, with the model of each run."""
    from ...evaluation import translate_set
    from ...evaluation.held_out import common_held_out_pairs
    from ...translator import Translator

    try:
        pairs = common_held_out_pairs(runs)
    except ConfigError as error:
        raise ConfigError(f"{error}; or leave out --test, to compare validation pairs") from error
    translated = []
    for folder in runs:
        translator = Translator.load(folder, device="cpu")
        with progress("translating", total=len(pairs)) as done:
            translated.append(translate_set(translator, pairs, on_progress=done).samples())
    return translated
