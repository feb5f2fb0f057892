"""The JSON Schema of recipes, written from the settings: python docs/make/schema.py"""

from allyouneed.files import to_json
from allyouneed.recipes import SCHEMA
from allyouneed.reference import recipe_schema

if __name__ == "__main__":
    SCHEMA.write_text(to_json(recipe_schema(), indent=1) + "\n", encoding="utf-8")
