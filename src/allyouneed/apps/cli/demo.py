"""`allyouneed demo`: the date task from training to translation. `try`: a model of it that comes with the program."""

import webbrowser
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ...bundle import Bundle
    from ...config import Recipe

EXAMPLES = ("1845-01-05", "1467-07-28", "1468-01-11", "1996-09-08", "1959-03-02")


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder for the model.")] = Path("runs/dates"),
    seed: Annotated[int, typer.Option(help="Random seed: dates, initial weights, order of the batches.")] = 1,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing run.")] = False,
) -> None:
    """Learn to write 1845-01-05 as January 5, 1845, in well under a minute.

    The demo trains a small Transformer on generated dates, tests it on 2,000 unseen ones, translates a few, and draws
    the cross-attention.

    For example:
      allyouneed demo
    """
    from ...config import Recipe
    from ...errors import OutputError
    from ...recipes import recipe_path
    from ...run.run_folder import has_run
    from .screen import console

    if has_run(output) and not overwrite:
        raise OutputError(f"{output} already contains a run").mended_by("--overwrite")
    recipe = Recipe.read(recipe_path("dates"), [f"train.seed={seed}"])
    console.print("Dates, character by character: 1845-01-05 → January 5, 1845\n")
    bundle = _train(recipe, output, overwrite=overwrite)
    _show(bundle, recipe, output)


def _train(recipe: "Recipe", output: Path, *, overwrite: bool) -> "Bundle":
    """Train in the folder. If training is interrupted, the message names the command that continues it."""
    from ...errors import Interrupted
    from ...machine.device import configure_process
    from ...run import replaced
    from ..reports import fit
    from .program import shell_command
    from .progress_bar import ProgressBar

    configure_process(recipe.train.threads)
    making = replaced(output, sources=()) if overwrite else nullcontext(output)
    try:
        with making as folder, ProgressBar(samples=False, details=output / "log.txt") as screen:
            return fit(recipe, folder, callback=screen)
    except Interrupted as stopped:  # the demo itself starts from the beginning
        again = ("--overwrite",) if overwrite and output.exists() else ()
        resume = shell_command("train", "dates", f"train.seed={recipe.train.seed}", "-o", output, "--resume", *again)
        raise Interrupted(f"{stopped}: {resume}", signal=stopped.signal) from None


def _show(bundle: "Bundle", recipe: "Recipe", output: Path) -> None:
    """Print how well unseen dates are translated, examples, and next steps; draw the cross-attention."""
    from ...data.readers import read_pairs
    from ...metrics import exact_match
    from ...translator import Translator
    from .program import next_steps, shell_command

    translator = Translator(bundle)
    test = read_pairs(recipe.data.test, limit=2_000, seed=recipe.train.seed)
    score = exact_match(translator.translate([pair.source for pair in test]), [pair.target for pair in test])
    print(f"\n{score.value:.2f} % of {len(test):,} unseen dates are translated exactly.\n")
    for example in EXAMPLES:
        print(f"  {example}  →  {translator(example)}")
    picture = output / "cross_attention.png"
    _draw(bundle, EXAMPLES[0], translator(EXAMPLES[0]), picture)
    steps = "\n".join(next_steps(output, bundle, "2024-02-29"))
    print(
        f"""
Cross-attention, the source characters that each output character attends to:  {picture}
The model:  {output}

Try next:
{steps}
  train your own    {shell_command("train", "FILE")}"""
    )


def _draw(bundle: "Bundle", source: str, target: str, path: Path) -> None:
    import torch

    from ..explain import draw_attention, recorded_attention

    model, tokenizer = bundle.model, bundle.source_tokenizer
    read, written = tokenizer.encode(source), tokenizer.encode(target)
    with torch.inference_mode(), recorded_attention(model) as seen:
        model(torch.tensor([read]), torch.tensor([written[:-1]]))
    last = f"decoder.layers.{model.config.decoder_layers - 1}.cross_attention"
    draw_attention(
        seen[last][0],
        source=tokenizer.pieces(read),
        target=tokenizer.pieces(written[1:]),
        path=path,
        title=f"{source} → {target}: rows are characters of the output, columns those of the source",
    )


DATE_MODEL = Path(__file__).parent / "dates"  # made by docs/make/models.py
EXAMPLE = "1845-01-05"


def try_command(
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port of the page; 0: any free one.")] = 0,
) -> None:
    """Look at a trained model at once: it writes 1845-01-05 as January 5, 1845.

    You see commands to translate with it, look inside and check it, and its page opens in the browser (extra serve).

    For example:
      allyouneed try
    """
    from ...machine.files import unused
    from ...translator import Translator
    from .program import command_with_extra, shell_command
    from .screen import console

    steps = {
        "translate a text": shell_command("translate", DATE_MODEL, "2024-02-29"),
        "see how it works": shell_command("explain", DATE_MODEL, EXAMPLE, "-o", "explained.html", "--overwrite"),
        "is it sound": shell_command("check", DATE_MODEL),
        "as one web page": command_with_extra("export", DATE_MODEL, unused("dates-page"), "--to", "html"),
        "train it yourself": shell_command("demo", *(["--overwrite"] if Path("runs/dates").exists() else [])),
        "train your own": shell_command("train", "FILE"),
    }
    print(f"{EXAMPLE}  →  {Translator.load(DATE_MODEL)(EXAMPLE)}\n\nTry next:")
    for what, command in steps.items():
        print(f"  {what:<17} {command}", flush=True)
    print(flush=True)

    from ..serve.options import ServeConfig
    from .serve import serve_bundles

    serve_bundles([str(DATE_MODEL)], ServeConfig(port=port), on_ready=webbrowser.open if console.is_terminal else None)
