"""What the encoder's second block knows that the first does not: python docs/make/second_layer.py

Writes docs/make/second_layer.json: of 2,400 unseen dates the share, in %, whose month the vector of one character
tells, before and after each block. The month is that of the nearest of twelve means, which 1,200 other dates give.
Every month is equally frequent, so that a vector of one character before attention tells no more than this character.
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
KNOWN, TOLD = 100, 200  # dates of each month that give its mean, and those whose month is to be told


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
    unseen = [source for source, _ in date_pairs("valid", count=12 * (KNOWN + TOLD) * 3 // 2)]
    texts: list[str] = []
    for month in range(1, 13):
        texts += [text for text in unseen if int(text[5:7]) == month][: KNOWN + TOLD]
    names = ("enters the encoder", "after block 1", "after block 2")
    return {
        name: [share_told(vectors[:, place].view(12, KNOWN + TOLD, -1)) for place in PLACES]
        for name, vectors in zip(names, encoder_stages(bundle, texts), strict=True)
    }


def share_told(vectors: Tensor) -> float:
    """Return the share, in %, of the last dates of each month to whose vectors the mean of its first is the nearest.

    Shape: vectors (12, KNOWN + TOLD, D).
    """
    nearest = torch.cdist(vectors[:, KNOWN:], vectors[:, :KNOWN].mean(1)).argmin(-1)
    return 100 * float((nearest == torch.arange(12)[:, None]).float().mean())


if __name__ == "__main__":
    known = known_months(Bundle.load(DATE_MODEL))
    write_whole(RESULT, json.dumps({name: [round(share, 1) for share in own] for name, own in known.items()}) + "\n")
