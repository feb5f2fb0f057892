"""Train the models of the walk: python docs/make/models.py

The model of dates goes into the package, for `allyouneed try`; the model of sentences into docs/make/agreement.
"""

import tempfile
from pathlib import Path

from allyouneed import fit, recipe_path
from allyouneed.apps.cli.demo import DATE_MODEL

AGREEMENT_MODEL = Path(__file__).parent / "agreement"
SENTENCE = "the old woman who lives near the sea is tired"
ANSWER = "la vecchia donna che vive vicino al mare è stanca"

if __name__ == "__main__":
    for task, place in {"dates": DATE_MODEL, "agreement": AGREEMENT_MODEL}.items():
        with tempfile.TemporaryDirectory() as folder:
            fit(recipe_path(task), Path(folder, task)).save(place)
        print(place)
