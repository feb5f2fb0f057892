"""A custom norm, position embedding and optimizer without editing the package: a model that reverses words."""

import random
from itertools import cycle

import torch
from torch import Tensor, nn

from allyouneed import ModelConfig, TrainConfig, Transformer
from allyouneed.data.batch import Batch
from allyouneed.nn.residual import Residual
from allyouneed.train import updates

PAD, START, END = 0, 1, 2
LETTERS = "abcdefgh"


class RotatedPositions(nn.Module):
    """A position as a learned rotation of each pair of numbers. Any module with this `forward` will do."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.frequency = nn.Parameter(torch.randn(d_model // 2))

    def forward(self, x: Tensor, *, start: int = 0) -> Tensor:
        angle = torch.outer(torch.arange(start, start + x.size(1)) + 1.0, self.frequency)  # (L, D/2)
        left, right = x.chunk(2, -1)
        return torch.cat((left * angle.cos() - right * angle.sin(), left * angle.sin() + right * angle.cos()), -1)


def encode(word: str) -> list[int]:
    return [START, *(3 + LETTERS.index(letter) for letter in word), END]


torch.set_num_threads(1)  # faster for a model this small
torch.manual_seed(1)
config = ModelConfig(vocab_size=3 + len(LETTERS), d_model=32, d_ff=128, heads=4, encoder_layers=2, decoder_layers=2,
                     dropout=0.0, max_length=16, pad_id=PAD)  # fmt: skip
model = Transformer(config)
for module in model.modules():
    if isinstance(module, Residual):
        module.register_module("norm", nn.RMSNorm(config.d_model))  # a custom norm
for side in ("source", "target"):
    model.register_module(f"{side}_position", RotatedPositions(config.d_model))  # a custom position embedding
optimizer = torch.optim.NAdam(model.parameters(), betas=(0.9, 0.98))  # `updates` sets its learning rate

rng = random.Random(1)
words = ["".join(rng.choices(LETTERS, k=4)) for _ in range(4096)]
rows = [(torch.tensor(encode(word)), torch.tensor(encode(word[::-1]))) for word in words]
batches = [Batch(*(torch.stack(side) for side in zip(*rows[i : i + 64], strict=True))) for i in range(0, 4096, 64)]
train = TrainConfig(steps=160, warmup=30, schedule="cosine", learning_rate=0.003, label_smoothing=0.0)
for update in updates(model, optimizer, cycle(batches), train):
    assert update.is_finite

model.eval()
for word in ("abcd", "hgfa"):
    target = [START]
    while target[-1] != END and len(target) < 10:
        target.append(int(model(torch.tensor([encode(word)]), torch.tensor([target]))[0, -1].argmax()))
    print(f"{word}  →  {''.join(LETTERS[i - 3] for i in target[1:-1])}")
