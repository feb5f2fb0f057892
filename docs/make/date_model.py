"""Train the model of `allyouneed try` and of the walk, into the package: python docs/make/date_model.py"""

import tempfile
from pathlib import Path

from allyouneed import fit, recipe_path
from allyouneed.apps.cli.demo import DATE_MODEL

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        fit(recipe_path("dates"), Path(folder, "dates")).save(DATE_MODEL)
    print(DATE_MODEL)
