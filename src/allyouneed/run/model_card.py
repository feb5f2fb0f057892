"""A model's card, and what is said of it and its data when a run begins."""

from math import exp

from ..nn import Transformer
from ..versions import versions
from .callback import Validation


def describe_model(model: Transformer) -> str:
    """Its sizes in a line."""
    config = model.config
    return (
        f"{config.encoder_layers}+{config.decoder_layers} layers, d_model {config.d_model}, d_ff {config.d_ff}, "
        f"{config.heads} heads: {model.parameter_count():,} parameters"
    )


def model_card(name: str, model: Transformer, pause: Validation, *, pairs: int, init_from: str = "") -> str:
    """The README.md of a bundle. `start` is the bundle it began from."""
    lines = [
        f"# {name}",
        "",
        f"A Transformer (Vaswani et al., 2017) with {describe_model(model)}.",
        f"Trained on {pairs:,} pairs for {pause.step:,} updates{f', starting from {init_from}' if init_from else ''}.",
    ]
    if pause.averaged > 1:
        lines.append(f"The weights are the mean of the last {pause.averaged} pauses.")
    if pause.valid_loss is not None:
        lines.append(
            f"Validation loss {pause.valid_loss:.4f} nats a token (perplexity {exp(min(pause.valid_loss, 700)):.3f}), "
            f"{pause.accuracy:.2f} % of tokens right."
        )
    lines += [f"Validation {score}: {value:.2f}." for score, value in pause.scores.items()]
    lines += [
        f"Trained with {versions()}.",
        "",
        "    from allyouneed import Translator",
        '    Translator.load("this/folder")("…")',
        "",
    ]
    return "\n".join(lines)
