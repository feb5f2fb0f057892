"""`allyouneed try`: a trained model of dates that comes with the program, in the browser and as commands."""

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

DATE_MODEL = Path(__file__).parent / "dates"  # made by docs/make/date_model.py
EXAMPLE = "1845-01-05"


def try_command(
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port of the page; 0: any free one.")] = 0,
) -> None:
    """Look at a trained model at once: it writes 1845-01-05 as January 5, 1845.

    Prints commands that translate with it, look inside and check it, and opens its page in the browser (extra serve).

    For example:

      allyouneed try
    """
    from ...translator import Translator
    from .program import shell_command
    from .screen import console

    steps = {
        "translate a text": ("translate", DATE_MODEL, "2024-02-29"),
        "see how it works": ("explain", DATE_MODEL, EXAMPLE, "-o", "explained.html", "--overwrite"),
        "is it sound": ("check", DATE_MODEL),
        "as one web page": ("export", DATE_MODEL, "dates-page", "--to", "html"),
        "train it yourself": ("demo",),
        "train your own": ("train", "FILE"),
    }
    print(f"{EXAMPLE}  →  {Translator.load(DATE_MODEL)(EXAMPLE)}\n\nTry next:")
    for what, words in steps.items():
        print(f"  {what:<17} {shell_command(*words)}", flush=True)
    print(flush=True)

    from ..serve.options import ServeConfig
    from .serve import serve_bundles

    serve_bundles([str(DATE_MODEL)], ServeConfig(port=port), on_ready=webbrowser.open if console.is_terminal else None)
