"""`allyouneed explain`: how a model translates a sentence, as a page or as pictures."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import GlossaryOption, OptionalBundleFolder, SearchSettings, with_search

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
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="The text to translate and explain.", show_default=False)
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The page, or the folder of pictures; default: explained.html.",
            show_default=False,
        ),
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

    The result is one page that works offline, or a picture for each figure.

    For example:

      allyouneed explain runs/dates 1845-01-05

      allyouneed explain runs/dates 1845-01-05 --format svg --output pictures

      allyouneed explain --positions --format png
    """
    from ...errors import InputError
    from ...files import check_output_file, named_folders, refuse_to_replace, to_json, write_whole
    from .screen import console

    theory = [name for name, is_set in (("positions", positions), ("schedule", schedule), ("masks", masks)) if is_set]
    if (bundle is None or text is None) == (not theory):
        raise InputError("explain needs the folder of a bundle and a text, or --positions, --schedule or --masks")
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
        assert text is not None
        terms = Glossary.read(glossary) if glossary else None
        folders = named_folders(bundle)
        translator = Translator.load(
            *folders, device="cpu", precision=precision, compiled=False, glossary=terms, **decode
        )
        trace = trace_translation(translator, text)
        if form is Form.html:
            write_whole(destination, build_page(trace, translator, sharpest_claims(translator, _held_out(folders))))
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
        console.print(f"{trace.text} → {trace.translation}")
        if trace.note:
            console.print(trace.note)
        console.print(str(destination))


def _held_out(folders: "Sequence[Path]") -> "Sequence[Pair]":
    """Test pairs of a run, evenly spaced, by which its heads are judged; none of a bundle without a run."""
    from ...evaluation.held_out import find_held_out_pairs
    from ..explain.claims import MOST_INPUTS

    (folder,) = folders
    pairs = find_held_out_pairs(folder) if (folder / "recipe.toml").is_file() else []
    return pairs[:: max(1, len(pairs) // (2 * MOST_INPUTS))]
