"""The settings of `[train]`: a training run (§5)."""

from dataclasses import dataclass
from math import ceil
from typing import Literal

from ..errors import ConfigError
from .settings import COUNT, COUNT_OR_NONE, SEED, SHARE, Checked, Range, setting

MOST_MODELS = 64  # in an ensemble


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainConfig(Checked):
    """How long, how fast and how carefully to train (§5). Lengths are in tokens, rates per update."""

    steps: int = setting(100_000, "updates of the weights", COUNT, paper="100,000; big: 300,000")
    minutes: float = setting(
        0.0,
        "time budget of the whole run, including preparation; the schedule of steps updates is compressed to as many "
        "updates as fit; 0: off",
        Range(at_least=0, at_most=525_600),
    )
    ensemble: int = setting(
        1,
        "models to train, each with another seed; they share the time budget, and translate together",
        Range(at_least=1, at_most=MOST_MODELS),
    )
    parallel_models: int = setting(
        1,
        "models of an ensemble that train at the same time, each in its own process with its share of the cores",
        Range(at_least=1, at_most=MOST_MODELS),
    )
    optimizer: Literal["adam", "adamw", "muon"] = setting(
        "adam",
        "optimizer; muon: Muon for the matrices inside the layers, Adam for all other weights",
        paper="adam, β₂ 0.98",
    )
    weight_decay: float = setting(
        0.0,
        'decoupled weight decay, times the learning rate, for "adamw" and for the matrices of "muon"',
        Range(at_least=0, at_most=1_000),
    )
    precision: Literal["float32", "bfloat16", "auto"] = setting(
        "float32", "number type of matrix products; auto: the faster type on this machine"
    )
    batch_tokens: int = setting(
        25_000,
        "maximum number of tokens in a batch, on each side, including padding",
        COUNT,
        paper="about 25,000 of each",
    )
    schedule: Literal["paper", "inverse-sqrt", "cosine", "constant"] = setting(
        "paper",
        "how the learning rate falls after the warmup; paper: with the inverse square root of the step",
        paper="paper",
    )
    warmup: int = setting(
        4_000, "updates over which the learning rate rises linearly to its peak", COUNT, paper="4,000"
    )
    learning_rate: float = setting(
        0.0,
        'peak learning rate, at the end of the warmup; 0, only with schedule "paper": the paper\'s peak, '
        "(d_model · warmup)^-0.5",
        Range(at_least=0, at_most=1_000),
        paper="0.0007 for base",
    )
    cooldown: int = setting(
        0,
        "number of updates at the end over which the learning rate falls linearly to zero; 0: none",
        COUNT_OR_NONE,
        paper="0",
    )
    label_smoothing: float = setting(
        0.1, "label smoothing: the probability that is spread over all tokens", SHARE, paper="0.1"
    )
    r_drop: float = setting(
        0.0,
        "R-Drop: weight of the symmetric KL divergence between two passes with different dropout; 0: one pass",
        Range(at_least=0, at_most=1_000),
    )
    clip_norm: float = setting(
        0.0,
        "maximum norm of the gradient; a larger gradient is scaled down; 0: no limit",
        Range(at_least=0, at_most=1_000_000),
    )
    accumulate_steps: int = setting(1, "batches whose gradients are accumulated for one update", COUNT)
    validate_every: int = setting(
        1_000, "updates between two validations; each writes a checkpoint", COUNT, paper="a checkpoint every 10 minutes"
    )
    average_checkpoints: int = setting(
        5, "number of checkpoints at the end of training to average", COUNT, paper="5; big: 20"
    )
    ema_decay: float = setting(
        0.0, "decay of an exponential moving average of the weights, which becomes the model; 0: off", SHARE
    )
    patience: int = setting(
        0,
        "early stopping: end the run after this many validations in a row in which early_stopping_metric improves by "
        "less than 0.1 %, and keep the best weights; 0: off",
        COUNT_OR_NONE,
    )
    early_stopping_metric: str = setting(
        "loss",
        "validation metric for early stopping: loss, accuracy (of tokens), bleu, chrf, exact; or a metric or a "
        "score of the `evaluate` function passed to `fit`; or module:function, a function in the current "
        "folder or in an installed package that takes translations and references and returns a number, higher for the "
        "better",
    )
    validate_samples: int = setting(
        500, "validation pairs to translate at each validation, for BLEU and chrF; 0: none", COUNT_OR_NONE
    )
    init_from: str = setting(
        "", "folder of a bundle whose weights and vocabulary the run starts with; empty: random weights"
    )
    tensorboard: bool = setting(True, "also write TensorBoard files, if TensorBoard is installed")
    seed: int = setting(1, "seed of the initial weights, the order of the pairs, and dropout", SEED)
    threads: int = setting(
        0, "CPU threads, which the workers divide among them; 0: one for each worker", Range(at_least=0, at_most=1_024)
    )
    workers: int | Literal["auto"] = setting(
        "auto",
        "processes that share every batch; auto: on a CPU, as many as are measured to be fastest",
        Range(at_least=1, at_most=1_024),
        paper="8 GPUs",
    )
    device: str = setting("auto", "device that trains: auto, cpu, cuda or mps", paper="8 P100 GPUs")

    @property
    def rounds(self) -> int:
        """The number of models that a process trains one after another."""
        return ceil(self.ensemble / self.parallel_models)

    @property
    def minutes_each(self) -> float:
        """The time budget of each model of an ensemble, or of the only model."""
        return self.minutes / self.rounds

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        if self.parallel_models > self.ensemble:
            raise ConfigError(
                f"parallel_models must be at most ensemble; got {self.describe_values('parallel_models', 'ensemble')}"
            )
        if not self.learning_rate and self.schedule != "paper":
            raise ConfigError(
                'learning_rate must be more than 0, except with schedule = "paper"; '
                f"got {self.describe_values('learning_rate', 'schedule')}"
            )
        if self.cooldown and self.schedule == "cosine":
            raise ConfigError(f'schedule = "cosine" falls to zero by itself; got cooldown={self.cooldown}')
        if self.weight_decay and self.optimizer == "adam":
            raise ConfigError(
                'weight_decay goes with optimizer = "adamw" or "muon"; '
                f"got {self.describe_values('weight_decay', 'optimizer')}"
            )
        if self.ema_decay and self.average_checkpoints > 1:
            raise ConfigError(
                "ema_decay and average_checkpoints both average the weights; with ema_decay set average_checkpoints=1; "
                f"got {self.describe_values('ema_decay', 'average_checkpoints')}"
            )
