"""The rules: what to choose for a corpus, as tables and the functions that read them.

Small models are better on small corpora: on 30,000 pairs (Multi30K, tokenised) three layers of 256 reach 39.8 BLEU
here, the paper's base model 38.3 (Wu et al., 2021, table 2). Small batches are better for short training, and a
learning rate that ends at zero makes averaging checkpoints unnecessary.

Three kinds of tasks are told apart by the statistics of their pairs. Of *text*, such as translations, several targets
may be right, and a model is regularized. Of *strings* (sounds of words, part numbers) and *templates* (SQL of a few
tables, sums) one is: label smoothing only costs time, and so does dropout in short trainings. On 12,000 questions to
SQL, in the same time, the model for text was right on 19 % of the test pairs and the same one without dropout and
smoothing on 96 %; a narrower one is right sooner: docs/automatic-settings.md.
"""

from dataclasses import dataclass
from math import ceil
from typing import Any, Literal, NamedTuple

from ..config import DataConfig
from ..text.vocabulary import vocab_size
from .statistics import PairStatistics, SideStatistics


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

# The largest model of text on a CPU, by the time budget, and the largest vocabulary: a wide model makes so few updates
# in two minutes that it learns little. Minutes here are those of one core of an Intel Xeon with AMX
# (`machine_speed.py`). 2, 7, 10, 22 and 30 of them were measured; the bounds are between, as factors.
TEXT_SIZES = {
    8.5: {"d_model": 128, "d_ff": 512, "heads": 4, "layers": 2},
    25.0: {"d_model": 192, "d_ff": 768, "heads": 4, "layers": 3},
}
TEXT_VOCABULARIES = {8.5: 4_000}

# Tokens that such a core trains on in a minute, roughly, by d_model. They tell how often a budget repeats the pairs.
TOKENS_PER_MINUTE = {64: 900_000, 128: 700_000, 192: 400_000, 256: 250_000}
DROPOUT_STEPS = 20  # dropout is rounded down to twentieths
FEW_EPOCHS = 10  # below, trials may choose dropout
SOME_EPOCHS = 20  # below, the model of text with the lowest loss is kept

TaskKind = Literal["text", "strings", "templates"]

# Text has at least TEXT_WORDS words on both sides, and in the targets at least TEXT_DISTINCT different words or a share
# of more than TEXT_NOVEL new ones.
TEXT_WORDS, TEXT_DISTINCT, TEXT_NOVEL = 2.5, 500, 0.01
NEAR_COPIES = 0.5  # of the target's words, this share in the source: a pair of equal sides is right, and not dropped
# Texts are changed letter by letter if the ratio of the lengths of their sides varies by less than SAME_LENGTHS, and
# neither side has more than MOST_LETTERS characters on average.
SAME_LENGTHS, MOST_LETTERS = 0.05, 60
CLOSED = 0.01  # a side with at most this share of new units has a closed vocabulary

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
# times, which gain by dropout, and the sentences of accents 8 to 11 times, which lose: docs/automatic-settings.md.
STRING_DROPOUT, SHORT_BUDGET, MANY_EPOCHS, MANY_STRINGS = 0.1, 4.5, 12, 200_000
CHARACTERS = {"vocabulary": "characters", "byte_fallback": True}
EXACT_EPOCHS = 30

# Small vocabularies of byte pairs: the bytes, and twice the words of the side whose vocabulary is closed.
BYTE_TOKENS, MERGES_PER_WORD = 259, 2
MOST_CODES = 500  # different texts of letters and digits, such as AE1, each of which is to be one token
# Strings of several words, which recur: byte pairs are right on more of them than characters in the same minutes. Most
# of this vocabulary would be letters of a script that has more of them.
PHRASE_TOKENS, MOST_ALPHABET, WORD_LETTERS = 1_000, 250, 2

# Tokens per batch. Smaller batches leave a GPU idle; on a CPU two small updates are better than one of twice the size.
BATCH_TOKENS = {"CPU": 1_024, "GPU": 8_192}

# The peak learning rate of a run with Muon, by d_model.
PEAK_LEARNING_RATES = {64: 0.01, 128: 0.005, 256: 0.003, 512: 0.0015}

WARMUP_SHARE, MAX_WARMUP = 0.05, 2_000
MIN_STEPS, VALIDATIONS, PATIENCE = 800, 20, 10
UPDATES_PER_MINUTE = 6_000  # of a time budget; more than a machine makes, since the schedule is compressed to it

# Parts younger than the paper, for a new model with a time budget: docs/since-2017.md and docs/automatic-settings.md.
YOUNGER_PARTS = {"positions": "rotary", "query_key_norm": True}

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


