"""Marian, the program in C++ (`pymarian`), as a system of train.py: a process for every measurement."""

import os
import re
import subprocess
from pathlib import Path

from allyouneed import ModelConfig
from allyouneed.data.pairs import EncodedPairs, Side


class MarianProcess:
    """Updates of a model of the same sizes; every call is a training of its own, whose start is subtracted.

    Refuses to go on after a training that failed, with the text of its log.
    """

    def __init__(self, python: str, config: ModelConfig, pairs: EncodedPairs, folder: Path, *, words: int) -> None:
        self._folder, self._peak = folder, 0
        for side, name in ((pairs.source, "source"), (pairs.target, "target")):
            write_tokens(side, folder / name)
        names = ["</s>", "<unk>", *(f"t{i}" for i in range(config.vocab_size - 2))]
        lines = (f'"{name}": {i}\n' for i, name in enumerate(names))
        (folder / "vocabulary.yml").write_text("".join(lines), encoding="utf-8")
        self._command = [
            python, "-m", "pymarian", "train", "--type", "transformer", "--model", "model.npz", "--overwrite",
            "--train-sets", "source", "target", "--vocabs", "vocabulary.yml", "vocabulary.yml",
            "--dim-vocabs", f"{config.vocab_size}", f"{config.vocab_size}", "--tied-embeddings-all",
            "--dim-emb", f"{config.d_model}", "--transformer-dim-ffn", f"{config.d_ff}",
            "--transformer-heads", f"{config.heads}", "--enc-depth", f"{config.encoder_layers}",
            "--dec-depth", f"{config.decoder_layers}", "--transformer-dropout", "0.1", "--label-smoothing", "0.1",
            "--optimizer", "adam", "--optimizer-params", "0.9", "0.98", "1e-9", "--learn-rate", "0.0001",
            "--clip-norm", "0", "--cost-type", "ce-mean", "--mini-batch", "1000", "--mini-batch-words", f"{words}",
            "--maxi-batch", "200", "--max-length", "200", "--cpu-threads", "1", "--workspace", "1000",
            "--disp-freq", "1u", "--save-freq", "1000000u", "--seed", "1",
        ]  # fmt: skip

    def measure(self, updates: int) -> dict[str, float]:
        """Measure processor seconds and target tokens of some updates."""
        start, _ = self._train(1)
        seconds, words = self._train(1 + updates)
        return {"seconds": seconds - start, "tokens": sum(words[1:]), "updates": updates}

    def close(self) -> float:
        """Return the peak memory of all processes, in MB."""
        return self._peak / 1000

    def _train(self, updates: int) -> tuple[float, list[float]]:
        for old in self._folder.glob("model.npz*"):
            old.unlink()
        command = [*self._command, "--after", f"{updates}u"]
        log = self._folder / "marian.log"
        with log.open("wb") as file:
            process = subprocess.Popen(command, cwd=self._folder, stdout=file, stderr=subprocess.STDOUT)
            _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        text = log.read_text(encoding="utf-8")
        if process.returncode:
            raise RuntimeError(f"pymarian ended with exit code {process.returncode}:\n{text}")
        self._peak = max(self._peak, used.ru_maxrss)
        words = [float(time) * float(speed) for time, speed in re.findall(r"Time ([\d.]+)s : ([\d.]+) words/s", text)]
        return used.ru_utime + used.ru_stime, words


def write_tokens(side: Side, path: Path) -> None:
    """Write the sentences as words, without their first and last id, which Marian adds itself."""
    with path.open("w", encoding="utf-8") as file:
        for i in range(len(side)):
            file.write(" ".join(f"t{token - 3}" for token in side[i][1:-1]) + "\n")
