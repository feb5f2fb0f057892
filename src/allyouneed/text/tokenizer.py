"""Text ↔ ids: one id a character, byte pairs learned from text (Sennrich et al., 2016), or given merges.

The tokenizers library does the work, and its JSON is the format on disk. Every sentence becomes
`<sos> … <eos>`; `<pad>` fills what is left of a batch. These three names typed in a text are plain
text like any other.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from itertools import chain
from pathlib import Path

from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers import Tokenizer as Backend

from ..errors import ConfigError, DataError, InputError
from ..files import write_whole
from .subword_sampling import Segmenter
from .tokenizer_format import EVERY_CHARACTER, WORDS, refuse_unknown_parts

PAD, SOS, EOS = SPECIALS = ("<pad>", "<sos>", "<eos>")
UNK = "<unk>"

_WORD_END = "</w>"
_STEP = 0.0001  # between the scores of letters that the library could not estimate
_DECIMALS = 5  # of a score: what the library reads back from a file exactly as it was
_FALLBACK = [f"<0x{byte:02X}>" for byte in range(256)]
_BYTES = pre_tokenizers.ByteLevel.alphabet()


class Tokenizer:
    """What turns sentences into ids and back; made by `characters`, `train_bpe`, `from_bpe_codes` or `load`.

    `unk_id` is the id of what the vocabulary cannot spell, or None if it spells everything it accepts.
    """

    def __init__(self, backend: Backend) -> None:
        backend.encode_special_tokens = True
        self._backend = backend
        ids = backend.get_vocab()
        missing = [name for name in SPECIALS if name not in ids]
        if missing:
            raise InputError(f"a vocabulary needs {', '.join(SPECIALS)}; this one has no {', '.join(missing)}")
        self.pad_id, self.sos_id, self.eos_id = (ids[name] for name in SPECIALS)
        self.unk_id = ids.get(UNK)
        # Byte pairs can spell anything; a vocabulary of characters only what it was given.
        model = backend.model
        only_given = isinstance(model, models.WordLevel) and self.unk_id is None
        self._spellable = set(ids) - set(SPECIALS) if only_given else None
        self._word_end = model.end_of_word_suffix if isinstance(model, models.BPE) else None
        self._in_bytes = isinstance(model, models.BPE) and not model.byte_fallback and not self._word_end
        self._refuse_misplaced_unknown(backend.get_vocab_size())

    @classmethod
    def characters(cls, alphabet: Iterable[str], *, byte_fallback: bool = False) -> "Tokenizer":
        """One id for each character, in the order given; then `<sos>`, `<eos>` and `<pad>`.

        With `byte_fallback` 256 ids more spell every other character in the bytes of UTF-8.
        """
        if byte_fallback:
            return cls(_with_specials(_characters_or_bytes(list(dict.fromkeys(alphabet)))))
        symbols = [*dict.fromkeys(alphabet), SOS, EOS, PAD]
        backend = Backend(models.WordLevel({symbol: i for i, symbol in enumerate(symbols)}))
        backend.pre_tokenizer = pre_tokenizers.Split(Regex(EVERY_CHARACTER), "isolated")
        backend.decoder = decoders.Fuse()
        return cls(_with_specials(backend))

    @classmethod
    def train_bpe(cls, texts: Iterable[str], *, vocab_size: int) -> "Tokenizer":
        """Merge the commonest neighbours among the bytes of `texts` until there are `vocab_size` pieces.

        Ids 0, 1 and 2 are `<pad>`, `<sos>` and `<eos>`. Starting from all 256 bytes, no text is
        unknowable. Refuses a size that does not hold the bytes.
        """
        smallest = len(_BYTES) + len(SPECIALS)
        if vocab_size < smallest:
            raise ConfigError(
                f"vocab_size must be at least {smallest} (every byte, {', '.join(SPECIALS)}); got {vocab_size}"
            )
        backend = Backend(models.BPE())
        backend.normalizer = normalizers.Prepend(" ")  # a word is the same piece wherever it stands
        backend.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(WORDS), "isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
        backend.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])
        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size, special_tokens=list(SPECIALS), initial_alphabet=_BYTES, show_progress=False
        )
        backend.train_from_iterator(texts, trainer)
        return cls(_with_specials(backend))

    @classmethod
    def train_words(cls, texts: Iterable[str], *, vocab_size: int) -> "Tokenizer":
        """The commonest words, digits and runs of signs of `texts`; every other is `<unk>`, the last id."""
        backend = Backend(models.WordLevel(unk_token=UNK))
        backend.normalizer = normalizers.Prepend(" ")
        backend.pre_tokenizer = pre_tokenizers.Split(Regex(WORDS), "isolated")
        trainer = trainers.WordLevelTrainer(
            vocab_size=max(1, vocab_size - len(SPECIALS) - 1), special_tokens=[], show_progress=False
        )
        backend.train_from_iterator(texts, trainer)
        words = sorted(backend.get_vocab().items(), key=lambda item: item[1])
        symbols = [*SPECIALS, *(word for word, _ in words if word not in (*SPECIALS, UNK)), UNK]
        backend.model = models.WordLevel({symbol: i for i, symbol in enumerate(symbols)}, unk_token=UNK)
        backend.decoder = decoders.Sequence([decoders.Fuse(), decoders.Strip(" ", 1, 0)])
        return cls(_with_specials(backend))

    @classmethod
    def train_unigram(cls, texts: Iterable[str], *, vocab_size: int) -> "Tokenizer":
        """Pieces whose probabilities explain `texts` best (Kudo, 2018); what they cannot spell is spelled in bytes."""
        smallest = len(_FALLBACK) + len(SPECIALS) + 1
        if vocab_size <= smallest:
            raise ConfigError(
                f"vocab_size must be more than {smallest} (every byte, {', '.join(SPECIALS)}, {UNK}); got {vocab_size}"
            )
        backend = Backend(models.Unigram())
        backend.normalizer = normalizers.Prepend(" ")
        backend.pre_tokenizer = pre_tokenizers.Split(Regex(WORDS), "isolated")
        trainer = trainers.UnigramTrainer(
            vocab_size=vocab_size - smallest, special_tokens=[], unk_token=None, show_progress=False
        )
        try:
            backend.train_from_iterator(texts, trainer)
        except Exception as error:  # the library raises bare Exceptions
            if "all chars" not in str(error):
                raise
            raise ConfigError(
                f"a unigram vocabulary holds {smallest} bytes and signs and every character of the texts; "
                f"vocab_size={vocab_size} is too small for these. Raise data.vocab_size, or set "
                'data.vocabulary="bpe", which spells rare characters in bytes'
            ) from error
        pieces = _settled([(piece, score) for piece, score in json.loads(backend.to_str())["model"]["vocab"]])
        lowest = min((score for _, score in pieces), default=0.0)
        # No piece crosses a word's edge, so no text can spell the name of a sign or of a byte.
        named = [(name, 0.0) for name in SPECIALS] + [(name, round(lowest - 10, _DECIMALS)) for name in _FALLBACK]
        symbols = [*named, *pieces, (UNK, round(lowest - 20, _DECIMALS))]
        backend.model = models.Unigram(symbols, unk_id=len(symbols) - 1, byte_fallback=True)
        backend.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
        return cls(_with_specials(backend))

    @classmethod
    def from_bpe_codes(cls, codes: Iterable[str], texts: Iterable[str], *, every: bool = False) -> "Tokenizer":
        """Given merges (subword-nmt's format, version 0.2) on text whose words already stand apart.

        The dictionary is what the merges make of `texts`: `<pad>`, `<sos>`, `<eos>`, the symbols by their
        count, `<unk>` last. Whatever else the merges can make is `<unk>`, or in the dictionary too if it shall hold
        `every` symbol. Words are joined by single blanks.
        """
        merges = _merges(codes)
        counts = Counter(word for text in texts for word in text.split(" ") if word)
        letters = dict.fromkeys(chain.from_iterable(merges))
        letters |= dict.fromkeys(sorted({c for word in counts for c in (*word[:-1], f"{word[-1]}{_WORD_END}")}))
        symbols = list(dict.fromkeys([*letters, *map("".join, merges)]))
        whole = _merging(symbols, merges)
        used = Counter[str]()
        for word, count in counts.items():
            for symbol in whole.encode(word, add_special_tokens=False).tokens:
                used[symbol] += count
        seen = sorted(used, key=lambda symbol: (-used[symbol], symbol))
        # Merges need their halves as ids too; those that stand in no text come after <unk>.
        rest = [symbol for symbol in symbols if symbol not in used]
        known, unknown = (seen + rest, []) if every else (seen, rest)
        return cls(_with_specials(_merging([*SPECIALS, *known, UNK, *unknown], merges)))

    @classmethod
    def load(cls, path: str | Path) -> "Tokenizer":
        """Read a `tokenizer.json`."""
        try:
            text = Path(path).read_text(encoding="utf-8")
            refuse_unknown_parts(text)
            tokenizer = cls(Backend.from_str(text))
            if tokenizer._spellable is None:
                tokenizer.encode("a \N{SNOWMAN}")  # what has no way to spell a stranger raises here, not later
            return tokenizer
        except FileNotFoundError:
            raise DataError(f"{path} does not exist") from None
        except InputError:
            raise
        except Exception as error:  # the library raises bare Exceptions
            raise DataError(f"{path} is no tokenizer: {error}") from error

    def save(self, path: str | Path) -> None:
        """Write a `tokenizer.json`."""
        write_whole(Path(path), self._backend.to_str(pretty=True))

    def fingerprint(self) -> str:
        """The same for equal vocabularies only, and the same after a file."""
        text = self._backend.to_str()
        if isinstance(
            self._backend.model, models.Unigram
        ):  # the library's reading may change the last decimal of a score
            table = json.loads(text)
            table["model"]["vocab"] = [(piece, round(score, 9)) for piece, score in table["model"]["vocab"]]
            text = json.dumps(table)
        return sha256(text.encode()).hexdigest()[:16]

    def __len__(self) -> int:
        """How many ids there are: `vocab_size` to a model."""
        return self._backend.get_vocab_size() if self.unk_id is None else self.unk_id + 1

    def encode(self, text: str) -> list[int]:
        """The ids of one sentence, `<sos>` and `<eos>` included. Refuses a character it has no id for."""
        return self.encode_all([text])[0]

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of many sentences; faster than one by one."""
        if self._spellable is not None:
            for line, text in enumerate(texts, start=1):
                self._refuse_unknown_characters(text, line)
        sentences = [encoding.ids for encoding in self._backend.encode_batch_fast(list(texts))]
        if self.unk_id is None:
            return sentences
        return [[min(i, self.unk_id) for i in ids] for ids in sentences]

    def with_sampling(self, *, strength: float, seed: int) -> Callable[[str, int], list[int]]:
        """What spells a text by chance, `<sos>` and `<eos>` included: the same for the same number.

        `strength` is the share of merges left out, or of unigram pieces the power their probability is taken to.
        """
        segmenter = Segmenter(self._backend, json.loads(self._backend.to_str()), strength=strength, seed=seed)
        ids = self._backend.get_vocab()

        def encode(text: str, number: int) -> list[int]:
            found: list[int] = []
            for piece in segmenter.pieces(text, number=number):
                if piece in ids:
                    found.append(ids[piece])
                elif _FALLBACK[0] in ids:
                    found += [ids[_FALLBACK[byte]] for byte in piece.encode()]
                else:
                    assert self.unk_id is not None
                    found.append(self.unk_id)
            return [self.sos_id, *found, self.eos_id]

        return encode

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids; `<pad>`, `<sos>` and `<eos>` leave nothing."""
        return self._backend.decode(list(ids))

    def decode_all(self, sentences: Sequence[Sequence[int]]) -> list[str]:
        """The texts of many lists of ids."""
        return self._backend.decode_batch([list(ids) for ids in sentences])

    def names(self) -> list[str]:
        """What `tokenizer.json` calls each id, in their order."""
        names = {i: name for name, i in self._backend.get_vocab().items()}
        return [names[i] for i in range(len(self))]

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """What each id stands for, as a reader would write it (a blank before a word shows as ␣)."""
        return [self._piece(i) for i in ids]

    def _piece(self, i: int) -> str:
        name = self._backend.id_to_token(i)
        if name is None:
            raise InputError(f"id {i} is outside the vocabulary of {len(self)}")
        if name in SPECIALS or name == UNK:
            return name
        if self._word_end:
            return name.replace(self._word_end, "␣")
        text: str = decoders.ByteLevel().decode([name]) if self._in_bytes else name
        return text.replace(" ", "␣")

    def _refuse_misplaced_unknown(self, size: int) -> None:
        # The ids from `<unk>` on are all read as `<unk>`: those of given merges that stand in no text.
        if self.unk_id is None:
            return
        if self.unk_id <= len(SPECIALS) or not (self._word_end or self.unk_id == size - 1):
            raise InputError(
                f"{UNK} must be the last of a vocabulary's {size} ids; here it is {self.unk_id}, so that all "
                "that follow would be read as unknown"
            )

    def _refuse_unknown_characters(self, text: str, line: int) -> None:
        assert self._spellable is not None
        stranger = next((character for character in text if character not in self._spellable), None)
        if stranger is not None:
            known = "".join(sorted(self._spellable))
            raise InputError(
                f"{stranger!r} at place {text.index(stranger) + 1} of {text!r} "
                f"is not in the vocabulary; it knows {known!r}",
                line=line,
            )


def _settled(pieces: list[tuple[str, float]]) -> list[tuple[str, float]]:
    """Pieces and their log-probabilities, the same at every training on the same texts, and after a file.

    The library adds them up in an order that differs from process to process: their last decimals differ, the order
    of equal ones, and which of the rarest letters gets which of the lowest scores, each `_STEP` above the other.
    """
    letters = sorted(piece for piece, _ in pieces if len(piece) == 1)
    below = min((score for _, score in pieces), default=0.0) + _STEP * len(letters)
    scores = {piece: round(score, _DECIMALS) for piece, score in pieces}
    rarest = [letter for letter in letters if scores[letter] < below]
    scores.update(zip(rarest, sorted((scores[letter] for letter in rarest), reverse=True), strict=True))
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


def _characters_or_bytes(alphabet: Sequence[str]) -> Backend:
    symbols = [*SPECIALS, *_FALLBACK, *alphabet]
    backend = Backend(models.BPE({symbol: i for i, symbol in enumerate(symbols)}, [], byte_fallback=True))
    backend.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    return backend


def _merges(codes: Iterable[str]) -> list[tuple[str, str]]:
    lines = [line.strip() for line in codes]
    if not lines or lines[0] != "#version: 0.2":
        raise DataError(f"the codes must begin with '#version: 0.2', as subword-nmt writes them; got {lines[:1]}")
    merges = []
    for number, line in enumerate(lines[1:], start=2):
        halves = line.split(" ")
        if len(halves) != 2:
            raise DataError(f"line {number} of the codes must hold two symbols and a blank between them; got {line!r}")
        merges.append((halves[0], halves[1]))
    return list(dict.fromkeys(merges))


def _merging(symbols: Sequence[str], merges: list[tuple[str, str]]) -> Backend:
    vocabulary = {symbol: i for i, symbol in enumerate(symbols)}
    unknown = UNK if UNK in vocabulary else None
    backend = Backend(models.BPE(vocabulary, merges, end_of_word_suffix=_WORD_END, unk_token=unknown))
    backend.pre_tokenizer = pre_tokenizers.Split(" ", "removed")
    backend.decoder = decoders.BPEDecoder(suffix=_WORD_END)
    return backend


def _with_specials(backend: Backend) -> Backend:
    backend.add_special_tokens(list(SPECIALS))
    backend.post_processor = processors.TemplateProcessing(
        single=f"{SOS} $0 {EOS}",
        special_tokens=[(name, backend.token_to_id(name)) for name in (SOS, EOS)],
    )
    return backend
