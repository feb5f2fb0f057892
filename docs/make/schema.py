"""The JSON Schema of recipes, written from the settings: python docs/make/schema.py"""

from allyouneed.config.reference import SCHEMA, recipe_schema
from allyouneed.machine.files import to_json

if __name__ == "__main__":
    SCHEMA.write_text(to_json(recipe_schema(), indent=1) + "\n", encoding="utf-8")
