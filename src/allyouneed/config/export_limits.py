"""The formats that a bundle can be exported to (docs/export.md), and what each format cannot express."""

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Protocol

from . import DecodeConfig, ModelConfig

# Search settings with the values that change nothing, and which of the settings an export keeps. Callers of CTranslate2
# and ONNX set everything themselves.
_RULES = (
    "min_length", "min_ratio", "forced_eos", "no_repeat_ngram_size", "repetition_penalty", "early_stopping",
    "sample", "nbest", "copy_spans", "replace_unknown",
)  # fmt: skip
_KEPT = {
    "huggingface": ("min_length", "forced_eos", "no_repeat_ngram_size", "early_stopping"),
    "html": ("min_length", "min_ratio", "forced_eos", "no_repeat_ngram_size", "early_stopping", "copy_spans"),
}


class AnyTokenizer(Protocol):
    """The part of a `Tokenizer` that the limits depend on."""

    symbols: tuple[str, ...] | None
    is_of_characters: bool

    def __len__(self) -> int: ...

    def to_json(self) -> str: ...

    def foreign_part(self) -> str: ...


def exportable(config: ModelConfig, tokenizers: Sequence[AnyTokenizer] = ()) -> dict[str, str]:
    """Explain in a sentence, for every format, why a model cannot be exported to it; "" if it can.

    `tokenizers` are the tokenizers of source and target. Without them, the limits of vocabularies are ignored.
    """
    return {
        "ctranslate2": _ctranslate2_limit(config) or _width_limit(config, "CTranslate2"),
        "onnx": "",
        "huggingface": _marian_limit(config)
        or _width_limit(config, "MarianMTModel")
        or (_table_limit(*tokenizers) if tokenizers else ""),
        "html": next((_page_limit(part) for one in tokenizers if (part := one.foreign_part())), ""),
    }


def describe_exports(config: ModelConfig, tokenizers: Sequence[AnyTokenizer] = ()) -> str:
    """List the possible formats in one line, then each reason why others are impossible, with these formats."""
    formats = defaultdict[str, list[str]](list)
    for name, reason in exportable(config, tokenizers).items():
        formats[reason].append(name)
    possible = ", ".join(formats.pop("", ["none"]))
    return "; ".join([possible, *(f"not {', '.join(names)}: {reason}" for reason, names in formats.items())])


def unexpressed_settings(decode: DecodeConfig, to: str, tokenizer: AnyTokenizer) -> tuple[str, ...]:
    """List, as `name=value`, the search settings that an export drops although they change translations.

    An exported page can replace unknown characters if the target `tokenizer` has a vocabulary of characters, but it
    cannot replace unknown words.
    """
    default = DecodeConfig()
    replaced = ("replace_unknown",) if to == "html" and tokenizer.is_of_characters else ()
    names = [name for name in _RULES if name not in (*_KEPT.get(to, ()), *replaced)]
    return tuple(decode.describe_values(name) for name in names if getattr(decode, name) != getattr(default, name))


def usual_settings(settings: Sequence[str]) -> str:
    """Return the command-line arguments that set these settings, given as `name=value`, to their defaults."""
    names = [one.partition("=")[0] for one in settings]
    return " ".join(f"decode.{name}={json.dumps(getattr(DecodeConfig(), name))}" for name in names)


def _ctranslate2_limit(config: ModelConfig) -> str:
    if config.positions not in ("sinusoidal", "learned", "rotary"):
        known = "only sinusoidal, learned or rotary positions"
        return f'CTranslate2 has {known}; this model has model.positions="{config.positions}"'
    return ""


def _marian_limit(config: ModelConfig) -> str:
    if config.norm == "pre":
        return 'MarianMTModel has only post-norm; this model has model.norm="pre"'
    if config.positions != "sinusoidal":
        return f'MarianMTModel has only sinusoidal positions; this model has model.positions="{config.positions}"'
    if config.query_key_norm:
        return "MarianMTModel has no query-key norm; this model has model.query_key_norm=true"
    if config.target_vocab_size is not None and config.tied_embeddings != "all":
        return "MarianMTModel has one table of ids for both sides; this model has a vocabulary for each side"
    return ""


def _table_limit(source: AnyTokenizer, target: AnyTokenizer) -> str:
    """Say which part of the vocabularies the tokenizers of transformers cannot express."""
    if any(one.symbols is not None and json.loads(one.to_json())["model"]["type"] == "BPE" for one in (source, target)):
        return "a SentencePiece model of type BPE is not written back as a file of SentencePiece"
    if surplus := max(0, len(json.loads(source.to_json())["model"]["vocab"]) - len(source)):
        return (
            f"{surplus} symbols of the vocabulary's merges stand for <unk>, which a tokenizer of transformers cannot "
            "express"
        )
    if source is not target and (source.symbols is None or source.symbols != target.symbols):
        return "MarianMTModel has one table of ids for both sides; this model has a vocabulary for each"
    return ""


def _page_limit(part: str) -> str:
    return f"the page cannot encode text with this vocabulary: {part}"


def _width_limit(config: ModelConfig, program: str) -> str:
    """Say which widths CTranslate2 and `MarianMTModel` cannot express."""
    width = config.d_model // config.heads
    if config.d_model % config.heads or (config.d_k or width, config.d_v or width) != (width, width):
        return (
            f"{program} has only heads of width d_model / heads; this model has d_model={config.d_model}, "
            f"heads={config.heads}, d_k={config.d_k}, d_v={config.d_v}"
        )
    return ""
