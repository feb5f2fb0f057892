"""The card of a model, README.md in its bundle."""

from collections.abc import Sequence
from math import exp

from ..language_tags import language_name
from ..nn import Transformer
from ..versions import versions
from .callback import Validation, telling_scores
from .state import MIN_UPDATES


def describe_model(model: Transformer) -> str:
    """The sizes of a model in a line."""
    config = model.config
    return (
        f"{config.encoder_layers}+{config.decoder_layers} layers, d_model {config.d_model}, d_ff {config.d_ff}, "
        f"{config.heads} heads: {model.parameter_count():,} parameters"
    )


def model_card(
    name: str,
    model: Transformer,
    validation: Validation,
    *,
    pairs: int,
    languages: tuple[str, str] = ("", ""),
    license: str = "",  # noqa: A002  as in the head of a card
    data: Sequence[str] = (),
    init_from: str = "",
) -> str:
    """The README.md of a bundle.

    `data` are the names of its training corpora, `init_from` is the bundle it was initialized from. Languages and
    license are also in its header, which model hubs read.
    """
    origin = f", starting from {init_from}" if init_from else ""
    lines = [
        *_head(languages, license),
        f"# {name}",
        "",
        f"A Transformer (Vaswani et al., 2017) with {describe_model(model)}.",
        f"Trained on {pairs:,} pairs for {validation.step:,} updates{origin}.",
    ]
    if validation.step < MIN_UPDATES and not init_from:
        lines.append(
            f"Untrained: a model learns little in fewer than {MIN_UPDATES} updates; give it more minutes or more steps."
        )
    if all(languages):
        source, target = (f"{language_name(tag)} ({tag})" for tag in languages)
        lines.append(f"Translates {source} into {target}.")
    if data:
        lines.append(f"Training data: {', '.join(data)}.")
    if license:
        lines.append(f"License: {license}.")
    if validation.averaged > 1:
        lines.append(f"The weights are the average of the last {validation.averaged} checkpoints.")
    if validation.valid_loss is not None:
        lines.append(
            f"Validation loss {validation.valid_loss:.4f} nats per token "
            f"(perplexity {exp(min(validation.valid_loss, 700)):.3f}), "
            f"{validation.accuracy:.2f} % of tokens correct."
        )
    lines += [
        f"Validation {score}: {value:.2f}."
        for score, value in telling_scores(validation.scores).items()
        if value is not None
    ]
    lines += [
        f"Trained with {versions()}.",
        "",
        "    from allyouneed import Translator",
        '    Translator.load("this/folder")("…")',
        "",
    ]
    return "\n".join(lines)


def _head(languages: tuple[str, str], license: str) -> list[str]:  # noqa: A002
    if not (license or all(languages)):
        return []
    tags = ["language:", *(f"- {tag}" for tag in dict.fromkeys(languages))] if all(languages) else []
    return ["---", *tags, *([f"license: {license}"] if license else []), "---", ""]
