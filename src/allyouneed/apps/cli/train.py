"""`allyouneed train`: train a bundle from text pairs or a recipe; with `--serve`, show the training on a page."""

import threading
import time
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...machine.files import unused
from .command import with_options
from .program import command_with_extra, mended_command, shell_command
from .recipe_argument import (
    ColumnsOption,
    PairsOrRecipe,
    SecondFileOrSettings,
    SheetOption,
    default_output,
    recipe_from_arguments,
)

if TYPE_CHECKING:
    from ...auto import Draft
    from ...bundle import Bundle
    from ...config import Recipe
    from ...run import Stopwatch
    from ..reports.verdict import Verdict
    from ..serve.training_page import TrainingPage


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainOptions:
    """The options of `allyouneed train`."""

    what: PairsOrRecipe
    more: SecondFileOrSettings = None
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for the run and its model. Default: runs/NAME.")
    ] = None
    init_from: Annotated[
        str, typer.Option(metavar="BUNDLE", help="Start with the weights and the vocabulary of this model.")
    ] = ""
    tokenizer: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Use this vocabulary: a tokenizer.json, a SentencePiece model or a bundle. "
            "Give it twice for source and target.",
        ),
    ] = None
    languages: Annotated[
        str,
        typer.Option(
            metavar="en-it", help="The languages of the pairs, for the model's card and for `allyouneed serve`."
        ),
    ] = ""
    columns: ColumnsOption = ""
    sheet: SheetOption = ""
    teacher: Annotated[
        str,
        typer.Option(
            metavar="BUNDLE",
            help="Train on this model's translations of the training sources; A,B is an ensemble.",
        ),
    ] = ""
    auto: Annotated[
        bool,
        typer.Option(
            "--auto",
            help="Choose the settings that the recipe leaves out from the pairs, as for a file of pairs.",
        ),
    ] = False
    minutes: Annotated[
        float | None,
        typer.Option(
            metavar="N",
            help="End the whole run within N minutes, with the learning rate at zero; the same as train.minutes=N.",
        ),
    ] = None
    seeds: Annotated[
        str,
        typer.Option(
            metavar="1,2,3",
            help="Train a run for each of these seeds, in OUTPUT-1, OUTPUT-2, …, and print the mean of their scores.",
        ),
    ] = ""
    film: Annotated[
        str,
        typer.Option(
            metavar="TEXT",
            help="Film how the model learns to translate this text: the report plays its output and attention "
            "from the first update to the last.",
        ),
    ] = ""
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the settings, the plan and the expected time, and stop.")
    ] = False
    explain: Annotated[
        bool, typer.Option("--explain", help="Print the reason for every automatic setting; log.txt always has them.")
    ] = False
    serve: Annotated[
        bool,
        typer.Option(
            "--serve",
            help="Open a page that shows the run and translates with the model as it learns, until Ctrl-C.",
        ),
    ] = False
    resume: Annotated[bool, typer.Option("--resume", help="Resume an interrupted run; start it if there is none.")] = (
        False
    )
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing run.")] = False


@with_options(TrainOptions, "options")
def train(options: TrainOptions) -> None:
    """Train a model on text pairs, or as a recipe describes.

    If you give a file of pairs, train chooses every setting that you leave out. It writes the reasons to log.txt in the
    folder of the run; --explain prints them.

    Shipped recipes: agreement, dates, en-it, locales, multi30k-en-de, multi30k-en-de-tok, numbers, reverse, sort,
    tatoeba-en-it; and every row of Table 3: base, A1, …, big (allyouneed paper).

    With --minutes the run ends in time, however busy the machine is: it measures its speed and adapts the number of
    updates. --resume uses the rest of the time.

    With --serve you can watch the run on a web page, try the best model so far, and correct its translations. After the
    run the page keeps serving the model until Ctrl-C.

    Ctrl-C (or SIGTERM) saves a checkpoint and exits with code 130 (143); --resume continues from it.

    For example:
      allyouneed train pairs.tsv --output runs/mine
      allyouneed train pairs.tsv --output runs/mine --minutes 10
      allyouneed train pairs.tsv --output runs/mine --minutes 10 --dry-run
      allyouneed train pairs.xlsx --minutes 10 --serve
      allyouneed train export.xlsx --columns English,Italian --output runs/mine
      allyouneed train train.en train.de --output runs/mine train.steps=2000
      allyouneed train dates train.seed=2
      allyouneed train dates --seeds 1,2,3
      allyouneed train dates --film 1845-01-05
      allyouneed train my.toml --output runs/mine --resume
      allyouneed train special.tsv --init-from runs/mine --output runs/special
      allyouneed train pairs.tsv --tokenizer tokenizer.json --output runs/mine
      allyouneed train pairs.tsv --teacher runs/large -o runs/small
    """
    if options.seeds:
        _train_seeds(options)
    else:
        _train(options)


