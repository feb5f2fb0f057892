"""SentencePiece models: read a .spm file, and build the same unigram or BPE model in the tokenizers library.

A .spm file is a protocol buffer (sentencepiece_model.proto in google/sentencepiece). This file reads only the fields
that encoding depends on. It checks all sizes, because the file may come from a stranger and the libraries would trust
its character map and might crash.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Backend

from ..errors import CheckpointError, InputError, refused
from ..machine.files import read_whole
from .backends import EOS, SOS, SPECIALS, UNK
from .character_map import check_character_map
from .tokenizer import Tokenizer
from .tokenizer_adaptation import NAMES
from .tokenizer_format import EDGE_BLANKS, REPEATED_BLANKS

LARGEST_SPM = 2**25  # bytes; a model of 250,000 pieces has about 5 million
MOST_PIECES = 2**20
UNKNOWN_PIECE = " "  # no text is encoded as this piece, because blanks have become ▁ before
NORMAL, UNKNOWN, CONTROL = 1, 2, 3  # types of pieces
UNIGRAM, BPE = 1, 2  # types of models
LONGEST_PIECE = 256  # characters; by default SentencePiece makes pieces of at most 16

Field = tuple[int, int | bytes]  # a number and a value


@dataclass(frozen=True, slots=True)
class SentencePieceModel:
    """The normal pieces of a model with their scores, and how text is normalized before encoding.

    In a unigram model a score is the log-probability of a piece. In BPE a score is a rank: the piece with the highest
    score is merged first.
    """

    pieces: tuple[tuple[str, float], ...]
    names: tuple[str, ...]  # for all ids, with control pieces
    character_map: bytes  # a trie of replacements, as SentencePiece compiles it; may be empty
    normalization: str  # the name of the character map, such as nmt_nfkc
    kind: int = UNIGRAM

    @classmethod
    def load(cls, path: Path) -> SentencePieceModel:
        """Read a .spm file.

        Refuses types other than unigram and BPE, and settings that the tokenizers library lacks.
        """
        with refused(CheckpointError, f"{path} is not a readable SentencePiece model", OSError, ValueError):
            return cls.parse(read_whole(path, LARGEST_SPM + 1))

    @classmethod
    def parse(cls, content: bytes) -> SentencePieceModel:
        """Read the content of a .spm file; see `load`. Raises ValueError instead of a `CheckpointError`."""
        if len(content) > LARGEST_SPM:
            raise ValueError(f"it has more than {LARGEST_SPM:,} bytes, which no file of this kind needs")
        stored: list[tuple[str, float, int]] = []
        trainer: dict[int, int | bytes] = {}
        normalizer: dict[int, int | bytes] = {}
        for number, value in _fields(content):
            if number == 1:
                if len(stored) == MOST_PIECES:
                    raise ValueError(f"it has more than {MOST_PIECES:,} pieces")
                stored.append(_piece(_message(value)))
            elif number == 2:
                trainer = dict(_fields(_message(value)))
            elif number == 3:
                normalizer = dict(_fields(_message(value)))
        kind = cast(int, trainer.get(3, UNIGRAM))
        if kind not in (UNIGRAM, BPE):
            raise ValueError("it must be a unigram model or BPE; other kinds cannot be imported")
        for number, default, name in ((3, 1, "add_dummy_prefix"), (4, 1, "remove_extra_whitespaces"), (5, 1, "escape")):
            if normalizer.get(number, default) != default:
                raise ValueError(f"its setting {name} is off, which cannot be imported")
        if trainer.get(24):
            raise ValueError("it has treat_whitespace_as_suffix, which cannot be imported")
        if other := {kind for _, _, kind in stored} - {NORMAL, UNKNOWN, CONTROL}:
            raise ValueError(f"it has pieces of type {min(other)} (4 user-defined, 5 unused, 6 byte); known are 1 to 3")
        pieces = tuple((piece, score) for piece, score, kind in stored if kind == NORMAL)
        if not pieces or len({piece for piece, _ in pieces}) != len(pieces):
            raise ValueError("it must have pieces, none of them twice")
        if longest := [piece for piece, _ in pieces if len(piece) > LONGEST_PIECE]:
            raise ValueError(f"it has a piece of {len(longest[0]):,} characters; at most {LONGEST_PIECE:,} can be read")
        character_map = _message(normalizer.get(2, b""))
        if character_map:
            check_character_map(character_map)
        name = _message(normalizer.get(1, b"")).decode()
        return cls(pieces, tuple(piece for piece, _, _ in stored), character_map, name, kind)

    def backend(self) -> Backend:
        """Build the same model with the tokenizers library. Unknown text stays unchanged."""
        backend = Backend(self._bpe() if self.kind == BPE else self._unigram())
        blanks = [normalizers.Replace(Regex(EDGE_BLANKS), ""), normalizers.Replace(Regex(REPEATED_BLANKS), " ")]
        mapped = [normalizers.Precompiled(self.character_map)] if self.character_map else []
        backend.normalizer = normalizers.Sequence([*mapped, *blanks])
        inner = any("▁" in piece[1:] for piece, _ in self.pieces)  # some piece crosses a boundary between words
        backend.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=not inner)
        backend.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always", split=not inner)
        return backend

    def _unigram(self) -> models.Unigram:
        lowest = min(score for _, score in self.pieces)
        return models.Unigram([*self.pieces, (UNKNOWN_PIECE, lowest)], unk_id=len(self.pieces))

    def _bpe(self) -> models.BPE:
        """Rebuild the merges: any two neighbours that together are a piece, in the order of the scores."""
        ids = {piece: i for i, (piece, _) in enumerate(self.pieces)}
        merges = [
            (piece[:cut], piece[cut:])
            for piece, _ in sorted(self.pieces, key=lambda one: -one[1])
            for cut in range(1, len(piece))
            if piece[:cut] in ids and piece[cut:] in ids
        ]
        return models.BPE({**ids, UNKNOWN_PIECE: len(ids)}, merges, unk_token=UNKNOWN_PIECE, fuse_unk=True)


def _piece(content: bytes) -> tuple[str, float, int]:
    fields = dict(_fields(content))
    stored = _message(fields.get(2, bytes(4)))
    if len(stored) != 4:
        raise ValueError(f"a piece has a score of {len(stored)} bytes; expected 4")
    score = struct.unpack("<f", stored)[0]
    if not math.isfinite(score):
        raise ValueError("a piece has a score that is not finite")
    return _message(fields.get(1, b"")).decode(), score, cast(int, fields.get(3, NORMAL))


def _message(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("it has a number where text or a message is expected")
    return value


def _fields(content: bytes) -> Iterator[Field]:
    """Yield the fields of a protocol buffer message. Numbers of fixed width are given as bytes."""
    position = 0
    while position < len(content):
        key, position = _varint(content, position)
        kind = key & 7
        if kind == 0:
            number, position = _varint(content, position)
            yield key >> 3, number
            continue
        if kind == 2:
            length, position = _varint(content, position)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise ValueError(f"a field has the unknown wire type {kind}")
        if length > len(content) - position:
            raise ValueError("it ends within a field")
        yield key >> 3, content[position : position + length]
        position += length


def _varint(content: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while shift < 64:
        if position == len(content):
            raise ValueError("it ends within a number")
        byte = content[position]
        number |= (byte & 127) << shift
        position = position + 1
        shift = shift + 7
        if byte < 128:
            return number, position
    raise ValueError("a number has more than 64 bits")


def order_pieces(ids: Mapping[str, Any]) -> list[str]:
    """List the pieces of a table of ids in the order of their ids, which must be 0, 1, 2 and so on."""
    pieces = {i: piece for piece, i in ids.items() if type(i) is int}
    if len(pieces) != len(ids) or sorted(pieces) != list(range(len(ids))):
        raise CheckpointError(f"a vocabulary of {len(ids)} pieces must give them the ids from 0 to {len(ids) - 1}")
    return [pieces[i] for i in range(len(ids))]


def with_specials(pieces: Sequence[str], names: Mapping[Any, str]) -> list[str]:
    """Insert the names of special tokens at their positions. Refuses positions that do not exist."""
    renamed = list(pieces)
    for i, name in names.items():
        if type(i) is not int or not 0 <= i < len(pieces):
            raise CheckpointError(f"the id of {name} must be one of the {len(pieces)} of the vocabulary; got {i!r:.40}")
        renamed[i] = name
    if UNK not in renamed:
        raise CheckpointError(f"the vocabulary has no {UNK}")
    return renamed


def make_tokenizer(model: SentencePieceModel, symbols: Sequence[str], *, start: str | None) -> Tokenizer:
    """Make a tokenizer of this model with the ids of `symbols`. Texts begin with `start` and end with `<eos>`."""
    backend = model.backend()
    names = [name for name in (start, EOS) if name]
    ids = {name: i for i, name in enumerate(symbols)}
    backend.post_processor = processors.TemplateProcessing(
        single=" ".join([*([start] if start else []), "$0", EOS]),
        special_tokens=[(name, ids[name]) for name in dict.fromkeys(names)],
    )
    try:
        return Tokenizer(backend, symbols)
    except InputError as error:
        raise CheckpointError(f"the vocabulary cannot be imported: {error}; special tokens are {SOS}, {EOS}") from error


def adapt_model(model: SentencePieceModel) -> tuple[Tokenizer, list[str]]:
    """Make a tokenizer of a model with our names for its control pieces, and list each piece that was renamed or added.

    All pieces keep their ids. Missing control pieces are added after the last id.
    """
    controls = set(model.names) - {piece for piece, _ in model.pieces}
    names = {name: ours for ours, others in NAMES.items() for name in others[::-1] if name in controls}
    renamed = {name: ours for name, ours in names.items() if name != ours}
    known = [renamed.get(name, name) for name in model.names]
    missing = [name for name in SPECIALS if name not in known]
    changes = [f"{name!r} is {ours}, with id {known.index(ours):,}" for name, ours in renamed.items()]
    changes += [f"{name} was added, with id {i:,}" for i, name in enumerate(missing, start=len(known))]
    return make_tokenizer(model, [*known, *missing], start=SOS), changes
