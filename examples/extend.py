"""A position embedding, a norm and an optimizer of your own, without editing the package: a model that reverses words.

Run as: python examples/extend.py FOLDER
"""

import random
import sys
from typing import Any

import torch
from torch import Tensor, nn

from allyouneed import ModelConfig, Transformer, Translator, fit
from allyouneed.nn.residual import Residual


class RotatedPositions(nn.Module):
    """A position as a learned rotation of each pair of numbers. Any module with this `forward` will do."""

    def __init__(self, d_model: int, **_: object) -> None:
        super().__init__()
        self.frequency = nn.Parameter(torch.randn(d_model // 2))

    def forward(self, x: Tensor, *, start: int = 0) -> Tensor:
        angle = torch.outer(torch.arange(start, start + x.size(1)) + 1.0, self.frequency)  # (L, D/2)
        left, right = x.chunk(2, -1)
        return torch.cat((left * angle.cos() - right * angle.sin(), left * angle.sin() + right * angle.cos()), -1)


def build(config: ModelConfig) -> Transformer:
    """Make the model: the paper's, with rotated positions and RMSNorm (Zhang and Sennrich, 2019)."""
    position: Any = RotatedPositions
    model = Transformer(config, position=position)
    for module in model.modules():
        if isinstance(module, Residual):
            norm: Any = nn.RMSNorm(config.d_model)
            module.norm = norm
    return model


def reversed_words(count: int) -> list[tuple[str, str]]:
    """Draw words of four letters, each with its letters reversed."""
    rng = random.Random(1)
    words = ["".join(rng.choices("abcdefgh", k=4)) for _ in range(count)]
    return [(word, word[::-1]) for word in words]


recipe = {
    "data": {"vocabulary": "characters"},
    "clean": {"deduplicate": False, "overlap": "none"},
    "model": {"d_model": 32, "d_ff": 128, "heads": 4, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0},
    "train": {"steps": 200, "warmup": 30, "schedule": "cosine", "learning_rate": 0.003, "threads": 1},
}
folder = sys.argv[1] if len(sys.argv) > 1 else "runs/extended"
fit(recipe, folder, train=reversed_words(3_000), build_model=build, evaluate=None,
    optimizer=lambda model, _: torch.optim.NAdam(model.parameters(), betas=(0.9, 0.98)))  # fmt: skip

translate = Translator.load(folder, build_model=build)  # the folder names `build`, and is refused without it
for word in ("abcd", "hgfa"):
    print(f"{word}  →  {translate(word)}")
