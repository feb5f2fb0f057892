"""The Marian model of speedrun.py, in a process of its own whose Python has transformers.

    python benchmarks/speedrun_marian.py REQUEST

REQUEST is a JSON object, which `curve_of_marian` of speedrun.py makes. Prints the curve as the last line.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
from marian import fit, make_marian, translate, until
from transformers import MarianMTModel

from allyouneed import Recipe, recipe_path
from allyouneed.data.prepare import prepare
from allyouneed.machine.device import retain_freed_memory
from allyouneed.metrics import bleu
from allyouneed.text.lines import read_lines


class Models:
    """The weights of a model after equal parts of the time, on the disk, and the minutes at which each was written."""

    def __init__(self, model: MarianMTModel, folder: Path, *, begin: float, minutes: float, points: int) -> None:
        self.model, self.folder, self.begin = model, folder, begin
        self.every, self.next = minutes / points, minutes / points
        self.minutes: list[float] = []

    def minutes_now(self) -> float:
        return (time.monotonic() - self.begin) / 60

    def after_update(self, step: int) -> None:
        """Save the weights if a part of the time is over."""
        if self.minutes_now() >= self.next:
            self.save()
            while self.next <= self.minutes_now():
                self.next += self.every

    def save(self) -> None:
        torch.save(self.model.state_dict(), self.path(len(self.minutes)))
        self.minutes.append(self.minutes_now())

    def path(self, number: int) -> Path:
        return self.folder / f"marian-{number}.pt"


def main(request: dict[str, Any]) -> None:
    torch.manual_seed(request["seed"])
    retain_freed_memory()
    folder, scratch = Path(request["folder"]), Path(request["scratch"])
    overrides = [f"data.data_dir={folder}", f"train.seed={request['seed']}", *request["settings"]]
    recipe = Recipe.read(recipe_path(request["recipe"]), overrides)
    prepared = prepare(recipe.data, recipe.clean, scratch / "data", max_length=recipe.model.max_length)
    tokenizer = prepared.vocabulary.source
    sizes = prepared.vocabulary.with_vocab_size(recipe.model)
    model = make_marian(sizes, tokenizer, min_positions=recipe.model.max_length)
    models = Models(model, scratch, begin=request["begin"], minutes=request["minutes"], points=request["points"])
    updates = fit(
        model,
        recipe.train,
        prepared.train,
        progress=until(request["minutes"] - models.minutes_now(), time.monotonic),
        peak=request["peak"],
        warmup=request["warmup"],
        after_update=models.after_update,
    )
    models.save()
    print(f"{updates:,} updates in {models.minutes[-1]:.2f} minutes", file=sys.stderr)
    sources, references = (read_lines(folder / request["test"].format(side)) for side in ("en", "de"))
    curve = []
    for number, minutes in enumerate(models.minutes):
        model.load_state_dict(torch.load(models.path(number)))
        score = bleu(translate(model, tokenizer, sources, beam=1), references)
        curve.append({"minutes": round(minutes, 2), "bleu": round(score.value, 2)})
    print(json.dumps(curve))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
