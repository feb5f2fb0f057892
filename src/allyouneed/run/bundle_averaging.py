"""A bundle whose weights are the mean of those of several bundles: of one run, or trained on from the same model."""

import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from ..bundle import Bundle, require_one_vocabulary
from ..errors import ConfigError
from ..fast.uninitialized import UninitializedWeights
from ..files import folder_written_whole
from ..nn.weights import set_weights, weights
from ..train.averaging import average_weights
from ..younger import build_model
from .model_card import describe_model

_HEAD = re.compile(r"\A---\n.*?\n---\n+", re.DOTALL)  # of a card, for model hubs


def average_bundles(folders: Sequence[str | Path], output: str | Path) -> Bundle:
    """Write the bundle of the mean weights of two or more bundles into the new folder `output`.

    Everything but the weights and the card is that of the first. Refuses bundles of other vocabularies, languages or
    sizes than the first has.
    """
    names = [str(folders)] if isinstance(folders, str | Path) else [str(folder) for folder in folders]
    if len(names) < 2:
        raise ConfigError(f"an average needs at least two bundles; got {', '.join(names) or 'none'}")
    with folder_written_whole(Path(output)) as partial:
        bundles = [Bundle.load(name) for name in names]
        require_one_vocabulary(bundles, names)
        _require_one_config(bundles, names)
        with UninitializedWeights():
            model = build_model(bundles[0].model.config)
        set_weights(model, average_weights(weights(bundle.model) for bundle in bundles))
        average = replace(bundles[0], model=model.eval(), card=_card(Path(output).name, bundles, names))
        average.save(partial)
    return average


def _require_one_config(bundles: Sequence[Bundle], names: Sequence[str]) -> None:
    first = asdict(bundles[0].model.config)
    for bundle, name in zip(bundles, names, strict=True):
        for key, value in asdict(bundle.model.config).items():
            if value != first[key] and key not in ("dropout", "attention_dropout"):  # which are for training alone
                raise ConfigError(
                    f"{names[0]} has model.{key}={first[key]!r}, but {name} has {value!r}; only weights of models of "
                    "one kind and size have a mean"
                )


def _card(name: str, bundles: Sequence[Bundle], names: Sequence[str]) -> str:
    """A card that says what was averaged, with the cards of all of them below."""
    head = _HEAD.match(bundles[0].card)
    parts = [
        f"{head.group() if head else ''}# {name}",
        f"A Transformer (Vaswani et al., 2017) with {describe_model(bundles[0].model)}.\n"
        f"The weights are the mean of those of {len(names)} models, whose cards follow: {', '.join(names)}.",
        *(_HEAD.sub("", bundle.card).strip() for bundle in bundles),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"
