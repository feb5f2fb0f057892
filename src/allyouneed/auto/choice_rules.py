"""The rules: what to choose for a corpus, as tables and the functions that read them.

Small models are better on small corpora: on 30,000 pairs (Multi30K, tokenized) three layers of 256 reach 39.8 BLEU
here, the paper's base model 38.3 (Wu et al., 2021, table 2). Small batches are better for short training, and a
learning rate that ends at zero makes averaging checkpoints unnecessary.

A model of text is regularized. Where one target is right (`task_rules.py`), label smoothing only costs time, and so
does dropout in short trainings. On 12,000 questions to SQL, in the same time, the model for text was right on 19 % of
the test pairs and the same one without dropout and smoothing on 96 %; a narrower one is right sooner:
docs/measured/automatic-settings.md.
"""

from dataclasses import dataclass
from typing import NamedTuple

from .statistics import PairStatistics
from .task_rules import describe_minutes, task_kind


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

# The largest model of text on a CPU, by the time budget: a wide one makes so few updates in two minutes that it learns
# little. Minutes here are those of one core of an Intel Xeon with AMX (`machine_speed.py`). 2, 7, 10, 22 and 30 of them
# were measured; the bounds are between, as factors.
TEXT_SIZES = {
    8.5: {"d_model": 128, "d_ff": 512, "heads": 4, "layers": 2},
    25.0: {"d_model": 192, "d_ff": 768, "heads": 4, "layers": 3},
}

# Tokens that such a core trains on in a minute, roughly, by d_model. They tell how often a budget repeats the pairs.
TOKENS_PER_MINUTE = {64: 900_000, 128: 700_000, 192: 400_000, 256: 250_000}
DROPOUT_STEPS = 20  # dropout is rounded down to twentieths
FEW_EPOCHS = 10  # below, trials may choose dropout
SOME_EPOCHS = 20  # below, the model of text with the lowest loss is kept

# The width of a model of strings or templates by the time budget: narrow ones are right sooner. 2, 10 and 30 minutes
# were measured. The first row is that of few pairs too. Without a budget the second row holds.
EXACT_SIZES = {
    4.5: {"d_model": 64, "d_ff": 256, "heads": 4, "layers": 2},
    17.0: {"d_model": 128, "d_ff": 512, "heads": 4, "layers": 2},
    float("inf"): {"d_model": 256, "d_ff": 1024, "heads": 4, "layers": 3},
}
SMALL_CORPUS = 3_000

# Strings have dropout if there are at most MANY_STRINGS pairs, and a time budget, if there is one, is longer than
# SHORT_BUDGET minutes and has MANY_EPOCHS: such a model learns its pairs by heart. 10 minutes repeat sounds 14 to 17
# times, which gain by dropout, and the sentences of accents 8 to 11 times, which lose:
# docs/measured/automatic-settings.md.
STRING_DROPOUT, SHORT_BUDGET, MANY_EPOCHS, MANY_STRINGS = 0.1, 4.5, 12, 200_000
EXACT_EPOCHS = 30
# Few strings are repeated hundreds of times in any budget, and learned by heart without more of it.
FEW_STRINGS_DROPOUT, FEW_STRINGS_SMOOTHING = 0.2, 0.1

EXACT_LENGTH_RATIO = 5.0  # most tokens of an output for each of its source

# Tokens per batch. Smaller batches leave a GPU idle; on a CPU two small updates are better than one of twice the size.
BATCH_TOKENS = {"CPU": 1_024, "GPU": 8_192}

# The peak learning rate of a run with Muon, by d_model.
PEAK_LEARNING_RATES = {64: 0.01, 128: 0.005, 256: 0.003, 512: 0.0015}

WARMUP_SHARE, MAX_WARMUP = 0.05, 2_000
MIN_STEPS, VALIDATIONS, PATIENCE = 800, 20, 10
UPDATES_PER_MINUTE = 6_000  # of a time budget; more than a machine makes, since the schedule is compressed to it

# Parts younger than the paper, for a new model with a time budget: docs/since-2017.md and docs/automatic-settings.md.
# Strings have both kinds of positions; templates not, whose outputs may be longer than in training.
YOUNGER_PARTS = {"positions": "rotary", "query_key_norm": True}
STRING_POSITIONS = {"positions": "sinusoidal-rotary"}

# Chosen for every corpus, if not set.
ALWAYS = {"optimizer": "muon", "average_checkpoints": 1}

# The share to hold out for validation, and again for the test, of at least so many pairs; 40 pairs give 10 and 10.
HELD_OUT_SHARES = {5_000: 0.02, 1_000: 0.05, 160: 0.1, 0: 0.25}

# A trained model is fine-tuned with a lower learning rate, and for a shorter time.
FINE_TUNING = {"epochs": 3.0, "learning_rate_factor": 0.2, "min_steps": 100}


@dataclass(frozen=True, slots=True)
class Corpus:
    """What the rules depend on. `tokens` counts the longer side; `exact`: one target is right, not several.

    `minutes` is the time budget; 0: none. `cores` is the speed of the machine (`machine_speed.py`).
    """

    pairs: int
    tokens: int
    longest: int
    has_valid: bool
    exact: bool
    gpu: bool
    minutes: float = 0.0
    cores: float = 1.0

    @property
    def core_minutes(self) -> float:
        """The time budget in minutes of the core for which the rules were measured; 0: none."""
        return self.minutes * self.cores


