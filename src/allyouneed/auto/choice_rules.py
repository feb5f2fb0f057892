"""The rules that choose settings for a corpus: tables, and the functions that read them.

Small corpora need small models: on 30,000 pairs (Multi30K, tokenized) three layers of width 256 reach 39.8 BLEU here,
and the paper's base model 38.3 (Wu et al., 2021, table 2). Small batches suit short training. A learning rate that ends
at zero makes it unnecessary to average checkpoints.

A model of text is regularized. If each source has a single correct target (`task_rules.py`), label smoothing only costs
time, and so does dropout in short runs: of 12,000 questions to translate into SQL, with equal training time, a model
with the regularization for text got 19 % of the test pairs right, and a model without dropout and smoothing 96 %. A
narrower model learns faster. See docs/measured/automatic-settings.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import NamedTuple

from .statistics import PairStatistics
from .task_rules import task_kind


class Size(NamedTuple):
    """The model for corpora of up to `pairs` pairs, and its number of epochs."""

    pairs: float
    d_model: int
    d_ff: int
    heads: int
    layers: int  # in the encoder, and in the decoder
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

# The models (d_model: layers) that a time budget without a GPU chooses from: the widest that gets at least
# UPDATES_PER_WIDTH updates per unit of width, at the speed of this machine (`machine_speed.py`). A wide model learns
# little from few updates. If the speed is unknown, exact models have the width EXACT_WIDTH.
BUDGET_SIZES = {64: 2, 128: 2, 192: 3, 256: 3}
UPDATES_PER_WIDTH = 24
# An ensemble has at most MOST_CHOSEN models. More than one for each core only if each of them gets at least
# ENOUGH_PER_WIDTH updates per unit of width. A process takes seconds to start, so shorter runs use only one.
ENOUGH_PER_WIDTH, MOST_CHOSEN = 22, 4
FEWEST_PARALLEL_MINUTES = 1
EXACT_WIDTH, NARROWEST_TEXT = 128, 128

DROPOUT_STEPS = 20  # dropout is rounded down to twentieths
SOME_EPOCHS = 20  # with fewer epochs, the model of text with the lowest loss is kept

# A model memorizes strings that are repeated often: dropout and label smoothing from this many epochs on. Measured on
# pronunciations (12 to 40 epochs), on accents (8 to 11, where dropout hurts) and on inflection (hundreds):
# docs/measured/automatic-settings.md.
STRING_REGULARIZATION = {50: (0.2, 0.1), 12: (0.1, 0.0), 0: (0.0, 0.0)}
EXACT_EPOCHS = 30
FITS = "this size has time for enough updates"

EXACT_LENGTH_RATIO = 5.0  # most tokens in an output per token of its source

# Tokens per batch. Smaller batches leave a GPU idle. On a CPU, two small updates are better than one twice as large.
BATCH_TOKENS = {"CPU": 1_024, "GPU": 8_192}

# The peak learning rate of a run with Muon, by d_model.
PEAK_LEARNING_RATES = {64: 0.01, 128: 0.005, 256: 0.003, 512: 0.0015}

WARMUP_SHARE, MAX_WARMUP = 0.05, 2_000
MIN_STEPS, VALIDATIONS, PATIENCE = 800, 20, 10
# Of a time budget; more than any machine makes, because the schedule is compressed to the actual number.
UPDATES_PER_MINUTE = 6_000

# Parts younger than the paper, for a new model with a time budget: docs/since-2017.md and docs/automatic-settings.md.
# Strings use both kinds of positions. Templates do not, because their outputs may be longer than in training.
YOUNGER_PARTS = {"positions": "rotary", "query_key_norm": True}
STRING_POSITIONS = {"positions": "sinusoidal-rotary"}

# Chosen for every corpus, unless they are set.
ALWAYS = {"optimizer": "muon", "average_checkpoints": 1}

FEW_SENTENCES = 20_000  # pairs of text; a model trained on fewer only learns this kind of text
# The share to hold out for validation, and again for the test, by the least number of usable pairs: about 16
# to 40 of a few hundred, because the model needs the others (docs/measured/strings.md#what-held-out-pairs-cost).
HELD_OUT_SHARES = {5_000: 0.02, 400: 0.05, 160: 0.1, 80: 0.2, 0: 0.25}

# A trained model is fine-tuned for a shorter time and with a lower learning rate.
FINE_TUNING = {"epochs": 3.0, "learning_rate_factor": 0.2, "min_steps": 100}


@dataclass(frozen=True, slots=True)
class Corpus:
    """The facts about a corpus on which the rules depend.

    `tokens` counts the longer side. `exact` means that only one target is correct. `minutes` is the time budget, or 0.
    `speed` is the number of tokens that a model trains on in a minute on this machine, by d_model (`machine_speed.py`);
    empty if it was not measured.
    """

    pairs: int
    tokens: int
    longest: int
    has_valid: bool
    exact: bool
    gpu: bool
    minutes: float = 0.0
    speed: Mapping[int, float] = field(default_factory=dict)


def held_out_share(pairs: int) -> float:
    """Return the share of so many usable pairs to hold out for validation; the test gets the same share."""
    return next(share for fewest, share in HELD_OUT_SHARES.items() if pairs >= fewest)


def has_time_for(d_model: int, tokens: float) -> bool:
    """Return True if there is time to give a model of this width enough updates on so many tokens."""
    return tokens >= UPDATES_PER_WIDTH * d_model * BATCH_TOKENS["CPU"]


def affordable_width(corpus: Corpus, narrowest: int) -> int:
    """Return the widest width in `BUDGET_SIZES` for which there is time, but at least `narrowest`."""
    return max(
        [narrowest, *(width for width, speed in corpus.speed.items() if has_time_for(width, corpus.minutes * speed))]
    )


def choose_parallel_models(cores: int, models: int | None, minutes: float) -> int:
    """Choose how many models of an ensemble train at the same time: one for each core.

    `models` is the size of the ensemble; None if `choose_ensemble` chooses it for the time budget `minutes`.
    """
    if models is None:
        return min(cores, MOST_CHOSEN) if minutes >= FEWEST_PARALLEL_MINUTES else 1
    return ceil(models / ceil(models / cores))


def choose_ensemble(corpus: Corpus, d_model: int, parallel_models: int) -> int:
    """Choose the number of models: for each process as many as get enough updates and epochs, one after another."""
    enough = max(ENOUGH_PER_WIDTH * d_model * BATCH_TOKENS["CPU"], max(STRING_REGULARIZATION) * corpus.tokens)
    rounds = min(MOST_CHOSEN // parallel_models, int(_budget_tokens(corpus, d_model) / enough))
    return parallel_models * max(1, rounds)


def choose_exact_size(corpus: Corpus) -> tuple[Size, str]:
    """Choose the size of a model of strings or templates, and say why: no wider than suits the number of pairs."""
    width, why = EXACT_WIDTH, "one target is right"
    if corpus.speed:
        width, why = affordable_width(corpus, min(BUDGET_SIZES)), f"{why}; {FITS}"
    row = _row(corpus.pairs)
    if row.d_model < width:
        width, why = row.d_model, f"one target is right; this width suits up to {row.pairs:,.0f} pairs"
    return _sized(Size(corpus.pairs, 0, 0, 0, 0, dropout=0.0, epochs=EXACT_EPOCHS), width), why


def choose_exact_regularization(corpus: Corpus, statistics: PairStatistics, d_model: int) -> tuple[float, float, str]:
    """Choose the dropout rate and the label smoothing of a model of strings or templates, and say why."""
    kind, why = task_kind(statistics)
    if kind != "strings":
        return 0.0, 0.0, why
    epochs = expected_epochs(corpus, d_model)
    if epochs == float("inf"):
        epochs = max(EXACT_EPOCHS, MIN_STEPS * BATCH_TOKENS["CPU"] / max(1, corpus.tokens))
    dropout, smoothing = next(rates for fewest, rates in STRING_REGULARIZATION.items() if epochs >= fewest)
    return dropout, smoothing, f"{why}; about {epochs:.2g} epochs"


def choose_size(corpus: Corpus) -> tuple[Size, str]:
    """Choose the row of `MODEL_SIZES` for a corpus, and say why."""
    size = _row(corpus.pairs)
    if corpus.speed and (width := affordable_width(corpus, NARROWEST_TEXT)) < size.d_model:
        return _sized(size, width), f"{FITS} without a GPU"
    if not corpus.gpu and size.d_model > LARGEST_WITHOUT_GPU.d_model:
        return LARGEST_WITHOUT_GPU._replace(dropout=size.dropout, epochs=size.epochs), (
            f"{corpus.pairs:,} pairs are enough for d_model={size.d_model}, but there is no GPU here"
        )
    return size, f"{corpus.pairs:,} pairs; this size suits up to {size.pairs:,.0f}"


def _row(pairs: int) -> Size:
    return next(size for size in MODEL_SIZES if pairs <= size.pairs)


def _sized(size: Size, width: int) -> Size:
    return size._replace(d_model=width, d_ff=4 * width, heads=4, layers=BUDGET_SIZES[width])


def expected_epochs(corpus: Corpus, d_model: int) -> float:
    """Estimate how often a time budget repeats the pairs; infinity if the speed was not measured."""
    return _budget_tokens(corpus, d_model) / max(1, corpus.tokens) if corpus.speed else float("inf")


def _budget_tokens(corpus: Corpus, d_model: int) -> float:
    """Return the number of tokens that a model of this width trains on in the time budget."""
    width = min((width for width in corpus.speed if d_model <= width), default=max(corpus.speed))
    return corpus.minutes * corpus.speed[width]


def choose_dropout(corpus: Corpus, size: Size, d_model: int) -> tuple[float, str]:
    """Choose the dropout rate of a model of text, and say why. The fewer epochs, the lower the rate."""
    epochs = expected_epochs(corpus, d_model)
    if epochs >= size.epochs:
        return size.dropout, "the fewer the pairs, the more a model overfits"
    dropout = int(DROPOUT_STEPS * size.dropout * epochs / size.epochs) / DROPOUT_STEPS
    return dropout, f"time for about {epochs:.2g} epochs: the fewer there are, the less a model overfits"


def choose_metric(corpus: Corpus, d_model: int) -> tuple[str, str]:
    """Choose the metric by which a run on texts selects its best model, and say why."""
    epochs = expected_epochs(corpus, d_model)
    if epochs < SOME_EPOCHS:
        return (
            "loss",
            f"about {epochs:.2g} epochs are too few to overfit, and chrF of the few pairs translated is noisy",
        )
    return "chrf", "the best model by this metric on the validation pairs is kept"


def peak_learning_rate(d_model: int, optimizer: str) -> float:
    """Return the peak learning rate by `PEAK_LEARNING_RATES`: lower for wider models, and half as high for Adam."""
    widths = [width for width in PEAK_LEARNING_RATES if d_model <= width]
    peak = PEAK_LEARNING_RATES[widths[0]] if widths else PEAK_LEARNING_RATES[512] * 512 / d_model
    return peak if optimizer == "muon" else peak / 2


def round_to_two_digits(number: float) -> int:
    """Round a whole number to two significant digits."""
    digits = max(0, len(str(int(number))) - 2)
    return int(round(number, -digits))