def _train(options: TrainOptions) -> None:
    begun = time.monotonic()  # the imports below take seconds
    path, recipe = _read_task(options)
    _start(recipe, path, options, begun)


def _train_seeds(options: TrainOptions) -> None:
    """Train a run for each seed, and print their scores as a table."""
    from ...errors import ConfigError
    from ...machine.files import followed
    from .screen import console

    seeds = options.seeds.replace(" ", "").split(",")
    if len(set(seeds)) < 2 or not all(seed.isdecimal() for seed in seeds):
        raise ConfigError(f"--seeds takes two whole numbers or more, such as 1,2,3; got {options.seeds!r}")
    if options.serve or options.dry_run:
        raise ConfigError("--seeds trains several runs; leave out --serve and --dry-run")
    output = followed(options.output or default_output(options.what))
    runs = []
    for seed in dict.fromkeys(seeds):
        runs.append(output.with_name(f"{output.name}-{seed}"))
        console.print(f"seed {seed}: {runs[-1]}")
        _train(replace(options, seeds="", output=runs[-1], more=[*(options.more or []), f"train.seed={seed}"]))
    from ..reports.many_runs import compare_many_runs

    console.print("")
    for line in compare_many_runs(runs).lines():
        console.print(line)


def _read_task(options: TrainOptions) -> "tuple[Path, Recipe | Draft]":
    """Return the folder of the run, and the recipe that it follows."""
    from ...errors import ConfigError
    from ...machine.files import followed

    if options.teacher and options.overwrite:
        raise ConfigError("--teacher stores translations in the folder of the run; name a new folder, not --overwrite")
    path = followed(options.output or default_output(options.what))
    budget = [] if options.minutes is None else [f"train.minutes={options.minutes}"]
    recipe = recipe_from_arguments(
        options.what,
        [*(options.more or []), *budget],
        languages=options.languages,
        init_from=options.init_from,
        tokenizer=options.tokenizer,
        columns=options.columns,
        sheet=options.sheet,
        auto=options.auto,
        resumed=path if options.resume and not options.overwrite else None,
    )
    return path, recipe


def _start(recipe: "Recipe | Draft", path: Path, options: TrainOptions, begun: float) -> None:
    """Take part in a run that torchrun has started, or preview a run, or train."""
    from ...auto import preliminary_recipe
    from ...machine.device import configure_process
    from ...run import is_follower

    configure_process(preliminary_recipe(recipe).train.threads)
    if is_follower():
        _follow(recipe, path)
    elif options.dry_run:
        _preview(recipe, path, options)
    else:
        _run(recipe, path, options, begun)


def _run(recipe: "Recipe | Draft", path: Path, options: TrainOptions, begun: float) -> None:
    """Train, with a page if --serve is set. At the end, say how good the model is and what to do next."""
    from ...run import Stopwatch
    from ..reports.advice import longer_options, look_ahead
    from ..reports.record import RunRecord
    from ..reports.verdict import Verdict
    from .screen import console

    stopwatch = Stopwatch(begun=begun, closing=True)
    with run_page(path) if options.serve else nullcontext() as page:
        bundle = _fit(recipe, path, options, stopwatch, page)
        console.print(f"\nThe model is in {path}; {path}/report.html describes the run.")
        verdict = Verdict.read(path, failure=_final_test(bundle, path, stopwatch))
        for line in verdict.lines():
            console.print(f"  {line}")
        record = RunRecord.read(path)
        longer = longer_options(record)
        command = mended_command(longer, without=("--overwrite",))  # --overwrite is for new runs only
        is_worth_it = look_ahead(record) or any(" ".join(longer) in line for line in verdict.advice)
        _print_next_steps(path, bundle, command if is_worth_it else "")
        if page:
            keep_serving(page, path, command, verdict)


def _fit(
    recipe: "Recipe | Draft",
    path: Path,
    options: TrainOptions,
    stopwatch: "Stopwatch",
    page: "TrainingPage | None",
) -> "Bundle":
    """Train in the folder `path`. A run that replaces an earlier run is trained in a folder next to it."""
    from ...auto import preliminary_recipe
    from ...machine.files import named_folders
    from ...run import replaced, source_paths, was_restarted
    from ..explain.film import film_frame
    from ..reports import fit
    from ..transfer.distillation import with_teacher
    from .progress_bar import ProgressBar

    resume = options.resume or was_restarted()
    sources = [*source_paths(preliminary_recipe(recipe)), Path(options.what)]
    making = replaced(path, sources=sources, resume=resume) if options.overwrite else nullcontext(path)
    details = None if options.explain else path / "log.txt"
    film = partial(film_frame, text=options.film) if options.film else None
    with making as folder, ProgressBar(details=details) as screen:
        if folder != path:
            screen.on_message("replace", f"{path} is replaced when this run, in {folder}, has finished")
        if options.teacher:
            recipe = with_teacher(recipe, named_folders(options.teacher), folder, callback=screen, resume=resume)
        callback = page.watching(screen, folder) if page else screen
        return fit(recipe, folder, callback=callback, resume=resume, stopwatch=stopwatch, film=film)


