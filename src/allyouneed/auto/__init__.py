"""The settings that a recipe leaves out, chosen from the corpus."""

from .choice_rules import Corpus
from .draft import Choice, Draft

__all__ = ["Choice", "Corpus", "Draft"]
