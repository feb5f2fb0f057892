"""The names of version 0.1 and their names today: the only file that knows the old ones.

Recipes and bundles of version 0.1 are upgraded when they are read, so no other module handles an old name.
An old name in an override on the command line is refused, and the new name suggested. Runs of version 0.1 are not
resumed.
"""

from collections.abc import Mapping
from typing import Any

from .errors import ConfigError

KEYS: dict[str, dict[str, str]] = {
    "data": {
        "folder": "data_dir",
        "store": "cache_dir",
        "limit": "max_train_samples",
        "valid_limit": "max_valid_samples",
        "malformed": "max_malformed",
        "sampling": "subword_sampling",
        "codes": "bpe_codes",
        "joint": "joint_vocabulary",
    },
    "clean": {
        "longest": "max_chars",
        "ratio": "max_length_ratio",
        "copies": "drop_copies",
        "most": "max_dropped",
        "control": "strip_control",
        "duplicates": "deduplicate",
    },
    "model": {"share": "tied_embeddings"},
    "train": {
        "rate": "learning_rate",
        "pause": "validate_every",
        "judged": "validate_samples",
        "stop_on": "early_stopping_metric",
        "start": "init_from",
        "accumulate": "accumulate_steps",
        "average": "average_checkpoints",
        "ema": "ema_decay",
    },
    "decode": {
        "no_repeat": "no_repeat_ngram_size",
        "penalty": "length_penalty",
        "groups": "beam_groups",
        "diversity": "diversity_penalty",
        "keep": "copy_spans",
        "batch": "batch_size",
        "guard": "retry_repetition",  # and copy_untranslatable: the old key switched both
    },
}

WEIGHTS = {
    "around_attention": "attention_residual",
    "around_self_attention": "self_attention_residual",
    "around_cross_attention": "cross_attention_residual",
    "around_feed_forward": "feed_forward_residual",
}


def upgrade_recipe(tables: Mapping[str, Any]) -> dict[str, Any]:
    """The tables of a recipe with the keys of version 0.1 renamed; others stay. Refuses a key given under both names.

    The learning rate of schedule "paper", once a factor, becomes the peak.
    """
    upgraded = {name: upgrade_table(name, table) for name, table in tables.items()}
    train = tables.get("train")
    if isinstance(train, Mapping) and "rate" in train and train.get("schedule", "paper") == "paper":
        d_model = _number(tables.get("model"), "d_model", 512)
        upgraded["train"]["learning_rate"] = peak_from_factor(
            train["rate"], d_model=d_model, warmup=_number(train, "warmup", 4_000)
        )
    return upgraded


def is_legacy(tables: Mapping[str, Any]) -> bool:
    """Whether a recipe has keys of version 0.1."""
    return upgrade_recipe(tables) != tables


def upgrade_table(section: str, table: object) -> Any:
    """One table of a recipe or of a bundle's config.json with its keys renamed."""
    if not isinstance(table, Mapping):
        return table
    renamed = KEYS.get(section, {})
    for old, new in renamed.items():
        if old in table and new in table:
            raise ConfigError(f"{section}.{old} is the name that {section}.{new} had in version 0.1; set only one")
    upgraded = {renamed.get(key, key): value for key, value in table.items()}
    if section == "decode" and "guard" in table:
        upgraded.setdefault("copy_untranslatable", table["guard"])
    return upgraded


def upgrade_weight_name(name: str) -> str:
    """The name that a weight of version 0.1 has now."""
    return ".".join(WEIGHTS.get(part, part) for part in name.split("."))


def peak_from_factor(factor: object, *, d_model: int, warmup: int) -> object:
    """`factor` times the peak of the paper's schedule, (d_model · warmup)^−0.5; returned unchanged if not a number."""
    if isinstance(factor, bool) or not isinstance(factor, int | float):
        return factor
    return float(f"{factor * d_model**-0.5 * warmup**-0.5:.12g}")


def _number(table: object, key: str, default: int) -> int:
    value = table.get(key, default) if isinstance(table, Mapping) else default
    return value if type(value) is int and value > 0 else default
