"""Give the special tokens of any `tokenizer.json`, the format of the tokenizers library, the names that we use.

All tokens keep their ids. Missing special tokens are added after the last id.
"""

import json
from typing import Any

from tokenizers import pre_tokenizers

from ..errors import DataError
from .backends import BYTE_TOKENS, EOS, PAD, SOS, SPECIALS, UNK
from .tokenizer_format import INSIDE_SPECIAL

# Names of the special tokens in other programs, the most likely first.
NAMES = {
    PAD: (PAD, "[PAD]", "<|pad|>", "<|padding|>"),
    SOS: (SOS, "<s>", "<bos>", "[BOS]", "[CLS]", "<|startoftext|>", "<|begin_of_text|>"),
    EOS: (EOS, "</s>", "[EOS]", "[SEP]", "<|endoftext|>", "<|end_of_text|>"),
    UNK: (UNK, "[UNK]", "<|unk|>"),
}
LARGEST = 2**24  # ids
BELOW_ALL = 10.0  # an unknown character is e^10 times less likely than any piece of a unigram model


def adapt_tokenizer(text: str) -> tuple[str, list[str]]:
    """Rename the special tokens in a tokenizer's JSON, and list each token that was renamed or added.

    Our own JSON stays unchanged. Refuses ids that are not all numbers from 0 on, each used once.
    """
    table = json.loads(text)
    try:
        return _adapted(table, text)
    except (AttributeError, KeyError, TypeError) as error:
        raise DataError(f"it is not a tokenizer.json: {error!r}") from error


def _adapted(table: dict[str, Any], text: str) -> tuple[str, list[str]]:
    model = table.get("model")
    added = table.get("added_tokens") or []
    if not isinstance(model, dict) or not model.get("vocab"):
        raise DataError("it has no vocabulary")
    ids = read_ids(model, added)
    is_framed = "symbols" in table or (
        table.get("post_processor") and not (table.get("truncation") or table.get("padding"))
    )
    if is_framed and set(SPECIALS) <= {token["content"] for token in added}:
        return text, []
    unknown = _unknown_token(model)
    roles = {ours: next((name for name in names if name in ids), "") for ours, names in NAMES.items()}
    roles[UNK] = unknown if unknown in ids else roles[UNK]
    renamed = {name: ours for ours, name in roles.items() if name and name != ours}
    changes = [f"{name!r} is {ours}, with id {ids[name]:,}" for name, ours in renamed.items()]
    ids = {renamed.get(name, name): i for name, i in ids.items()}
    missing = [name for name in (UNK, *SPECIALS) if name not in ids]
    if _spells_bytes(table, ids):
        missing = [name for name in missing if name != UNK]
    ids |= {name: i for i, name in enumerate(missing, start=len(ids))}
    changes += [f"{name} was added, with id {ids[name]:,}" for name in missing]

    _set_vocabulary(model, renamed, ids)
    kept = [token for token in added if renamed.get(token["content"], token["content"]) not in NAMES]
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    special = [{"id": ids[name], "content": name, **plain} for name in SPECIALS]
    if model.get("type") != "BPE":  # merges cannot produce the name of a special token
        table["pre_tokenizer"] = _splitting_names(table.get("pre_tokenizer"))
    table |= {
        "added_tokens": sorted([*kept, *special], key=lambda token: token["id"]),
        "post_processor": _framing(ids),
        "truncation": None,
        "padding": None,
    }
    return json.dumps(table, ensure_ascii=False), changes


def read_ids(model: dict[str, Any], added: list[dict[str, Any]]) -> dict[str, int]:
    """Read the id of each token in a model's vocabulary, and of the tokens added to it. Refuses ids with gaps."""
    vocabulary = model["vocab"]
    pieces = (
        vocabulary.items() if isinstance(vocabulary, dict) else ((name, i) for i, (name, _) in enumerate(vocabulary))
    )
    ids: dict[str, int] = {}
    for name, i in [*pieces, *((token["content"], token["id"]) for token in added)]:
        if ids.setdefault(name, i) != i:
            raise DataError(f"the token {name!r:.80} has two ids, {ids[name]} and {i}")
    if len(ids) > LARGEST:
        raise DataError(f"it has {len(ids):,} tokens; at most {LARGEST:,} can be used")
    names: dict[int, str] = {}
    for name, i in ids.items():
        if type(i) is not int or not 0 <= i < len(ids):
            raise DataError(f"the token {name!r:.80} has the id {i!r:.40}; {len(ids):,} tokens have the ids from 0 on")
        if names.setdefault(i, name) != name:
            raise DataError(f"the tokens {names[i]!r:.80} and {name!r:.80} have the same id, {i}")
    return ids


def _unknown_token(model: dict[str, Any]) -> str:
    """Return the token that the model itself calls unknown, or "" if it names none."""
    if isinstance(model["vocab"], dict):
        return model.get("unk_token") or ""
    number = model.get("unk_id")
    if number is None:
        return ""
    if not 0 <= number < len(model["vocab"]):
        raise DataError(f"its unk_id is {number}, outside of its {len(model['vocab']):,} pieces")
    return str(model["vocab"][number][0])


def _spells_bytes(table: dict[str, Any], ids: dict[str, int]) -> bool:
    """Return True if every text can be encoded, at least as bytes, so that `<unk>` is not needed."""
    if table["model"].get("type") != "BPE":
        return False
    byte_level = '"ByteLevel"' in json.dumps(table.get("pre_tokenizer"))
    letters = pre_tokenizers.ByteLevel.alphabet() if byte_level else BYTE_TOKENS
    return set(letters) <= ids.keys() and (byte_level or bool(table["model"].get("byte_fallback")))


def _set_vocabulary(model: dict[str, Any], renamed: dict[str, str], ids: dict[str, int]) -> None:
    """Rename tokens of the model, and make `<unk>`, if it exists, the model's unknown token."""
    if isinstance(model["vocab"], dict):
        model["vocab"] = {renamed.get(name, name): i for name, i in model["vocab"].items()}
        if UNK in ids:
            model["vocab"][UNK] = ids[UNK]
            model["unk_token"] = UNK
        return
    model["vocab"] = [[renamed.get(name, name), score] for name, score in model["vocab"]]
    if ids[UNK] == len(model["vocab"]):
        model["vocab"].append([UNK, min(score for _, score in model["vocab"]) - BELOW_ALL])
    elif ids[UNK] > len(model["vocab"]):
        raise DataError(f"its model has no {UNK}, and it cannot be added after tokens that the model does not have")
    model["unk_id"] = ids[UNK]


def _splitting_names(pre_tokenizer: dict[str, Any] | None) -> dict[str, Any]:
    """Add a pre-tokenizer that splits the names of special tokens, so that they are encoded as text."""
    split = {
        "type": "Split", "pattern": {"Regex": INSIDE_SPECIAL}, "behavior": "MergedWithPrevious", "invert": False,
    }  # fmt: skip
    return {"type": "Sequence", "pretokenizers": [*([pre_tokenizer] if pre_tokenizer else []), split]}


def _framing(ids: dict[str, int]) -> dict[str, Any]:
    """Make the post-processor that puts `<sos>` and `<eos>` around a text."""
    first, second = ({"Sequence": {"id": name, "type_id": i}} for i, name in enumerate("AB"))
    start, end = ({"SpecialToken": {"id": name, "type_id": 0}} for name in (SOS, EOS))
    return {
        "type": "TemplateProcessing",
        "single": [start, first, end],
        "pair": [first, second],
        "special_tokens": {name: {"id": name, "ids": [ids[name]], "tokens": [name]} for name in (SOS, EOS)},
    }
