"""Time of one training update, ours against `torch.nn.Transformer` of the same size, timed in alternation.

    python benchmarks/train.py [--rounds 15] [--threads 2]

Both have the same batch, loss, optimizer and embeddings; dropout 0.1. Prints the medians, and the median of the ratios
of all rounds. Below 1 ours is faster.
"""

import argparse
import statistics
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.optim import Adam

from allyouneed import ModelConfig, Transformer
from allyouneed.config import TrainConfig
from allyouneed.data.batch import Batch
from allyouneed.device import retain_freed_memory
from allyouneed.nn import causal_mask
from allyouneed.train import make_optimizer, mean_loss, updates

SIZES = {
    "dates: d 64, 2+2": (
        ModelConfig(vocab_size=68, d_model=64, d_ff=256, heads=4, encoder_layers=2, decoder_layers=2), 40, 12, 20,
    ),
    "captions: d 256, 3+3": (
        ModelConfig(vocab_size=8_000, d_model=256, d_ff=1024, heads=4, encoder_layers=3, decoder_layers=3), 60, 16, 17,
    ),
    "base: d 512, 6+6": (ModelConfig(vocab_size=37_000), 32, 25, 26),
}  # fmt: skip


class TorchModel(nn.Module):
    """`torch.nn.Transformer` between our embeddings and projection."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        frame = Transformer(replace(config, encoder_layers=1, decoder_layers=1))
        self.embedding, self.position, self.projection = (
            frame.source_embedding, frame.source_position, frame.projection,
        )  # fmt: skip
        self.body = nn.Transformer(
            config.d_model, config.heads, config.encoder_layers, config.decoder_layers, config.d_ff,
            config.dropout, batch_first=True,
        )  # fmt: skip

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        padding = source == self.config.pad_id
        vectors = self.body(
            self.position(self.embedding(source)),
            self.position(self.embedding(target)),
            tgt_mask=~causal_mask(target.size(1)),
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )
        logits: Tensor = self.projection(vectors)
        return logits


def updater(model: Transformer | TorchModel, batch: Batch) -> Callable[[], object]:
    """One update: ours by `allyouneed.train`, PyTorch's as in a usual script."""
    if isinstance(model, Transformer):
        config = TrainConfig(steps=1)
        optimizer = make_optimizer(model, config)
        return lambda: deque(updates(model, optimizer, [batch], config), maxlen=0)
    optimizer = Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)

    def update() -> None:
        logits = model(batch.source, batch.target_in)
        loss = mean_loss(logits, batch.target_out, smoothing=0.1, pad_id=model.config.pad_id)
        torch.autograd.backward(loss)
        optimizer.step()
        optimizer.zero_grad()

    return update


def seconds(action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    retain_freed_memory()
    print(f"torch {torch.__version__}, {options.threads} threads, {options.rounds} rounds\n")
    print(f"{'size':<24}{'ours, ms':>10}{'torch.nn, ms':>14}{'ours/torch.nn':>15}")
    for name, (config, sentences, source_length, target_length) in SIZES.items():
        batch = Batch(
            torch.randint(1, config.vocab_size, (sentences, source_length)),
            torch.randint(1, config.vocab_size, (sentences, target_length + 1)),
        )
        ours, torch_nn = updater(Transformer(config), batch), updater(TorchModel(config), batch)
        for update in (ours, torch_nn) * 2:
            update()  # the first updates take longer
        times = [(seconds(ours), seconds(torch_nn)) for _ in range(options.rounds)]
        our_time, torch_time = (1000 * statistics.median(column) for column in zip(*times, strict=True))
        ratio = statistics.median(a / b for a, b in times)
        print(f"{name:<24}{our_time:>10.1f}{torch_time:>14.1f}{ratio:>15.2f}", flush=True)


if __name__ == "__main__":
    main()
