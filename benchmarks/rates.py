"""The best peak learning rate of Muon by the width of the model, by the loss after the same number of updates.

    python benchmarks/rates.py --widths 64 128 256 --rates 0.0025 0.005 0.01 --updates 200
    python benchmarks/rates.py --task sql --corpora FOLDER --seeds 1 2

Prints a table of the validation loss, in nats per token, its mean over the seeds. The pairs are sums such as
318+259 → 577, which are made here and cut into characters, or those of a task in `auto_tasks.py`, cut into byte pairs.
"""

import argparse
import random
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

import torch
from auto_tasks import STORED, read_pairs

from allyouneed.config import DataConfig, ModelConfig, TrainConfig
from allyouneed.data.batch import batches
from allyouneed.data.pairs import Pair, encode_pairs
from allyouneed.nn import Transformer
from allyouneed.text.vocabulary import Vocabulary
from allyouneed.text.vocabulary_training import train_vocabulary
from allyouneed.train.loop import updates
from allyouneed.train.validation import validate
from allyouneed.younger.muon import build_optimizer

PAIRS, VALIDATED, MAX_LENGTH = 30_000, 1_000, 128
SUMS, MERGES = DataConfig(vocabulary="characters"), DataConfig(vocab_size=4_000)


def sums(count: int) -> list[Pair]:
    """Draw sums of two numbers of three digits, all different, by a fixed seed."""
    drawn = random.Random(1).sample(range(900 * 900), count)
    return [Pair(f"{100 + n // 900}+{100 + n % 900}", str(200 + n // 900 + n % 900)) for n in drawn]


def learn_vocabulary(pairs: Sequence[Pair], data: DataConfig) -> Vocabulary:
    """Learn the vocabulary of some pairs."""
    return train_vocabulary(
        data, lambda: (pair.source for pair in pairs), lambda: (pair.target for pair in pairs), pairs=len(pairs)
    )


def validation_loss(
    pairs: Sequence[Pair], vocabulary: Vocabulary, *, width: int, rate: float, steps: int, seed: int
) -> float:
    """Return the loss of a model of this width after training with this peak learning rate."""
    train, valid = (
        encode_pairs(some, vocabulary, max_length=MAX_LENGTH) for some in (pairs[VALIDATED:], pairs[:VALIDATED])
    )
    sizes = ModelConfig(
        d_model=width, d_ff=4 * width, heads=4, encoder_layers=2, decoder_layers=2, dropout=0.0, max_length=MAX_LENGTH
    )
    warmup = max(1, steps // 20)
    config = TrainConfig(
        steps=steps, optimizer="muon", schedule="constant", warmup=warmup, cooldown=steps - warmup, learning_rate=rate,
        label_smoothing=0.0, batch_tokens=1_024, precision="auto", seed=seed,
    )  # fmt: skip
    torch.manual_seed(seed)
    model = Transformer(vocabulary.with_vocab_size(sizes))
    feed = batches(train, batch_tokens=config.batch_tokens, seed=seed, pad_id=vocabulary.source.pad_id)
    for _ in updates(model, build_optimizer(model, config), feed, config):
        pass
    return validate(model, valid, batch_tokens=4_096)[0]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--widths", type=int, nargs="+", default=[64, 128, 256])
    parser.add_argument("--rates", type=float, nargs="+", default=[0.0025, 0.005, 0.01])
    parser.add_argument("--updates", type=int, default=200)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--task", choices=["sums", *STORED], default="sums")
    parser.add_argument("--corpora", type=Path, help="folder of the corpora of tasks other than sums")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.task == "sums":
        pairs, data = sums(PAIRS), SUMS
    elif arguments.corpora:
        files = [arguments.corpora / name for name in STORED[arguments.task].train]
        pairs, data = [Pair(*pair) for pair in read_pairs(tuple(files))[:PAIRS]], MERGES
    else:
        parser.error(f"{arguments.task} needs --corpora FOLDER")
    vocabulary = learn_vocabulary(pairs, data)
    print("| d_model |", " | ".join(f"{rate:g}" for rate in arguments.rates), "|")
    print("|---:|", "---:|" * len(arguments.rates), sep="")
    for width in arguments.widths:
        losses = [
            mean(
                validation_loss(pairs, vocabulary, width=width, rate=rate, steps=arguments.updates, seed=seed)
                for seed in arguments.seeds
            )
            for rate in arguments.rates
        ]
        cells = [f"**{loss:.3f}**" if loss == min(losses) else f"{loss:.3f}" for loss in losses]
        print(f"| {width} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
