"""How fast this machine trains, in cores of the one on which the rules were measured.

The rules go by the minutes of one core of an Intel Xeon with AMX. A slower machine learns less in the same minutes, and
one with more cores more, so a time budget counts as that many minutes of such a core.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from statistics import median

import torch

from ..config import ModelConfig, TrainConfig
from ..data.batch import Batch
from ..device import using_threads
from ..fast.projected import projected_loss
from ..files import parse_json, to_json, write_whole
from ..nn import Transformer
from ..train.gradients import add_gradients
from ..younger.muon import build_optimizer
from .choice_rules import TOKENS_PER_MINUTE

MODEL = ModelConfig(vocab_size=4_000, d_model=128, d_ff=512, heads=4, encoder_layers=2, decoder_layers=2)
SENTENCES, LENGTH = 32, 33  # a batch of 1,024 tokens to predict
# WARM_UP updates are not timed; then at least FEWEST are timed, for at least SECONDS.
WARM_UP, FEWEST, SECONDS = 1, 3, 0.5
MORE_WORKERS = 0.6  # what each further worker adds, of which two were measured
SPEED = "speed.json"  # in the folder of a run


def recorded_speed(folder: Path, workers: int) -> float:
    """The speed with so many workers that the folder of a run has; measured and written there, if it has none.

    So what is chosen stays the same when a run that has not begun is started again.
    """
    path = folder / SPEED
    with suppress(OSError, ValueError, TypeError, KeyError):
        recorded = parse_json(path.read_bytes())
        if recorded["workers"] == workers and recorded["cores"] > 0:
            return float(recorded["cores"])
    cores = measure_speed(workers)
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(path, to_json({"cores": cores, "workers": workers}) + "\n")
    return cores


def measure_speed(workers: int, now: Callable[[], float] = time.perf_counter) -> float:
    """The speed of this machine with so many workers, in cores of the reference: tokens trained on in a minute.

    Takes about a second, on one thread; the random numbers of the caller stay as they are. `now` is a clock.
    """
    with torch.random.fork_rng(devices=[]), using_threads(1):
        ids = torch.randint(1, MODEL.vocab_size, (2, SENTENCES, LENGTH))
        batch, config = Batch(ids[0], ids[1]), TrainConfig(optimizer="muon", precision="auto", steps=1)
        model = Transformer(MODEL).train()
        optimizer, times = build_optimizer(model, config), list[float]()
        while len(times) < WARM_UP + FEWEST or sum(times[WARM_UP:]) < SECONDS:
            begin = now()
            add_gradients(model, [batch], config, projected_loss)
            optimizer.step()
            optimizer.zero_grad()
            times.append(now() - begin)
    tokens = SENTENCES * (LENGTH - 1) * 60 / median(times[WARM_UP:])
    return round(tokens / TOKENS_PER_MINUTE[MODEL.d_model] * (1 + MORE_WORKERS * (workers - 1)), 2)


def describe_speed(minutes: float, cores: float) -> str:
    """What a time budget amounts to."""
    return (
        f"--minutes {minutes:g} counts as {minutes * cores:,.1f} minutes of one core of an Intel Xeon with AMX, "
        "on which the rules were measured"
    )
