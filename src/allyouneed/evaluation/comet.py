"""COMET (Rei et al., 2020), computed by its own program, if that program and a model checkpoint are installed.

COMET's package needs NumPy 1, so it needs an environment of its own. `comet-score` is the command that it installs.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from ..errors import ConfigError
from ..metrics import Metric, SentenceCounts

PROGRAM = "comet-score"


def make_comet(checkpoint: Path, sources: Sequence[str]) -> Metric:
    """Make a metric that scores translations of `sources` with COMET, times 100, by the model in a checkpoint.

    If a source has several references, only the first one is used. `checkpoint` is a file such as
    checkpoints/model.ckpt, whose folder lies next to hparams.yaml, or the folder that has both. Refuses a missing
    program and a missing checkpoint. Nothing is downloaded.
    """
    file = checkpoint / "checkpoints" / "model.ckpt" if checkpoint.is_dir() else checkpoint
    if not shutil.which(PROGRAM):
        raise ConfigError(
            f"--comet needs the program {PROGRAM}, which is not installed; it needs an older NumPy than this "
            "program, so install it separately: pipx install unbabel-comet"
        )
    if file.suffix != ".ckpt" or not file.is_file() or not (file.parents[1] / "hparams.yaml").is_file():
        raise ConfigError(
            f"{checkpoint} is not a checkpoint of COMET: expected a file such as NAME/checkpoints/model.ckpt, and "
            "NAME/hparams.yaml"
        )
    return Metric("COMET", partial(_count, file, sources))


def _count(
    checkpoint: Path, sources: Sequence[str], translations: Sequence[str], references: Sequence[Sequence[str]]
) -> SentenceCounts:
    scores = _run(checkpoint, sources, translations, [some[0] for some in references])
    rows = np.array([scores, [1.0] * len(scores)]).T
    return SentenceCounts(rows, lambda sums: float(100 * sums[0] / sums[1]), f"model:{checkpoint.parents[1].name}")


def _run(
    checkpoint: Path, sources: Sequence[str], translations: Sequence[str], references: Sequence[str]
) -> list[float]:
    import torch

    with TemporaryDirectory() as name:
        folder = Path(name)
        files = []
        for number, texts in enumerate((sources, translations, references)):
            files.append(folder / f"{number}.txt")
            lines = "".join(f"{' '.join(text.split())}\n" for text in texts)  # the program reads one text per line
            files[-1].write_text(lines, encoding="utf-8")
        words = ["-s", files[0], "-t", files[1], "-r", files[2], "--model", checkpoint.resolve(), "--quiet"]
        words += ["--gpus", int(torch.cuda.is_available()), "--to_json", folder / "scores.json"]
        done = subprocess.run(
            [PROGRAM, *map(str, words)],
            env={**os.environ, "HF_HUB_OFFLINE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        try:
            (rows,) = json.loads((folder / "scores.json").read_text(encoding="utf-8")).values()
            scores = [float(row["COMET"]) for row in rows]
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            reason = done.stderr.strip().rpartition("\n")[2] or repr(error)
            raise ConfigError(f"{PROGRAM} failed (exit code {done.returncode}): {reason}") from error
    if len(scores) != len(sources):
        raise ConfigError(f"{PROGRAM} scored {len(scores)} of {len(sources)} translations")
    return scores
