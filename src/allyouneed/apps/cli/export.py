"""`allyouneed export`, `import` and `average`: convert bundles to and from other formats, and average them."""

import signal
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .command import BundleFolder, SearchSettings, with_search

if TYPE_CHECKING:
    from ..convert.exports import Proof


class Format(StrEnum):
    """The formats. Each has a module in `convert/`."""

    CTRANSLATE2 = "ctranslate2"
    ONNX = "onnx"
    HUGGINGFACE = "huggingface"
    HTML = "html"


class WeightPrecision(StrEnum):
    """The precisions of exported weights."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    INT8 = "int8"


@with_search()
def export(
    bundle: BundleFolder,
    output: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to write.")],
    to: Annotated[Format, typer.Option(help="The format to write.")],
    precision: Annotated[
        WeightPrecision | None,
        typer.Option(
            help="Precision of the weights: ctranslate2 has all three, huggingface float32 and float16, html float32 "
            "and int8, onnx float32. Default: float32; for html what a CPU translates with."
        ),
    ] = None,
    sentences: Annotated[int, typer.Option(help="Random sentences for the comparison.", min=1)] = 50,
    *,
    decode: SearchSettings,
) -> None:
    """Convert a model to another program's format, and check that it translates the same.

    The other program translates some of the bundle's sentences and random ones, greedily and with the bundle's beam. In
    float32 it must write the same tokens with the same log-probabilities, up to rounding. In int8 or float16 the
    log-probabilities may differ by 0.2 nats on average, and you see how many translations are equal. If the check
    fails, nothing is written; otherwise DIR/proof.json records it.

    For example:
      allyouneed export runs/mine mine-ct2 --to ctranslate2
      allyouneed export runs/mine mine-int8 --to ctranslate2 --precision int8
      allyouneed export runs/mine mine-onnx --to onnx
      allyouneed export runs/mine mine-marian --to huggingface
      allyouneed export runs/mine mine-page --to html decode.beam=8
    """
    from ...bundle import folders_of_models
    from ..convert.exports import export_bundle

    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # so that the unfinished folder is removed
    chosen = precision and precision.value
    proof = export_bundle(bundle, output, to=to.value, precision=chosen, sentences=sentences, decode=decode)
    _print_proof(output, proof)
    if (models := len(folders_of_models(bundle))) > 1:
        print(f"{bundle} is an ensemble of {models} models, and the export has only the first one")


def _print_proof(output: Path, proof: "Proof") -> None:
    ties = f" ({proof.ties} more chose another translation of the same score)" if proof.ties else ""
    print(
        f"{output}, weights in {proof.precision}: {proof.identical} of {proof.sentences} sentences translated "
        f"equally{ties}, {proof.tokens:,} tokens; log-probabilities at most {proof.max_difference:.0e} apart"
    )
    if proof.identical + proof.ties < proof.sentences:
        print("Rounded weights change translations; --precision float32 keeps them all, in a larger export")
    if left_out := ", ".join(proof.unexpressed_settings):
        print(f"The export does not keep these settings of the search, so that it may translate otherwise: {left_out}")


def import_command(
    checkpoint: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of the checkpoint.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="BUNDLE", help="The folder to write.")],
    source_language: Annotated[str, typer.Option(help="Language of the sources, as a BCP 47 tag.")] = "",
    target_language: Annotated[str, typer.Option(help="Language of the targets, as a BCP 47 tag.")] = "",
) -> None:
    """Turn another program's checkpoint into a bundle, to translate with it, train it further or explain it.

    The kind of checkpoint is recognized by its files. None of its code is run. If a bundle cannot express something in
    it, import refuses the checkpoint and says why.

    For example:
      allyouneed import opus-mt-en-it --output models/en-it
      allyouneed import mine --output models/mine --source-language en
    """
    from ..convert.imports import import_checkpoint

    bundle = import_checkpoint(checkpoint, output, source_language=source_language, target_language=target_language)
    print(f"{output}: {bundle.model.parameter_count():,} parameters, {len(bundle.source_tokenizer):,} tokens")


def average(
    bundles: Annotated[list[Path], typer.Argument(metavar="BUNDLE…", help="Folders of two or more models.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write.")],
) -> None:
    """Average the weights of several models of the same sizes and vocabulary.

    This helps for checkpoints of one run, and for models trained further from the same model. Models with different
    random starts have nothing in common to average: use them as an ensemble.

    For example:
      allyouneed average runs/mine-1 runs/mine-2 --output runs/mine-mean
    """
    from ...run import average_bundles
    from .program import shell_command

    bundle = average_bundles(bundles, output)
    print(f"{output}: the mean of {len(bundles)} models, {bundle.model.parameter_count():,} parameters")
    print(f"  {shell_command('evaluate', output)} --source FILE --target FILE")
