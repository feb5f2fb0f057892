"""`allyouneed explain`: show how a model translates a sentence, as a page or as pictures."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .command import GlossaryOption, OptionalBundleFolder, SearchSettings, with_options, with_search

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure

    from ...data.pairs import Pair
    from ...translator import Translator
    from ..explain import Trace


PICTURES = ("svg", "png")


class Form(StrEnum):
    """The form of the result: a page, a picture for each figure, or numbers."""

    html = "html"
    svg = "svg"
    png = "png"
    json = "json"


@dataclass(frozen=True, kw_only=True, slots=True)
class ExplainOptions:
    """The options of `allyouneed explain`, besides the settings of the search."""

    bundle: OptionalBundleFolder = None
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[BUNDLE] TEXT",
            help="A second model or snapshot to compare; the text to translate and explain.",
        ),
    ] = None
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The page, or a folder for pictures. Default: explained.html."),
    ] = None
    form: Annotated[Form, typer.Option("--format", help="One page, a picture for each figure, or the numbers.")] = (
        Form.html
    )
    precision: Annotated[str, typer.Option(help="Type of the weights: float32, int8 or auto.")] = "auto"
    glossary: GlossaryOption = None
    positions: Annotated[bool, typer.Option("--positions", help="Draw the position embeddings; needs no model.")] = (
        False
    )
    schedule: Annotated[bool, typer.Option("--schedule", help="Draw the learning rate; needs no model.")] = False
    masks: Annotated[bool, typer.Option("--masks", help="Draw the two masks; needs no model.")] = False
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")] = False

    def theory(self) -> list[str]:
        """Return the names of the chosen figures that need no model."""
        return [name for name in ("positions", "schedule", "masks") if getattr(self, name)]

    def others(self) -> list[str]:
        """Return the models except the first."""
        return (self.words or [])[:-1]

    def text(self) -> str:
        """Return the text to explain."""
        return (self.words or [""])[-1]

    def suffix(self) -> str:
        """Return the ending of the files to write."""
        return "svg" if self.theory() and self.form is Form.html else str(self.form)

    def destination(self) -> Path:
        """Return the path of the file or folder to write."""
        default = "explained" if self.suffix() in PICTURES else f"explained.{self.suffix()}"
        return self.output or Path("." if self.theory() else default)


@with_search("beam")
@with_options(ExplainOptions, "options")
def explain_command(options: ExplainOptions, decode: SearchSettings) -> None:
    """Show how a text is translated: attention, what each head does, the search, and every tensor.

    The result is one page that works offline, or a picture for each figure. With two models, the page can switch
    between them, and shows where their outputs diverge and which heads differ.

    For example:
      allyouneed explain runs/dates 1845-01-05
      allyouneed explain runs/dates runs/other 1845-01-05
      allyouneed explain runs/a/snapshots/00000200.safetensors runs/a 1845-01-05
      allyouneed explain runs/dates 1845-01-05 --format svg --output pictures
      allyouneed explain --positions --format png
    """
    from ...machine.files import check_output_file

    _refuse_combinations(options)
    if options.suffix() not in PICTURES:
        check_output_file(options.destination(), what="the explanation", overwrite=options.overwrite)
    if options.theory():
        _draw_theory(options)
        return
    translators = _load_translators(options, decode)
    if options.others():
        _compare(translators, options)
    else:
        _explain_one(translators[0], options)


def _refuse_combinations(options: ExplainOptions) -> None:
    from ...bundle import model_files
    from ...errors import InputError
    from .program import shell_command

    lacks_model_or_text = options.bundle is None or options.words is None
    if lacks_model_or_text == (not options.theory()) or len(options.others()) > 1:
        text = " ".join(options.words or ["the", "text"])
        quoted = shell_command("explain", options.bundle or "BUNDLE", text)
        raise InputError(
            "explain needs the folder of a bundle, or of two, and a text, or --positions, --schedule or --masks; "
            f"quote a text of several words: {quoted}"
        )
    if not options.others() and options.words and model_files(Path(options.text())):
        quoted = shell_command("explain", options.bundle, options.text(), "a text")
        raise InputError(f"{options.text()} is a model; two models are compared on a text, which is missing: {quoted}")
    if options.others() and options.form is not Form.html:
        raise InputError("two models are compared on a page; leave out --format")
    if options.theory() and options.form is Form.json:
        raise InputError("--positions, --schedule and --masks are pictures; use --format svg or png")


def _model_folders(options: ExplainOptions) -> list[list[Path]]:
    """Return the folders of each model; an ensemble has several."""
    from ...machine.files import named_folders

    return [named_folders(name) for name in (str(options.bundle), *options.others())]


def _load_translators(options: ExplainOptions, decode: SearchSettings) -> "list[Translator]":
    from ...text.glossary import Glossary
    from ...translator import Translator
    from ..explain import load_moment

    terms = Glossary.read(options.glossary) if options.glossary else None
    return [
        Translator(*map(load_moment, folders), precision=options.precision).using(glossary=terms, **decode)
        for folders in _model_folders(options)
    ]


def _explain_one(translator: "Translator", options: ExplainOptions) -> None:
    """Write the page, the numbers or the pictures of a translation."""
    from ...machine.files import to_json, write_whole
    from ..explain import FIGURES, attention_figures, build_page, sharpest_claims, trace_translation, trace_values
    from .screen import console

    trace = trace_translation(translator, options.text())
    if options.suffix() in PICTURES:
        figures = {name: draw(trace) for name, draw in FIGURES.items()}
        _save_pictures(figures | attention_figures(trace), options)
        return
    if options.form is Form.html:
        held_out = _held_out(_model_folders(options)[0][0])
        explanation = build_page(trace, translator, sharpest_claims(translator, held_out))
    else:
        explanation = to_json(trace_values(trace), indent=1) + "\n"
    write_whole(options.destination(), explanation)
    _print_translations([trace])
    console.print(str(options.destination()))


def _compare(translators: "Sequence[Translator]", options: ExplainOptions) -> None:
    """Write the page of two models, and print where they differ."""
    from ...machine.files import write_whole
    from ..explain import build_page_of_two, compare_traces, describe_comparison, trace_translation
    from .screen import console

    first, second = (folders[0] for folders in _model_folders(options))
    names = _short_names(first, second)
    traces = [trace_translation(translator, options.text()) for translator in translators]
    write_whole(options.destination(), build_page_of_two(names, traces, translators))
    _print_translations(traces)
    for line in describe_comparison(compare_traces(*traces), names):
        console.print(line)
    definitions = {translator.bundle.definition for translator in translators} - {""}
    if len(definitions) > 1:
        console.print(f"{names[0]} was made with another nn/ than {names[1]}.")
    console.print(str(options.destination()))


def _print_translations(traces: "Sequence[Trace]") -> None:
    from .screen import console

    for trace in traces:
        console.print(f"{trace.text} → {trace.translation}")
        if trace.note:
            console.print(trace.note)


def _draw_theory(options: ExplainOptions) -> None:
    from ..explain import THEORY

    _save_pictures({name: THEORY[name]() for name in options.theory()}, options)


def _save_pictures(figures: "Mapping[str, Figure]", options: ExplainOptions) -> None:
    """Save each figure in the folder, and print its path."""
    from ...machine.files import refuse_to_replace
    from ..explain import save
    from .screen import console

    folder = options.destination()
    paths = {name: folder / f"{name}.{options.suffix()}" for name in figures}
    if not options.overwrite:
        for path in paths.values():
            refuse_to_replace(path, what="a picture")
    folder.mkdir(parents=True, exist_ok=True)
    is_complete = True
    for name, figure in figures.items():
        is_complete &= save(figure, paths[name])
        console.print(str(paths[name]))
    if not is_complete:
        console.print("The font lacks letters of this text, which are boxes in the pictures; use --format svg.")


def _short_names(first: Path, second: Path) -> tuple[str, str]:
    """Choose names for two folders or files on a page: their last names or, if these are equal, their whole paths."""
    return (first.stem, second.stem) if first.stem != second.stem else (str(first), str(second))


def _held_out(folder: Path) -> "Sequence[Pair]":
    """Return evenly spaced test pairs of a run, to measure its heads on; () for a bundle without a run."""
    from ...evaluation.held_out import find_held_out_pairs
    from ..explain.claims import MOST_INPUTS

    pairs = find_held_out_pairs(folder) if (folder / "recipe.toml").is_file() else []
    return pairs[:: max(1, len(pairs) // (2 * MOST_INPUTS))]
