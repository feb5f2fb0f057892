"""`allyouneed explain`: how a model translates a sentence, as a page or as pictures."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .command import GlossaryOption, OptionalBundleFolder, SearchSettings, with_search

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...data.pairs import Pair


class Form(StrEnum):
    """One page, a picture for each figure, or the numbers."""

    html = "html"
    svg = "svg"
    png = "png"
    json = "json"


@with_search("beam")
def explain_command(
    bundle: OptionalBundleFolder = None,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[BUNDLE] TEXT",
            help="A second model, to compare with, or a snapshot of its run; the text to translate and explain.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The page, or the folder of pictures; default: explained.html."),
    ] = None,
    form: Annotated[
        Form, typer.Option("--format", help="One page, a picture for each figure, or the numbers.")
    ] = Form.html,
    precision: Annotated[str, typer.Option(help="float32, int8 or auto.")] = ("auto"),
    glossary: GlossaryOption = None,
    positions: Annotated[
        bool, typer.Option("--positions", help="Draw the position embeddings; needs no model.")
    ] = False,
    schedule: Annotated[bool, typer.Option("--schedule", help="Draw the learning rate; needs no model.")] = False,
    masks: Annotated[bool, typer.Option("--masks", help="Draw the two masks; needs no model.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")] = False,
    *,
    decode: SearchSettings,
) -> None:
    """Show how a text is translated: attention, what each head does, the search, and every tensor of the pass.

    The result is one page that works offline, or a picture for each figure. Of two models the page lists where their
    outputs part and the heads whose pattern differs, and switches between them.

    For example:
      allyouneed explain runs/dates 1845-01-05
      allyouneed explain runs/dates runs/other 1845-01-05
      allyouneed explain runs/a/snapshots/00000200.safetensors runs/a 1845-01-05
      allyouneed explain runs/dates 1845-01-05 --format svg --output pictures
      allyouneed explain --positions --format png
    """
    from ...errors import InputError
    from ...files import check_output_file, named_folders, refuse_to_replace, to_json, write_whole
    from .program import shell_command
    from .screen import console

    theory = [name for name, is_set in (("positions", positions), ("schedule", schedule), ("masks", masks)) if is_set]
    *others, text = words or [""]
    if (bundle is None or words is None) == (not theory) or len(others) > 1:
        quoted = shell_command("explain", bundle or "BUNDLE", " ".join(words or ["the", "text"]))
        raise InputError(
            "explain needs the folder of a bundle, or of two, and a text, or --positions, --schedule or --masks; "
            f"quote a text of several words: {quoted}"
        )
    if others and form is not Form.html:
        raise InputError("two models are compared on a page; leave out --format")
    suffix = "svg" if theory and form is Form.html else str(form)
    if theory and form is Form.json:
        raise InputError("--positions, --schedule and --masks are pictures; use --format svg or png")
    pictures = suffix in ("svg", "png")
    destination = output or Path("." if theory else "explained" if pictures else f"explained.{suffix}")
    if not pictures:
        check_output_file(destination, what="the explanation", overwrite=overwrite)

    from ..explain import (
        FIGURES,
        THEORY,
        attention_figures,
        build_page,
        build_page_of_two,
        compare_traces,
        describe_comparison,
        load_moment,
        save,
        sharpest_claims,
        trace_translation,
        trace_values,
    )

    if theory:
        figures = {name: THEORY[name]() for name in theory}
    else:
        from ...text.glossary import Glossary
        from ...translator import Translator

        assert bundle is not None
        terms = Glossary.read(glossary) if glossary else None
        models = [named_folders(name) for name in (str(bundle), *others)]
        translators = [
            Translator(*map(load_moment, folders), precision=precision).using(glossary=terms, **decode)
            for folders in models
        ]
        traces = [trace_translation(translator, text) for translator in translators]
        trace, translator = traces[0], translators[0]
        if others:
            names = _short_names(models[0][0], models[1][0])
            write_whole(destination, build_page_of_two(names, traces, translators))
        elif form is Form.html:
            write_whole(destination, build_page(trace, translator, sharpest_claims(translator, _held_out(*models[0]))))
        elif form is Form.json:
            write_whole(destination, to_json(trace_values(trace), indent=1) + "\n")
        else:
            figures = {name: draw(trace) for name, draw in FIGURES.items()} | attention_figures(trace)
    if pictures:
        paths = {name: destination / f"{name}.{suffix}" for name in figures}
        if not overwrite:
            for path in paths.values():
                refuse_to_replace(path, what="a picture")
        destination.mkdir(parents=True, exist_ok=True)
        complete = True
        for name, figure in figures.items():
            complete &= save(figure, paths[name])
            console.print(str(paths[name]))
        if not complete:
            console.print("The font lacks letters of this text, which are boxes in the pictures; use --format svg.")
    else:
        for one in traces:
            console.print(f"{one.text} → {one.translation}")
            if one.note:
                console.print(one.note)
        if others:
            for line in describe_comparison(compare_traces(*traces), names):
                console.print(line)
            if len({one.bundle.definition for one in translators} - {""}) > 1:
                console.print(f"{names[0]} was made with another nn/ than {names[1]}.")
        console.print(str(destination))


def _short_names(first: Path, second: Path) -> tuple[str, str]:
    """What two folders or files are called on a page: their last names, or all of them if these are equal."""
    return (first.stem, second.stem) if first.stem != second.stem else (str(first), str(second))


def _held_out(folder: Path) -> "Sequence[Pair]":
    """Test pairs of a run, evenly spaced, by which its heads are judged; none of a bundle without a run."""
    from ...evaluation.held_out import find_held_out_pairs
    from ..explain.claims import MOST_INPUTS

    pairs = find_held_out_pairs(folder) if (folder / "recipe.toml").is_file() else []
    return pairs[:: max(1, len(pairs) // (2 * MOST_INPUTS))]