def _print_next_steps(run: Path, bundle: "Bundle", longer: str) -> None:
    from .program import next_steps
    from .screen import console

    console.print("Next:")
    for step in next_steps(run, bundle, longer=longer):
        console.print(step)


def _preview(recipe: "Recipe | Draft", path: Path, options: TrainOptions) -> None:
    """Print the plan of a run."""
    from ...auto import complete, preliminary_recipe
    from ...errors import ConfigError
    from ...evaluation import evaluate_greedily
    from ...evaluation.model_scores import with_stopping_metric
    from ...run import Hooks, preview_training
    from .progress_bar import ProgressBar
    from .screen import console

    if options.resume or options.overwrite or options.teacher or options.serve:
        raise ConfigError("--dry-run starts no run; leave out --resume, --overwrite, --teacher and --serve")
    stopping = preliminary_recipe(recipe).train.early_stopping_metric
    with ProgressBar() as screen:
        hooks = Hooks(callback=screen, evaluate=with_stopping_metric(evaluate_greedily, {}, stopping))
        plan, notes = complete(recipe, path, hooks)
        preview_training(plan, path, hooks, notes=notes)
    console.print("\nNothing was trained; the same command without --dry-run trains.")


def _follow(recipe: "Recipe | Draft", path: Path) -> None:
    """Take part in a run as a worker that torchrun has started. The first worker prints the messages."""
    import sys

    from ...errors import AllYouNeedError, Interrupted
    from ..reports import fit

    try:
        fit(recipe, path)
    except Interrupted as stopped:
        sys.exit(128 + stopped.signal)
    except AllYouNeedError:
        sys.exit(2)


def _final_test(bundle: "Bundle", run: Path, stopwatch: "Stopwatch") -> str:
    """Score a finished run on its test pairs, if it has any. If this fails, return the reason."""
    from ...config import Recipe
    from ...errors import AllYouNeedError
    from ...evaluation.held_out import find_held_out_pairs
    from ..reports import evaluate_run
    from ..reports.final_test import FINAL_TEST_SECONDS
    from ..reports.record import RunRecord

    minutes = Recipe.read(run / "recipe.toml").train.minutes
    seconds = min(FINAL_TEST_SECONDS, max(1.0, stopwatch.left(minutes))) if minutes else FINAL_TEST_SECONDS
    try:
        if find_held_out_pairs(run) and not RunRecord.read(run).test:  # a run that was finished earlier keeps its test
            evaluate_run(bundle, run, seconds=seconds)
    except AllYouNeedError as error:
        return f"No test scores: {error}."
    return ""


@contextmanager
def run_page(run: Path) -> Iterator["TrainingPage"]:
    """Open the page of a run: print its address and, at a terminal, open it in a browser when it is ready."""
    from ..serve.training_page import TrainingPage
    from .screen import console

    def announce() -> None:
        if url := page.url():
            console.print(f"{'page':<7} {url}")
            if console.is_terminal:
                webbrowser.open(url)
        elif not page.is_closing:
            console.print("warning The page of the run has ended; the run goes on without it")

    with TrainingPage(corrections=_corrections(run)) as page:
        page.tell({"state": "preparing", "name": run.name, "folder": str(run), "resume": mended_command(["--resume"])})
        threading.Thread(target=announce, daemon=True).start()
        yield page


def keep_serving(page: "TrainingPage", run: Path, longer: str, verdict: "Verdict") -> None:
    """Tell the page how its run has ended and what to do next, and wait for a signal or the end of the server.

    `longer` is the command for a longer training.
    """
    from ...machine.interrupts import catch_interrupts
    from .screen import console

    corrections = _corrections(run)
    commands = {
        "Serve it, later": shell_command("serve", run, "--suggestions", corrections),
        "As one web page": command_with_extra("export", run, unused(f"{run}-page"), "--to", "html"),
        "Train longer": longer,
    }
    learn = shell_command("adapt", run, corrections, "-o", unused(f"{run}-corrected"))
    page.tell({
        "state": "finished", "folder": str(run), "commands": commands, "learn_command": learn,
        "verdict": asdict(verdict),
    })  # fmt: skip
    console.print("The page goes on with the finished model until Ctrl-C; corrections go to " + str(corrections))
    with catch_interrupts() as request:
        page.wait(request)


def _corrections(run: Path) -> Path:
    """Return a file next to the folder of the run, so that it survives if another run replaces the folder."""
    return run.with_name(f"{run.name}-corrections.jsonl")
