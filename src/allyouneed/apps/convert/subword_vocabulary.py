"""The vocabularies of fairseq and JoeyNMT: a list of tokens, and merges or SentencePiece models that make them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from tokenizers import processors
from torch import Tensor

from ...errors import CheckpointError, DataError, InputError
from ...text.backends import EOS, PAD, SOS, SPECIALS, UNK, merges_backend
from ...text.sentencepiece import BPE, SentencePieceModel, make_tokenizer
from ...text.tokenizer import Tokenizer
from .checkpoint_files import read_limited

_LARGEST_TEXT = 2**26  # bytes of a file of tokens or merges
_CONTINUED = "@@"  # how subword-nmt marks a token whose word goes on
_VERSION = "#version: 0.2"


@dataclass(frozen=True, slots=True)
class ImportedSide:
    """The tokenizer of a side, and for each of its ids the row of the checkpoint's embeddings."""

    tokenizer: Tokenizer
    rows: Tensor


def read_lines_of_text(path: Path) -> list[str]:
    """The lines of a text file in UTF-8, without an empty last one."""
    try:
        text = read_limited(path, _LARGEST_TEXT).decode()
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{path} is not UTF-8: byte {error.start + 1}") from error
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")


def rename_specials(tokens: Sequence[str], names: dict[str, str], path: Path) -> list[str]:
    """The tokens with our names of the special ones. Refuses a token twice, and one that has such a name already."""
    if len(set(tokens)) != len(tokens):
        raise CheckpointError(f"{path} has a token twice")
    for name, ours in names.items():
        if name not in tokens:
            raise CheckpointError(f"{path} has no {name}")
        if ours in tokens and ours not in names:
            raise CheckpointError(f"{path} has a token {ours}, which is the name of another one here")
    return [names.get(token, token) for token in tokens]


def sentencepiece_side(path: Path, symbols: Sequence[str], *, start: str | None, restricted: bool) -> ImportedSide:
    """A side of a SentencePiece model. If `restricted`, only those of its pieces are used that the vocabulary has."""
    model = SentencePieceModel.load(path)
    if restricted:
        known = set(symbols)
        if model.kind == BPE and any(piece not in known and len(piece) > 1 for piece, _ in model.pieces):
            raise CheckpointError(
                f"{path} is a BPE model with pieces that the vocabulary lacks, which cannot be imported"
            )
        model = replace(model, pieces=tuple(part for part in model.pieces if part[0] in known or len(part[0]) == 1))
    return ImportedSide(make_tokenizer(model, symbols, start=start), torch.arange(len(symbols)))


def merges_side(path: Path, symbols: Sequence[str], *, start: str | None) -> ImportedSide:
    """A side of the merges that subword-nmt or fastBPE learned. The ids are in the order of our own such vocabularies:
    `<pad>`, `<sos>`, `<eos>`, the tokens, and `<unk>`.
    """
    ours = [_our_spelling(token) for token in symbols]
    order = [symbols.index(name) for name in SPECIALS]
    order += [i for i, name in enumerate(symbols) if name not in (*SPECIALS, UNK)]
    order.append(symbols.index(UNK))
    try:
        backend = merges_backend(_read_merges(path), [ours[i] for i in order[len(SPECIALS) : -1]])
        names = [name for name in (start, EOS) if name]
        backend.post_processor = processors.TemplateProcessing(
            single=" ".join([*names[:-1], "$0", EOS]),
            special_tokens=[(name, backend.token_to_id(name)) for name in dict.fromkeys(names)],
        )
        tokenizer = Tokenizer(backend)
    except (DataError, InputError) as error:
        raise CheckpointError(f"{path} cannot be imported: {error}") from error
    if len(tokenizer) != len(symbols):
        raise CheckpointError(f"{path} and the vocabulary spell a token in two ways, one with and one without </w>")
    return ImportedSide(tokenizer, torch.tensor(order))


def _our_spelling(token: str) -> str:
    """The library marks the end of a word, subword-nmt what is not its end."""
    if token in (PAD, SOS, EOS, UNK):
        return token
    return token.removesuffix(_CONTINUED) if token.endswith(_CONTINUED) and token != _CONTINUED else f"{token}</w>"


def _read_merges(path: Path) -> list[str]:
    """Those of subword-nmt as they are; of fastBPE, which writes a count behind each, without the counts."""
    lines = read_lines_of_text(path)
    if lines[0].strip() == _VERSION or any(len(line.split(" ")) != 3 for line in lines):
        return lines
    return [_VERSION, *(line.rpartition(" ")[0] for line in lines)]
