"""The tasks learned in about a minute, with a few seeds each: python docs/make/tasks.py [NAME]…

Writes docs/make/tasks.json: how many of 2,000 unseen pairs are right, and the processor time of training;
and docs/pictures/task-NAME.svg: where the model of the first seed looks. About a minute of processor time
a run; those in the record are skipped.
"""

import json
import platform
import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from typing import Any

import torch

from allyouneed import Bundle, Recipe, Translator, fit, recipe_path
from allyouneed.apps.explain import save, trace_translation
from allyouneed.apps.explain.draw import attention_figure
from allyouneed.apps.explain.trace import attentions
from allyouneed.data.readers import read_pairs
from allyouneed.metrics import exact_match

HERE = Path(__file__).parent
RESULT = HERE / "tasks.json"
PICTURES = HERE.parent / "pictures"
EXAMPLES = {
    "dates": "1845-01-05",
    "reverse": "backwrd",
    "sort": "backwrd",
    "locales": "de 1845-01-05",
    "numbers": "847213",
    "agreement": "the old woman who lives near the sea is tired",
}
UNSEEN = 2_000
SEEDS = {"dates": 2, "reverse": 3, "sort": 2, "locales": 2, "numbers": 3, "agreement": 2}  # how many, from 1


def measure(task: str, seed: int) -> tuple[Bundle, dict[str, float]]:
    """Train a task as its recipe says; how many unseen pairs are right, in %, and the seconds it took."""
    recipe = Recipe.read(recipe_path(task), [f"train.seed={seed}", "train.tensorboard=false"])
    with tempfile.TemporaryDirectory() as folder:
        begin = time.process_time()
        bundle = fit(recipe, Path(folder) / "run")
        seconds = time.process_time() - begin
    unseen = read_pairs(recipe.data.test, limit=UNSEEN)
    assert len(unseen) == UNSEEN
    translations = Translator(bundle).translate([pair.source for pair in unseen])
    exact = exact_match(translations, [pair.target for pair in unseen]).value
    return bundle, {"seed": seed, "exact": exact, "seconds": round(seconds, 1)}


def draw(task: str, bundle: Bundle) -> None:
    """Draw cross-attention of the last layer, while the example of the task is written."""
    trace = trace_translation(Translator(bundle), EXAMPLES[task])
    weights = attentions(trace)[f"decoder.layers.{bundle.model.config.decoder_layers - 1}.cross_attention"]
    save(
        attention_figure(weights, source=trace.source_pieces, target=trace.decoder_targets),
        PICTURES / f"task-{task}.svg",
    )


def processor() -> str:
    """Return the machine's name of its processor."""
    about = Path("/proc/cpuinfo")
    lines = about.read_text().splitlines() if about.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


if __name__ == "__main__":
    measured: dict[str, Any] = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    for task in sys.argv[1:] or EXAMPLES:
        for seed in range(1, SEEDS[task] + 1):
            where = f"{processor()}, torch {torch.__version__.partition('+')[0]}"
            about = measured.setdefault(task, {"date": f"{date.today()}", "machine": where, "runs": []})
            if len(about["runs"]) >= seed:
                continue
            bundle, run = measure(task, seed)
            if seed == 1:
                draw(task, bundle)
            about["runs"].append(run)
            print(task, run, flush=True)
            RESULT.write_text(json.dumps(measured, indent=1) + "\n")
