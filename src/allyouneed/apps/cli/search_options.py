"""The options of a search: one for every field of `DecodeConfig`."""

from typing import Any

from ...config import DecodeConfig
from .config_options import with_config_options

SearchSettings = dict[str, Any]  # fields of `DecodeConfig` by name

PANELS = {
    "Length": (
        "alpha", "length_penalty", "patience", "extra_length", "length_ratio", "max_length", "min_length", "min_ratio",
    ),
    "Repetition and variety": (
        "no_repeat_ngram_size", "repetition_penalty", "retry_repetition", "beam_groups", "diversity_penalty",
    ),
    "Sampling": ("sample", "temperature", "top_k", "top_p", "seed"),
    "Constraints": ("copy_spans", "replace_unknown", "copy_untranslatable", "recase"),
}  # fmt: skip

# The command gets the settings that the call names as its parameter `decode`; the bundle has the others.
with_search_options = with_config_options(DecodeConfig, "decode", panels=PANELS)
