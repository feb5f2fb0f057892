"""Whether a vocabulary fits pairs that its model did not see: unknown tokens, and words in many pieces."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ...bundle import Bundle
from ...data.pairs import Pair
from ...errors import DataError, InputError
from ...text.tokenizer import Tokenizer

MAX_UNKNOWN = 0.1  # share of the tokens of the corrections
STRETCHED = 2.0  # times the tokens a character of the known pairs, from which the vocabulary hardly fits


def check_vocabulary(base: Bundle, pairs: Sequence[Pair], known: Sequence[Pair], name: Path) -> Iterator[str]:
    """Refuse corrections that the vocabulary cannot encode; warnings about those that it hardly can."""
    try:
        unknown, stretch = _unknown_share(base, pairs), _tokens_a_character(base, pairs)
    except InputError as error:
        raise InputError(f"the vocabulary of {name} does not fit the corrections: {error}") from error
    if unknown > MAX_UNKNOWN:
        raise DataError(
            f"the vocabulary of {name} does not fit the corrections: {unknown:.1%} of their tokens are unknown to it, "
            f"more than {MAX_UNKNOWN:.0%}; train a model with a vocabulary for both kinds of pairs"
        )
    if unknown:
        yield f"{unknown:.2%} of the tokens of the corrections are unknown to the vocabulary"
    if known and (times := stretch / _tokens_a_character(base, known)) > STRETCHED:
        yield (
            f"the vocabulary hardly fits the corrections: a character takes {times:.1f} times the tokens that it takes "
            "in the pairs that the model knows"
        )


def count_tokens(base: Bundle, pairs: Sequence[Pair]) -> int:
    """The tokens of both sides of all pairs."""
    return sum(len(ids) for _, _, ids in _encoded(base, pairs))


def _encoded(base: Bundle, pairs: Sequence[Pair]) -> Iterator[tuple[Tokenizer, str, list[int]]]:
    for side, tokenizer in enumerate((base.source_tokenizer, base.target_tokenizer)):
        texts = [pair[side] for pair in pairs]
        for text, ids in zip(texts, tokenizer.encode_all(texts), strict=True):
            yield tokenizer, text, list(tokenizer.content(ids))


def _unknown_share(base: Bundle, pairs: Sequence[Pair]) -> float:
    counts = [
        (ids.count(-1 if tokenizer.unk_id is None else tokenizer.unk_id), len(ids))
        for tokenizer, _, ids in _encoded(base, pairs)
    ]
    return sum(unknown for unknown, _ in counts) / max(1, sum(count for _, count in counts))


def _tokens_a_character(base: Bundle, pairs: Sequence[Pair]) -> float:
    lengths = [(len(ids), len(text)) for _, text, ids in _encoded(base, pairs)]
    return sum(tokens for tokens, _ in lengths) / max(1, sum(characters for _, characters in lengths))
