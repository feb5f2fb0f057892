"""The peak learning rate of the Marian model of speedrun.py, by the validation loss after the same number of updates.

    python benchmarks/speedrun_rates.py FOLDER [SECTION.KEY=VALUE …] --updates 500 --peaks 5e-4 1e-3 2e-3

FOLDER, pairs, sizes, batches and AdamW are those of speedrun.py; the rate rises to its peak in a fifth of the updates,
as in the record, and then falls to zero. Prints a line of JSON for every peak:
the loss in nats per token without smoothing, and the processor seconds of an update. Needs a Python that has
transformers.
"""

import argparse
import json
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from marian import batch_loss, fit, make_marian
from speedrun import RECIPE
from transformers import MarianMTModel

from allyouneed import Recipe, recipe_path
from allyouneed.data.batch import batches_by_length
from allyouneed.data.pairs import EncodedPairs
from allyouneed.data.prepare import prepare
from allyouneed.data.prepared import PreparedData
from allyouneed.machine.device import retain_freed_memory


@torch.inference_mode()
def validation_loss(model: MarianMTModel, pairs: EncodedPairs) -> float:
    """Compute the loss in nats per token without smoothing."""
    total, tokens, pad_id = 0.0, 0, model.config.pad_token_id
    model.eval()
    for batch in batches_by_length(pairs, batch_tokens=2_048, pad_id=pad_id):
        count = int((batch.target_out != pad_id).sum())
        total, tokens = total + count * batch_loss(model, batch, smoothing=0.0).item(), tokens + count
    model.train()
    return total / tokens


def try_peak(recipe: Recipe, prepared: PreparedData, peak: float, updates: int) -> dict[str, float]:
    """Return the loss after training with this peak, and the processor seconds of an update."""
    torch.manual_seed(recipe.train.seed)
    sizes = prepared.vocabulary.with_vocab_size(recipe.model)
    model = make_marian(sizes, prepared.vocabulary.source, min_positions=recipe.model.max_length)
    begin = time.process_time()
    fit(
        model,
        recipe.train,
        prepared.train,
        progress=lambda step: (step - 1) / updates,
        peak=peak,
        warmup=max(1, updates // 5),
    )
    seconds = (time.process_time() - begin) / updates
    assert prepared.valid is not None
    return {"peak": peak, "updates": updates, "loss": validation_loss(model, prepared.valid), "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("settings", nargs="*", metavar="SECTION.KEY=VALUE")
    parser.add_argument("--updates", type=int, default=500)
    parser.add_argument("--peaks", nargs="+", type=float, default=[5e-4, 1e-3, 2e-3, 3e-3])
    options = parser.parse_intermixed_args()
    retain_freed_memory()
    recipe = Recipe.read(recipe_path(RECIPE), [f"data.data_dir={options.folder}", *options.settings])
    with TemporaryDirectory() as folder:
        prepared = prepare(recipe.data, recipe.clean, Path(folder), max_length=recipe.model.max_length)
        for peak in options.peaks:
            row = try_peak(recipe, prepared, peak, options.updates)
            print(json.dumps({name: round(value, 4) for name, value in row.items()}), flush=True)


if __name__ == "__main__":
    main()
