"""The rules: what to choose for a corpus, as tables and the functions that read them.

Small models are better on small corpora: on 30,000 pairs (Multi30K, tokenised) three layers of 256 reach 39.8 BLEU
here, the paper's base model 38.3 (Wu et al., 2021, table 2). Small batches are better for short training, and a
learning rate that ends at zero makes averaging checkpoints unnecessary.
"""

from dataclasses import dataclass
from typing import NamedTuple


class Size(NamedTuple):
    """The model for corpora of up to `pairs` pairs, and the number of epochs."""

    pairs: float
    d_model: int
    d_ff: int
    heads: int
    layers: int  # of the encoder, and of the decoder
    dropout: float
    epochs: float


MODEL_SIZES = (
    Size(3_000, d_model=64, d_ff=256, heads=4, layers=2, dropout=0.3, epochs=60),
    Size(15_000, d_model=128, d_ff=512, heads=4, layers=3, dropout=0.3, epochs=60),
    Size(60_000, d_model=256, d_ff=1024, heads=4, layers=3, dropout=0.25, epochs=22),
    Size(400_000, d_model=256, d_ff=1024, heads=4, layers=3, dropout=0.15, epochs=10),
    Size(2_000_000, d_model=512, d_ff=2048, heads=8, layers=6, dropout=0.1, epochs=10),
    Size(float("inf"), d_model=512, d_ff=2048, heads=8, layers=6, dropout=0.1, epochs=4),
)
LARGEST_WITHOUT_GPU = MODEL_SIZES[3]

# Strings of characters that have one correct output: neither smoothing nor dropout helps.
EXACT = {"dropout": 0.0, "label_smoothing": 0.0}

# Tokens per batch. Smaller batches leave a GPU idle; on a CPU two small updates are better than one of twice the size.
BATCH_TOKENS = {"CPU": 1_024, "GPU": 8_192}

# The peak learning rate of a run with Muon, by d_model.
PEAK_LEARNING_RATES = {64: 0.01, 128: 0.005, 256: 0.003, 512: 0.0015}

WARMUP_SHARE, MAX_WARMUP = 0.05, 2_000
MIN_STEPS, VALIDATIONS, PATIENCE = 800, 20, 10

# Chosen for every corpus, if not set.
ALWAYS = {"optimizer": "muon", "average_checkpoints": 1}

# A trained model is fine-tuned with a lower learning rate, and for a shorter time.
FINE_TUNING = {"epochs": 3.0, "learning_rate_factor": 0.2, "min_steps": 100}


@dataclass(frozen=True, slots=True)
class Corpus:
    """What the rules depend on. `tokens` counts the longer side; `exact`: the vocabulary is characters."""

    pairs: int
    tokens: int
    longest: int
    has_valid: bool
    exact: bool
    gpu: bool


def choose_size(corpus: Corpus) -> tuple[Size, str]:
    """The row of `MODEL_SIZES` for a corpus, and why."""
    size = next(size for size in MODEL_SIZES if corpus.pairs <= size.pairs)
    if not corpus.gpu and size.d_model > LARGEST_WITHOUT_GPU.d_model:
        return LARGEST_WITHOUT_GPU._replace(dropout=size.dropout, epochs=size.epochs), (
            f"{corpus.pairs:,} pairs are enough for d_model={size.d_model}, but there is no GPU here"
        )
    return size, f"{corpus.pairs:,} pairs; this size suits up to {size.pairs:,.0f}"


def peak_learning_rate(d_model: int, optimizer: str) -> float:
    """The peak learning rate: that of the next d_model in the table, lower for wider models; half of it for Adam."""
    widths = [width for width in PEAK_LEARNING_RATES if d_model <= width]
    peak = PEAK_LEARNING_RATES[widths[0]] if widths else PEAK_LEARNING_RATES[512] * 512 / d_model
    return peak if optimizer == "muon" else peak / 2


def round_to_two_digits(number: float) -> int:
    """A whole number rounded to two significant digits."""
    digits = max(0, len(str(int(number))) - 2)
    return int(round(number, -digits))
