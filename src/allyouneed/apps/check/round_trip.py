"""Does the tokenizer keep text?"""

import re
from collections.abc import Sequence

import torch

from ...errors import InputError
from ...text.tokenizer import Tokenizer
from .result import CheckResult


def text_round_trips(sides: Sequence[tuple[Tokenizer, Sequence[str]]]) -> CheckResult:
    """Text → ids → text gives the same text, for sentences of the data and for random tokens of the vocabulary.

    A text with a part that the vocabulary does not have is left out, and counted.
    """
    rng = torch.Generator().manual_seed(1)
    count = unknown = 0
    for tokenizer, texts in sides:
        ids = torch.randint(len(tokenizer), (50, 8), generator=rng).tolist()
        made_up = [text for text in (tokenizer.decode(row).strip() for row in ids) if text]
        if tokenizer.symbols is not None:  # SentencePiece reads several spaces as one
            made_up = [re.sub(" +", " ", text) for text in made_up]
        for text in [*texts, *made_up]:
            known = _known_ids(tokenizer, text)
            back = text if known is None else tokenizer.decode(known)
            if back != text:
                words = f"{text!r} is {back!r} after encoding and decoding: the tokenizer loses text."
                return CheckResult("text", False, words)
            count, unknown = count + (known is not None), unknown + (known is None)
    if unknown and not count:
        return CheckResult("text", False, f"the vocabulary does not have all parts of any of {unknown:,} texts")
    left_out = f"; {unknown:,} have a part that the vocabulary does not have" if unknown else ""
    return CheckResult("text", True, f"{count:,} texts are the same after encoding and decoding{left_out}")


def _known_ids(tokenizer: Tokenizer, text: str) -> list[int] | None:
    """The ids of a text; None if the vocabulary does not have all of it."""
    try:
        ids = tokenizer.encode(text)
    except InputError:
        return None
    return None if tokenizer.unk_id in ids else ids
