"""Does the tokenizer keep text?"""

import re
from collections.abc import Sequence

import torch

from ..text.tokenizer import Tokenizer
from .result import CheckResult


def text_round_trips(sides: Sequence[tuple[Tokenizer, Sequence[str]]]) -> CheckResult:
    """Text → ids → text gives the same text, for sentences of the data and for random tokens of the vocabulary."""
    rng = torch.Generator().manual_seed(1)
    count = 0
    for tokenizer, texts in sides:
        ids = torch.randint(len(tokenizer), (50, 8), generator=rng).tolist()
        made_up = [text for text in (tokenizer.decode(row).strip() for row in ids) if text]
        if tokenizer.symbols is not None:  # SentencePiece reads several spaces as one
            made_up = [re.sub(" +", " ", text) for text in made_up]
        count += len(texts) + len(made_up)
        for text in [*texts, *made_up]:
            back = tokenizer.decode(tokenizer.encode(text))
            if back != text:
                words = f"{text!r} is {back!r} after encoding and decoding: the tokenizer loses text."
                return CheckResult("text", False, words)
    return CheckResult("text", True, f"{count:,} texts are the same after encoding and decoding")
