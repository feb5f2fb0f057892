"""Train a model on your own pairs from Python: here, words and the same words backwards."""

import random
import sys
from pathlib import Path

from allyouneed import Recipe, Translator, fit

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/backwards")
folder.mkdir(parents=True)

rng = random.Random(1)
words = ["".join(rng.choices("abcdefgh", k=rng.randint(2, 6))) for _ in range(5_000)]
(folder / "words").write_text("".join(f"{word}\n" for word in words))
(folder / "backwards").write_text("".join(f"{word[::-1]}\n" for word in words))

recipe = Recipe.from_tables(
    {
        "data": {"train": ["words", "backwards"], "data_dir": str(folder), "vocabulary": "characters"},
        "model": {"d_model": 32, "d_ff": 128, "heads": 4, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0},
        "train": {
            "steps": 400, "batch_tokens": 600, "warmup": 80, "learning_rate": 0.01, "cooldown": 200,
            "average_checkpoints": 1,
            "label_smoothing": 0.0, "threads": 1,
        },
    }
)  # fmt: skip
translator = Translator(fit(recipe, folder / "model"))
for word in ("abcd", "hgfa", "bee"):
    print(f"{word}  →  {translator(word)}")