def held_out_share(pairs: int) -> float:
    """The share of the pairs to hold out for validation, and again for the test."""
    return next(share for fewest, share in HELD_OUT_SHARES.items() if pairs >= fewest)


def choose_exact_size(corpus: Corpus) -> tuple[Size, str]:
    """The size of a model of strings or templates, and why."""
    if corpus.pairs <= SMALL_CORPUS:
        minutes, why = min(EXACT_SIZES), f"one target is right; {corpus.pairs:,} pairs"
    elif corpus.minutes:
        minutes = next(most for most in EXACT_SIZES if corpus.core_minutes <= most)
        why = f"one target is right; this size suits {describe_minutes(minutes)}"
    else:
        minutes, why = sorted(EXACT_SIZES)[1], "one target is right"
    row = EXACT_SIZES[minutes]
    return Size(corpus.pairs, **row, dropout=0.0, epochs=EXACT_EPOCHS), why


def choose_exact_regularization(corpus: Corpus, statistics: PairStatistics, d_model: int) -> tuple[float, float, str]:
    """The dropout rate and the label smoothing of a model of strings or templates, and why."""
    kind, why = task_kind(statistics)
    if kind == "strings" and corpus.pairs <= SMALL_CORPUS:
        return FEW_STRINGS_DROPOUT, FEW_STRINGS_SMOOTHING, f"{why}; {corpus.pairs:,} pairs are repeated very often"
    is_short = 0 < corpus.core_minutes <= SHORT_BUDGET or expected_epochs(corpus, d_model) < MANY_EPOCHS
    if kind == "strings" and not is_short and corpus.pairs <= MANY_STRINGS:
        return STRING_DROPOUT, 0.0, f"{why}; so long a training repeats the pairs often"
    return 0.0, 0.0, why


def choose_size(corpus: Corpus) -> tuple[Size, str]:
    """The row of `MODEL_SIZES` for a corpus, and why."""
    size = next(size for size in MODEL_SIZES if corpus.pairs <= size.pairs)
    minutes = next((most for most in TEXT_SIZES if corpus.core_minutes <= most), 0.0)
    if corpus.minutes and minutes and not corpus.gpu and TEXT_SIZES[minutes]["d_model"] < size.d_model:
        return size._replace(**TEXT_SIZES[minutes]), f"this size suits {describe_minutes(minutes)} without a GPU"
    if not corpus.gpu and size.d_model > LARGEST_WITHOUT_GPU.d_model:
        return LARGEST_WITHOUT_GPU._replace(dropout=size.dropout, epochs=size.epochs), (
            f"{corpus.pairs:,} pairs are enough for d_model={size.d_model}, but there is no GPU here"
        )
    return size, f"{corpus.pairs:,} pairs; this size suits up to {size.pairs:,.0f}"


def expected_epochs(corpus: Corpus, d_model: int) -> float:
    """How often a time budget repeats the pairs, roughly; infinity without a budget or on a GPU."""
    if corpus.gpu or not corpus.minutes:
        return float("inf")
    width = min((width for width in TOKENS_PER_MINUTE if d_model <= width), default=max(TOKENS_PER_MINUTE))
    return corpus.core_minutes * TOKENS_PER_MINUTE[width] / max(1, corpus.tokens)


def choose_dropout(corpus: Corpus, size: Size, d_model: int) -> tuple[float, str]:
    """The dropout rate of a model of text, and why: that of its size, and less if the budget repeats the pairs less."""
    epochs = expected_epochs(corpus, d_model)
    if epochs >= size.epochs:
        return size.dropout, "the fewer the pairs, the more a model overfits"
    dropout = int(DROPOUT_STEPS * size.dropout * epochs / size.epochs) / DROPOUT_STEPS
    return dropout, f"time for about {epochs:.2g} epochs: the fewer there are, the less a model overfits"


def choose_metric(corpus: Corpus, d_model: int) -> tuple[str, str]:
    """The metric by which the best model of text is kept, and why."""
    epochs = expected_epochs(corpus, d_model)
    if epochs < SOME_EPOCHS:
        return (
            "loss",
            f"about {epochs:.2g} epochs are too few to overfit, and chrF of the few pairs translated is noisy",
        )
    return "chrf", "the best model by this metric on the validation pairs is kept"


def peak_learning_rate(d_model: int, optimizer: str) -> float:
    """The peak learning rate: that of the next d_model in the table, lower for wider models; half of it for Adam."""
    widths = [width for width in PEAK_LEARNING_RATES if d_model <= width]
    peak = PEAK_LEARNING_RATES[widths[0]] if widths else PEAK_LEARNING_RATES[512] * 512 / d_model
    return peak if optimizer == "muon" else peak / 2


def round_to_two_digits(number: float) -> int:
    """A whole number rounded to two significant digits."""
    digits = max(0, len(str(int(number))) - 2)
    return int(round(number, -digits))
