"""`allyouneed demo`: the date task from training to translation."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ...bundle import Bundle

EXAMPLES = ("1845-01-05", "1467-07-28", "1468-01-11", "1996-09-08", "1959-03-02")


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder for the model.")] = Path("runs/dates"),
    seed: Annotated[int, typer.Option(help="Random seed: dates, initial weights, order of the batches.")] = 1,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing run.")] = False,
) -> None:
    """Learn to write 1845-01-05 as January 5, 1845, in well under a minute.

    Trains a small Transformer on generated dates, tests it on 2,000 unseen ones, translates a few, and draws the
    cross-attention.

    For example:

      allyouneed demo
    """
    from contextlib import nullcontext

    from ...config import Recipe
    from ...recipes import recipe_path
    from .next_steps import next_steps
    from .program import shell_command
    from .screen import ProgressBar, console

    recipe = Recipe.read(recipe_path("dates"), [f"train.seed={seed}"])
    console.print("Dates, character by character: 1845-01-05 → January 5, 1845\n")

    from ...data.readers import read_pairs
    from ...device import configure_process
    from ...fast.selection import compile_kernels
    from ...metrics import exact_match
    from ...run import replaced
    from ...translator import Translator
    from ..reports import fit

    configure_process(recipe.train.threads)
    making = replaced(output, sources=()) if overwrite else nullcontext(output)
    with making as folder, ProgressBar(samples=False, details=output / "log.txt") as screen:
        bundle = fit(recipe, folder, callback=screen)
    compile_kernels(bundle.model.config, console.print)

    translator = Translator(bundle)
    translator.compare_with_numpy(output)
    test = read_pairs(recipe.data.test, limit=2_000, seed=seed)
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
        title=f"{source} → {target}: each row an output character, each column a source character",
    )