def task_kind(statistics: PairStatistics) -> tuple[TaskKind, str]:
    """What kind of task some pairs are, and by which numbers."""
    source, target = statistics.source, statistics.target
    if _has_many_words(statistics):
        if _is_letter_by_letter(statistics):
            spread = f"{statistics.length_spread:.0%}"
            return "strings", f"the ratio of the lengths varies by {spread}: letters change, not words"
        return "text", f"{target.words:.1f} words a target, {target.distinct:,} different ones"
    if max(source.novel, target.novel) <= CLOSED:
        return "templates", "one target is right, and new texts consist of known words, digits and marks"
    return "strings", f"one target is right; {max(source.novel, target.novel):.0%} of the words of new texts are new"


def _is_letter_by_letter(statistics: PairStatistics) -> bool:
    """Whether both sides go letter by letter, as texts without and with their accents; of short texts alone."""
    mean_length = max(statistics.source.characters, statistics.target.characters)
    return statistics.length_spread < SAME_LENGTHS and mean_length <= MOST_LETTERS


def _has_many_words(statistics: PairStatistics) -> bool:
    source, target = statistics.source, statistics.target
    is_open = target.distinct >= TEXT_DISTINCT or target.novel > TEXT_NOVEL
    return min(source.words, target.words) >= TEXT_WORDS and is_open


def choose_vocabulary(statistics: PairStatistics, minutes: float = 0.0) -> tuple[dict[str, Any], str]:
    """Settings of [data] for the vocabulary, those that differ from the defaults, and why.

    `minutes` is the time budget on a CPU, as `Corpus.core_minutes`; 0: none, or a GPU.
    """
    kind, _ = task_kind(statistics)
    sides = statistics.source, statistics.target
    if kind == "text":
        for most, size in TEXT_VOCABULARIES.items():
            if 0 < minutes <= most and size < vocab_size(DataConfig(), statistics.pairs):
                return {"vocab_size": size}, f"this size suits {describe_minutes(most)} without a GPU"
        return {}, ""
    if kind == "templates" and max(side.words for side in sides) >= 1:
        return {}, ""
    if kind == "strings" and (size := small_vocabulary(statistics)):
        chosen, why = {"vocabulary": "bpe", "vocab_size": size}, "few words on one side; parts of words on the other"
        return (
            ({**chosen, "split": "spaces"}, f"{why}; letters and digits together")
            if _codes(statistics)
            else (chosen, why)
        )
    if kind == "strings" and _are_phrases(statistics):
        return {"vocabulary": "bpe", "vocab_size": PHRASE_TOKENS}, f"{statistics.target.words:.1f} words a target"
    why = "digits and marks, no words" if kind == "templates" else "new texts have new words of known characters"
    return CHARACTERS, why


def _are_phrases(statistics: PairStatistics) -> bool:
    sides, target = (statistics.source, statistics.target), statistics.target
    has_words = target.words >= TEXT_WORDS and target.word_length >= WORD_LETTERS
    return has_words and max(side.alphabet for side in sides) <= MOST_ALPHABET


def small_vocabulary(statistics: PairStatistics) -> int:
    """The size of a vocabulary of byte pairs in which the words of a closed side are one token each; 0: no such side.

    For Latin letters only: those of other scripts are two or three bytes each.
    """
    closed = _closed_sides(statistics)
    others = {statistics.source.script, statistics.target.script} - {"Latin", "no letters"}
    if not closed or others or _has_many_words(statistics):
        return 0
    words = _codes(statistics) or min(side.distinct for side in closed)
    return ceil((BYTE_TOKENS + MERGES_PER_WORD * words) / 100) * 100


def _closed_sides(statistics: PairStatistics) -> list[SideStatistics]:
    return [
        side
        for side in (statistics.source, statistics.target)
        if side.novel <= CLOSED and side.words >= TEXT_WORDS and side.word_length > 1 and side.script == "Latin"
    ]


def _codes(statistics: PairStatistics) -> int:
    """The fewest different codes of a side with a closed vocabulary, such as AE1; 0: none, or many."""
    return min((side.codes for side in _closed_sides(statistics) if 0 < side.codes <= MOST_CODES), default=0)


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


def choose_exact_dropout(corpus: Corpus, statistics: PairStatistics, d_model: int) -> tuple[float, str]:
    """The dropout rate of a model of strings or templates, and why."""
    kind, why = task_kind(statistics)
    is_short = 0 < corpus.core_minutes <= SHORT_BUDGET or expected_epochs(corpus, d_model) < MANY_EPOCHS
    if kind == "strings" and not is_short and corpus.pairs <= MANY_STRINGS:
        return STRING_DROPOUT, f"{why}; so long a training repeats the pairs often"
    return 0.0, why


def describe_minutes(most: float) -> str:
    """A row of a table of time budgets."""
    return f"up to {most:g} minutes of a core" if most < float("inf") else "longer budgets"


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
