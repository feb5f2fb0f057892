"""The card of a model, README.md in its bundle."""

from math import exp

from ..nn import Transformer
from ..versions import versions
from .callback import Validation


def describe_model(model: Transformer) -> str:
    """The sizes of a model in a line."""
    config = model.config
    return (
        f"{config.encoder_layers}+{config.decoder_layers} layers, d_model {config.d_model}, d_ff {config.d_ff}, "
        f"{config.heads} heads: {model.parameter_count():,} parameters"
    )


def model_card(name: str, model: Transformer, validation: Validation, *, pairs: int, init_from: str = "") -> str:
    """The README.md of a bundle. `init_from` is the bundle it was initialized from."""
    origin = f", starting from {init_from}" if init_from else ""
    lines = [
        f"# {name}",
        "",
        f"A Transformer (Vaswani et al., 2017) with {describe_model(model)}.",
        f"Trained on {pairs:,} pairs for {validation.step:,} updates{origin}.",
    ]
    if validation.averaged > 1:
        lines.append(f"The weights are the average of the last {validation.averaged} checkpoints.")
    if validation.valid_loss is not None:
        lines.append(
            f"Validation loss {validation.valid_loss:.4f} nats per token "
            f"(perplexity {exp(min(validation.valid_loss, 700)):.3f}), "
            f"{validation.accuracy:.2f} % of tokens correct."
        )
    lines += [f"Validation {score}: {value:.2f}." for score, value in validation.scores.items()]
    lines += [
        f"Trained with {versions()}.",
        "",
        "    from allyouneed import Translator",
        '    Translator.load("this/folder")("…")',
        "",
    ]
    return "\n".join(lines)
