"""Convert text to ids and back, with a vocabulary of `text/backends.py` or an imported one.

`Tokenizer` wraps the tokenizers library, whose JSON is the format on disk. A sentence becomes `<sos> … <eos>`; `<pad>`
fills the rows of a batch. The name of a special token inside a text is encoded as plain text.

An imported vocabulary may differ in several ways. If two SentencePiece models share ids, the tokens of all ids are in a
separate list (`symbols`). Sources may have no start token, and targets start with `<pad>` if there is no `<sos>`. A
text may begin with a language tag such as `>>ita<<`.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from pathlib import Path

from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, normalizers

from ..errors import ConfigError, DataError, InputError, refused
from ..machine.files import read_whole, write_whole
from .backends import (
    BYTE_TOKENS,
    EOS,
    PAD,
    SOS,
    SPECIALS,
    UNK,
    character_backend,
)
from .subword_sampling import SubwordSampler
from .tokenizer_format import (
    describe_foreign_part,
    join_symbols,
    put_character_map,
    refuse_unknown_parts,
    split_symbols,
    start_tokens,
    take_character_map,
)

BLANK = "▁"  # stands for a space in SentencePiece
LANGUAGE_TAG = re.compile(r">>[^\s<>]+<<")

_UNENCODABLE = "the vocabulary has no token for some of the text, and no <unk>"
_QUOTED = 100  # characters of a text or an alphabet in a message


class Tokenizer:
    """Encodes sentences as ids and decodes them. Made from a backend (`text/backends.py`), or by `load`.

    `unk_id` is the id of text that the vocabulary cannot encode, or None if there is no `<unk>`. `is_of_characters` is
    True if each token is a character or a tag. `symbols` lists the tokens of all ids in order, if the ids of the model
    differ from those of `backend`.
    """

    def __init__(self, backend: Backend, symbols: Sequence[str] | None = None) -> None:
        backend.encode_special_tokens = True
        self._backend = backend
        self._character_map, backend.normalizer = take_character_map(backend.normalizer)
        self.symbols = None if symbols is None else tuple(symbols)
        ids = backend.get_vocab() if symbols is None else {name: i for i, name in enumerate(symbols)}
        needed = SPECIALS if symbols is None else (PAD, EOS, UNK)
        missing = [name for name in needed if name not in ids]
        if missing:
            raise InputError(f"a vocabulary needs {', '.join(needed)}; this one has no {', '.join(missing)}")
        if symbols is not None and len(ids) != len(symbols):
            raise InputError("a vocabulary may not have the same token twice")
        self.pad_id = ids[PAD]
        self.eos_id = ids[EOS]
        self.sos_id = ids.get(SOS, self.pad_id)
        self.unk_id = ids.get(UNK)
        self._ids = ids
        # Tokens that a text may contain.
        self._texts = {name: i for name, i in ids.items() if name not in (*SPECIALS, UNK)}
        self._tags = {name for name in self._texts if symbols and LANGUAGE_TAG.fullmatch(name)}
        starts = start_tokens(backend.post_processor)
        self.start_length = len(starts)
        if starts:
            self.sos_id = ids[starts[0]]
        # A vocabulary of characters without <unk> and bytes cannot encode other characters; merges would drop them
        # silently.
        model = backend.model
        merged = isinstance(model, models.BPE) and backend.pre_tokenizer is None and not model.byte_fallback
        fixed = self.unk_id is None and (isinstance(model, models.WordLevel) or (merged and model.unk_token is None))
        self._spellable = set(ids) - set(SPECIALS) if fixed else None
        self._word_end = model.end_of_word_suffix if isinstance(model, models.BPE) else None
        decoder = backend.decoder.__getstate__().decode() if backend.decoder else ""
        self._decomposes = isinstance(backend.normalizer, normalizers.NFD)
        self.is_of_characters = json.loads(decoder or "{}") == {"type": "Fuse"}
        self._in_bytes = '"ByteLevel"' in decoder
        self._blank = BLANK if symbols or BLANK in decoder else " "
        # With merges, all ids after `<unk>` are read as `<unk>`: symbols of merges that occur in no text.
        self._last_id = self.unk_id if self._word_end else None
        self._refuse_misplaced_unknown()

    @classmethod
    def characters(cls, alphabet: Iterable[str], *, tags: Sequence[str] = (), unknown: bool = False) -> "Tokenizer":
        """Give an id to each character, in order, then to each of the `tags`, then to `<sos>`, `<eos>` and `<pad>`.

        Each tag begins with the sign before it, such as `;PL`. With `unknown`, every other character is `<unk>`, the
        last id; without it, other characters are refused.
        """
        return cls(character_backend(alphabet, tags=tags, unknown=unknown))

    @classmethod
    def load(cls, path: str | Path) -> "Tokenizer":
        """Read a `tokenizer.json`."""
        if not Path(path).exists():
            raise DataError(f"{path} does not exist")
        with refused(DataError, f"{path} is not a tokenizer", OSError, UnicodeDecodeError, DataError):
            return cls.from_json(read_whole(Path(path)).decode())

    @classmethod
    def from_json(cls, text: str) -> "Tokenizer":
        """Read the result of `to_json`. Refuses parts that our vocabularies lack, such as other normalizers."""
        # The library raises bare Exceptions.
        with refused(DataError, "the tokenizers library cannot read it", Exception):
            refuse_unknown_parts(text)
            text, symbols = split_symbols(text)
            backend = Backend.from_str(text)
            tokenizer = cls(backend, symbols)
            # The backend raises an error if it cannot encode an unknown character, or splits its own tokens
            # differently.
            known = tokenizer._spellable
            backend.encode("a \N{SNOWMAN}" if known is None else "".join(name for name in known if len(name) == 1))
            return tokenizer

    def save(self, path: str | Path) -> None:
        """Write a `tokenizer.json`."""
        write_whole(Path(path), self.to_json())

    def __reduce__(self) -> tuple[object, ...]:
        return Tokenizer.from_json, (self.to_json(),)

    def to_json(self) -> str:
        """Return the content of a `tokenizer.json`."""
        return join_symbols(self.backend_json(), self.symbols)

    def backend_json(self) -> str:
        """Return the JSON for the tokenizers library, without `symbols`: the same tokens, but the library's own ids."""
        return put_character_map(self._backend.to_str(pretty=True), self._character_map)

    def foreign_part(self) -> str:
        """Name a part that only the tokenizers library can handle; "" if an exported page can handle all parts."""
        return describe_foreign_part(self.to_json())

    def fingerprint(self) -> str:
        """Return 16 hexadecimal digits that differ for different vocabularies, but not after saving and loading."""
        text = put_character_map(self._backend.to_str(), self._character_map)
        if isinstance(self._backend.model, models.Unigram):
            # The library may change the last decimal of a score when it reads a file.
            table = json.loads(text)
            table["model"]["vocab"] = [(piece, round(score, 9)) for piece, score in table["model"]["vocab"]]
            text = json.dumps(table)
        text += "\n".join(self.symbols or ())
        return sha256(text.encode()).hexdigest()[:16]

    def __len__(self) -> int:
        """Return the number of ids, which is the `vocab_size` of a model."""
        return len(self._ids) if self._last_id is None else self._last_id + 1

    def frame(self, ids: Iterable[int]) -> list[int]:
        """Put special tokens around ids: `<sos>`, if this side has one, and `<eos>`."""
        return [*[self.sos_id] * self.start_length, *ids, self.eos_id]

    def content(self, ids: Sequence[int]) -> Sequence[int]:
        """Return the ids of an encoded text without the special tokens around them."""
        return ids[self.start_length : -1]

    def banned_ids(self, *, unknown: bool) -> tuple[int, ...]:
        """Return the ids that no search may write: padding, the start token and, with `unknown`, `<unk>`."""
        some = (self.pad_id, self.sos_id, self.unk_id if unknown else None)
        return tuple(dict.fromkeys(i for i in some if i not in (None, self.eos_id)))

    def language_tag(self, text: str) -> str:
        """Return the tag that a text begins with, such as `>>ita<<`, if this vocabulary has it, otherwise ""."""
        end = text.find("<<") + 2 if self._tags and text.startswith(">>") else 0
        return text[:end] if text[:end] in self._tags else ""

    def encode(self, text: str) -> list[int]:
        """Encode a sentence as ids, with `<sos>` and `<eos>`. Refuses a character that has no id."""
        return self.encode_all([text])[0]

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode many sentences, which is faster than one at a time."""
        if self._spellable is not None:
            for line, text in enumerate(texts, start=1):
                self._refuse_unknown_characters(text, line)
        _refuse_surrogates(texts)
        if self.symbols is not None:
            return self._encode_by_symbols(texts)
        with refused(InputError, _UNENCODABLE, Exception):  # the library raises bare Exceptions
            sentences = [encoding.ids for encoding in self._backend.encode_batch_fast(list(texts))]
        if (last := self._last_id) is None:
            return sentences
        return [[min(i, last) for i in ids] for ids in sentences]

    @property
    def has_subwords(self) -> bool:
        """True if a word of a text can be segmented in different ways."""
        model = self._backend.model
        return isinstance(model, models.BPE | models.Unigram) and self._backend.pre_tokenizer is not None

    def with_sampling(self, *, strength: float, seed: int) -> Callable[[str, int], list[int]]:
        """Return a function that encodes a text by subword sampling. Its second argument is a number; equal numbers
        give equal results.

        `strength` is the probability that BPE skips a merge, or the exponent of a unigram's probability.
        """
        if not self.has_subwords:
            raise ConfigError(
                "data.subword_sampling segments words in different ways, which this vocabulary cannot: "
                "it needs one of BPE or unigram subwords whose words are split first; set it to 0"
            )
        sampler = SubwordSampler(self._backend, json.loads(self._backend.to_str()), strength=strength, seed=seed)
        ids = self._texts if self.symbols is not None else self._ids

        def encode(text: str, number: int) -> list[int]:
            tag = self.language_tag(text)
            sampled = [ids[tag]] if tag else []
            text = text[len(tag) :]
            for subword in sampler.segment(self._replace_characters(text), number=number):
                if subword in ids:
                    sampled.append(ids[subword])
                elif BYTE_TOKENS[0] in ids:
                    sampled += [ids[BYTE_TOKENS[byte]] for byte in subword.encode()]
                elif self.unk_id is None:
                    raise InputError(_UNENCODABLE)
                else:
                    sampled.append(self.unk_id)
            return self.frame(sampled)

        return encode

    def decode(self, ids: Sequence[int]) -> str:
        """Decode ids to text, without special tokens."""
        if self.symbols is not None:
            return self._decode_symbols(ids)
        try:
            return self.composed(self._backend.decode(list(ids)))
        except OverflowError:
            raise InputError(f"an id is outside the vocabulary of {len(self)}; got {list(ids)!r:.60}") from None

    def decode_all(self, sentences: Sequence[Sequence[int]]) -> list[str]:
        """Decode many lists of ids."""
        if self.symbols is not None:
            return [self._decode_symbols(ids) for ids in sentences]
        return list(map(self.composed, self._backend.decode_batch([list(ids) for ids in sentences])))

    def composed(self, text: str) -> str:
        """Compose the characters that this vocabulary decomposes."""
        return unicodedata.normalize("NFC", text) if self._decomposes else text

    def unknown_characters(self, text: str) -> list[str]:
        """List the characters of a text that a vocabulary of characters reads as `<unk>`, in order."""
        text = unicodedata.normalize("NFD", text) if self._decomposes else text
        tokens = [text[slice(*ends)] for ends in self._backend.encode(text, add_special_tokens=False).offsets]
        known = [self.unk_id not in ids for ids in self.encode_all(tokens)]
        return [token for token, is_known in zip(tokens, known, strict=True) if len(token) == 1 and not is_known]

    def names(self) -> list[str]:
        """List the token of each id as `tokenizer.json` writes it, in the order of the ids."""
        names = {i: name for name, i in self._ids.items()}
        return [names[i] for i in range(len(self))]

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Return the text of each token. A space at the start of a word is shown as ␣."""
        return [self._piece(i) for i in ids]

    def _piece(self, i: int) -> str:
        if self.symbols is not None:
            name = self.symbols[i] if 0 <= i < len(self.symbols) else None
        else:
            name = self._backend.id_to_token(i) if i >= 0 else None
        if name is None:
            raise InputError(f"id {i} is outside the vocabulary of {len(self)}")
        if name in SPECIALS or name == UNK:
            return name
        if self._word_end:
            return name.replace(self._word_end, "␣")
        text: str = decoders.ByteLevel().decode([name]) if self._in_bytes else name
        return text.replace(self._blank, "␣")

    def _encode_by_symbols(self, texts: Sequence[str]) -> list[list[int]]:
        tags = [self.language_tag(text) for text in texts]
        rest = [self._replace_characters(text[len(tag) :]) for text, tag in zip(texts, tags, strict=True)]
        with refused(InputError, _UNENCODABLE, Exception):
            encodings = self._backend.encode_batch(rest, add_special_tokens=False)
        unknown = self._ids[UNK]
        return [
            self.frame(self._texts.get(token, unknown) for token in ([tag] if tag else []) + encoding.tokens)
            for tag, encoding in zip(tags, encodings, strict=True)
        ]

    def _replace_characters(self, text: str) -> str:
        return self._character_map(text) if self._character_map else text

    def _decode_symbols(self, ids: Iterable[int]) -> str:
        assert self.symbols is not None
        special = (self.pad_id, self.sos_id, self.eos_id)
        return "".join(self.symbols[i] for i in ids if i not in special).replace(BLANK, " ").strip(" ")

    def _refuse_misplaced_unknown(self) -> None:
        if self._last_id is not None and self._last_id <= len(SPECIALS):
            raise InputError(
                f"{UNK} must come after the tokens of a vocabulary of merges; here it is {self.unk_id}, so that all "
                "that follow would be read as unknown"
            )

    def _refuse_unknown_characters(self, text: str, line: int) -> None:
        assert self._spellable is not None
        unknown = next((character for character in text if character not in self._spellable), None)
        if unknown is not None:
            known = "".join(sorted(self._spellable))
            raise InputError(
                f"{unknown!r} at position {text.index(unknown) + 1} of {text[:_QUOTED]!r}{'…' * (len(text) > _QUOTED)} "
                f"is not in the vocabulary; it knows {known[:_QUOTED]!r}{'…' * (len(known) > _QUOTED)}",
                line=line,
            )


def _refuse_surrogates(texts: Sequence[str]) -> None:
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        line = next(line for line, text in enumerate(texts, start=1) if re.search("[\ud800-\udfff]", text))
        raise InputError("the text has half of a surrogate pair, which is not a character", line=line) from None
