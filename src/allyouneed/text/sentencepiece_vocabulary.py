"""SentencePiece models and the ids of their pieces → tokenizers."""

from collections.abc import Mapping, Sequence
from typing import Any

from tokenizers import processors

from ..errors import CheckpointError, InputError
from .backends import EOS, SOS, UNK
from .sentencepiece import SentencePieceModel
from .tokenizer import Tokenizer


def order_pieces(ids: Mapping[str, Any]) -> list[str]:
    """The pieces of a table of ids, in the order of the ids, which must be 0, 1, 2 and so on."""
    pieces = {i: piece for piece, i in ids.items() if type(i) is int}
    if len(pieces) != len(ids) or sorted(pieces) != list(range(len(ids))):
        raise CheckpointError(f"a vocabulary of {len(ids)} pieces must give them the ids from 0 to {len(ids) - 1}")
    return [pieces[i] for i in range(len(ids))]


def with_specials(pieces: Sequence[str], names: Mapping[Any, str]) -> list[str]:
    """The pieces with the names of special tokens in their positions. Refuses positions that there are not."""
    renamed = list(pieces)
    for i, name in names.items():
        if type(i) is not int or not 0 <= i < len(pieces):
            raise CheckpointError(f"the id of {name} must be one of the {len(pieces)} of the vocabulary; got {i!r:.40}")
        renamed[i] = name
    if UNK not in renamed:
        raise CheckpointError(f"the vocabulary has no {UNK}")
    return renamed


def make_tokenizer(model: SentencePieceModel, symbols: Sequence[str], *, start: str | None) -> Tokenizer:
    """A tokenizer of this model whose tokens have the ids of `symbols`; texts begin with `start` and end in `<eos>`."""
    backend, names = model.backend(), [name for name in (start, EOS) if name]
    ids = {name: i for i, name in enumerate(symbols)}
    backend.post_processor = processors.TemplateProcessing(
        single=" ".join([*([start] if start else []), "$0", EOS]),
        special_tokens=[(name, ids[name]) for name in dict.fromkeys(names)],
    )
    try:
        return Tokenizer(backend, symbols)
    except InputError as error:
        raise CheckpointError(f"the vocabulary cannot be imported: {error}; special tokens are {SOS}, {EOS}") from error
