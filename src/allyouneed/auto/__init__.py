"""Choose the settings that a recipe leaves out, from its corpus."""

from .choice_rules import Corpus
from .choosing import choose_from_pairs, choose_pairs
from .completing import complete
from .draft import Choice, Draft, preliminary_recipe, with_data

__all__ = [
    "Choice",
    "Corpus",
    "Draft",
    "choose_from_pairs",
    "choose_pairs",
    "complete",
    "preliminary_recipe",
    "with_data",
]
