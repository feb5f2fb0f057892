"""`allyouneed report`: the page of a training run, or of two compared."""

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
    other: Annotated[Path | None, typer.Argument(metavar="RUN", help="A second run to compare.")] = None
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="File of the page. Default: report.html in the run, or compared.html for two."
        ),
    ] = None
    test: Annotated[
        bool,
        typer.Option(
            "--test",
            help="Translate the test pairs that both runs hold out, and compare these translations.",
        ),
    ] = False
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False


@with_options(ReportOptions, "options")
def report(options: ReportOptions) -> None:
    """Write the report of a training run, or compare two runs, as one page that works offline.

    The page of one run has its curves, outputs, data, environment and settings; while the run goes on, the page
    reloads every few seconds. The page of two runs has both curves, the settings that differ, the sentences that
    changed most, and a paired bootstrap test of the scores on the validation pairs that both have translated.

    For example:
      allyouneed report runs/mine
      allyouneed report runs/first runs/second --test --output compared.html
    """
    if options.test and not options.other:
        raise InputError("--test compares the translations of two runs; name a second run")
    path = options.output or (Path("compared.html") if options.other else options.run / "report.html")
    if options.output or options.other:
        check_output_file(path, what="the report", overwrite=options.overwrite)
    if options.other is None:
        _report(options.run, path)
    else:
        _compare(options.run, options.other, path, test=options.test)
    console.print(str(path))


def _report(run: Path, path: Path) -> None:
    from ...run.run_folder import is_running
    from ..reports.report import write_report

    write_report(run, running=is_running(run), path=path)


def _compare(run: Path, other: Path, path: Path, *, test: bool) -> None:
    """Write the page of two runs, and print its summary."""
    from ..reports.comparison import build_comparison_page, compare_runs

    comparison = compare_runs(run, other, translations=_translate_test_pairs(run, other) if test else None)
    write_whole(path, build_comparison_page(comparison))
    for line in comparison.summary():
        console.print(line)


def _translate_test_pairs(run: Path, other: Path) -> tuple[list["Sample"], list["Sample"]]:
    """Translate the test pairs that both runs hold out, with the model of each."""
    from ...evaluation import translate_set
    from ...evaluation.held_out import common_held_out_pairs
    from ...translator import Translator

    try:
        pairs = common_held_out_pairs([run, other])
    except ConfigError as error:
        raise ConfigError(f"{error}; or leave out --test, to compare validation pairs") from error
    both = []
    for folder in (run, other):
        translator = Translator.load(folder, device="cpu")
        with progress("translating", total=len(pairs)) as done:
            both.append(translate_set(translator, pairs, on_progress=done).samples())
    return both[0], both[1]
