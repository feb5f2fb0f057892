"""What the encoder's second block knows that the first does not: python docs/make/second_layer.py

Writes docs/make/second_layer.json: of 200 unseen dates the share, in %, whose month the vector of one character tells,
before and after each block. The month is that of the nearest of twelve means, which 400 other dates give.
"""

import json
from pathlib import Path

import torch
from torch import Tensor

from allyouneed import Bundle
from allyouneed.apps.cli.demo import DATE_MODEL
from allyouneed.data.tasks import date_pairs
from allyouneed.machine.files import write_whole

RESULT = Path(__file__).with_name("second_layer.json")
PLACES = (5, 6, 7, 8)  # of `-01-` in `<sos>1845-01-05`
KNOWN = 400  # dates that give the means


@torch.inference_mode()
def encoder_stages(bundle: Bundle, texts: list[str]) -> list[Tensor]:
    """Return what enters the encoder, and what leaves each of its blocks, (texts, characters, D)."""
    stages: list[Tensor] = []
    layers = bundle.model.eval().encoder.layers
    hooks = [layers[0].register_forward_pre_hook(lambda _, inputs: stages.append(inputs[0]))]
    hooks += [layer.register_forward_hook(lambda _, inputs, output: stages.append(output)) for layer in layers]
    bundle.model.encode(torch.tensor(bundle.source_tokenizer.encode_all(texts)))
    for hook in hooks:
        hook.remove()
    return stages


def known_months(bundle: Bundle) -> dict[str, list[float]]:
    """Measure the shares for every stage and place."""
    texts = [source for source, _ in date_pairs("valid", count=KNOWN + 200)]
    months = torch.tensor([int(text[5:7]) for text in texts])
    shares = {}
    names = ("enters the encoder", "after block 1", "after block 2")
    for name, vectors in zip(names, encoder_stages(bundle, texts), strict=True):
        shares[name] = [share_told(vectors[:, place], months) for place in PLACES]
    return shares


def share_told(vectors: Tensor, months: Tensor) -> float:
    """Return the share, in %, of the last dates whose month is that of the nearest mean of the first ones."""
    means = torch.stack([vectors[:KNOWN][months[:KNOWN] == month].mean(0) for month in range(1, 13)])
    told = torch.cdist(vectors[KNOWN:], means).argmin(1) + 1
    return 100 * float((told == months[KNOWN:]).float().mean())


if __name__ == "__main__":
    known = known_months(Bundle.load(DATE_MODEL))
    write_whole(RESULT, json.dumps({name: [round(share, 1) for share in own] for name, own in known.items()}) + "\n")
