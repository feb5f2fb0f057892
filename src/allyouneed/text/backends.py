"""Vocabularies built with the tokenizers library: characters, symbols, words, byte pairs, unigrams, stored merges.

`text/tokenizer.py` wraps them. A backend knows its special tokens and puts `<sos>` and `<eos>` around every sentence.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers import Tokenizer as Backend

from ..errors import ConfigError, DataError
from .tokenizer_format import SPACED, WORDS, tag_pattern

PAD, SOS, EOS = SPECIALS = ("<pad>", "<sos>", "<eos>")
UNK = "<unk>"
BYTE_TOKENS = [f"<0x{byte:02X}>" for byte in range(256)]  # for bytes of characters that have no token

_WORD_END = "</w>"
_STEP = 0.0001  # between the scores of letters that the library could not estimate
_OFTEN = 5  # occurrences that make a word a candidate for a token
_DECIMALS = 5  # of a score; the library reads back this many exactly
_BYTES = pre_tokenizers.ByteLevel.alphabet()


def character_backend(
    alphabet: Iterable[str], *, tags: Sequence[str] = (), unknown: bool = False, decomposed: bool = False
) -> Backend:
    """Give an id to each character and each tag. With `unknown`, all other texts share one more id, `<unk>`.

    With `decomposed`, texts are first put into Unicode's NFD, which splits a Hangul syllable into its letters, and é
    into e and an accent; `alphabet` and `tags` then consist of such parts.

    A text is split into tags, wherever they occur, and single characters. A tag begins with the sign that separates it
    from the text before it, which words do not contain.
    """
    symbols = list(dict.fromkeys([*alphabet, *tags]))
    ids = _ids([*symbols, SOS, EOS, PAD, *([UNK] if unknown else [])])
    backend = Backend(models.WordLevel(ids, unk_token=UNK) if unknown else models.WordLevel(ids))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(tag_pattern(tags)), "isolated")
    if decomposed:
        backend.normalizer = normalizers.NFD()
    backend.decoder = decoders.Fuse()
    return _with_specials(backend)


def symbol_backend(texts: Iterable[str]) -> Backend:
    """Give an id to each string between spaces in `texts`. All other strings are `<unk>`, the last id."""
    return _whole_words(texts, vocab_size=2**24, pattern=SPACED)


def bpe_backend(texts: Iterable[str], *, vocab_size: int) -> Backend:
    """Merge the most frequent pairs of bytes in `texts` until there are `vocab_size` ids (Sennrich et al., 2016).

    Ids 0, 1 and 2 are `<pad>`, `<sos>` and `<eos>`. All 256 bytes have ids, so every text can be encoded. No merge
    crosses the boundary of a word, a digit or a run of punctuation. Refuses a size that is too small for the bytes.
    """
    smallest = len(_BYTES) + len(SPECIALS)
    if vocab_size < smallest:
        raise ConfigError(
            f"vocab_size must be at least {smallest} (every byte, {', '.join(SPECIALS)}); got {vocab_size}"
        )
    backend = _of_words(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [backend.pre_tokenizer, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    backend.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=list(SPECIALS), initial_alphabet=_BYTES, show_progress=False
    )
    backend.train_from_iterator(texts, trainer)
    return _with_specials(backend)


def word_backend(texts: Iterable[str], *, vocab_size: int) -> Backend:
    """Give an id to the most frequent words, digits and runs of punctuation. All others are `<unk>`, the last id."""
    return _whole_words(texts, vocab_size=vocab_size, pattern=WORDS)


def _whole_words(texts: Iterable[str], *, vocab_size: int, pattern: str) -> Backend:
    backend = _of_words(models.WordLevel(unk_token=UNK), pattern)
    trainer = trainers.WordLevelTrainer(
        vocab_size=max(1, vocab_size - len(SPECIALS) - 1), special_tokens=[], show_progress=False
    )
    backend.train_from_iterator(texts, trainer)
    words = sorted(backend.get_vocab().items(), key=lambda item: item[1])
    symbols = [*SPECIALS, *(word for word, _ in words if word not in (*SPECIALS, UNK)), UNK]
    backend.model = models.WordLevel(_ids(symbols), unk_token=UNK)
    backend.decoder = decoders.Sequence([decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return _with_specials(backend)


def unigram_backend(texts: Iterable[str], *, vocab_size: int) -> Backend:
    """Learn the subwords that make `texts` most probable (Kudo, 2018). Other characters are encoded as bytes.

    Refuses a size that is too small for the bytes and for every character of the texts.
    """
    smallest = len(BYTE_TOKENS) + len(SPECIALS) + 1
    if vocab_size <= smallest:
        raise ConfigError(
            f"vocab_size must be more than {smallest} (every byte, {', '.join(SPECIALS)}, {UNK}); got {vocab_size}"
        )
    backend = _of_words(models.Unigram())
    trainer = trainers.UnigramTrainer(
        vocab_size=vocab_size - smallest, special_tokens=[], unk_token=None, show_progress=False
    )
    try:
        backend.train_from_iterator(_with_doubled_words(texts), trainer)
    except Exception as error:  # the library raises bare Exceptions
        if "all chars" not in str(error):
            raise
        raise ConfigError(
            f"a unigram vocabulary holds {smallest} bytes and special tokens and every character of the texts; "
            f"vocab_size={vocab_size} is too small for these. Raise data.vocab_size, or set "
            'data.vocabulary="bpe", which encodes rare characters as bytes'
        ) from error
    subwords = _reproducible([(subword, score) for subword, score in json.loads(backend.to_str())["model"]["vocab"]])
    lowest = min((score for _, score in subwords), default=0.0)
    # No subword crosses the boundary of a word, so text is never encoded as a special token or as a byte's name.
    named = [(name, 0.0) for name in SPECIALS] + [(name, round(lowest - 10, _DECIMALS)) for name in BYTE_TOKENS]
    symbols = [*named, *subwords, (UNK, round(lowest - 20, _DECIMALS))]
    backend.model = models.Unigram(symbols, unk_id=len(symbols) - 1, byte_fallback=True)
    backend.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return _with_specials(backend)


def _with_doubled_words(texts: Iterable[str]) -> Iterator[str]:
    """Yield the texts, then each frequent word twice in a row without a space in between.

    The library only considers strings that occur at least twice in its list of different words, however frequent those
    words are. Without the doubled word, a frequent word that is not part of another would never become a token.
    """
    splitter = pre_tokenizers.Split(Regex(WORDS), "isolated")
    counts = Counter[str]()
    for text in texts:
        counts.update(word for word, _ in splitter.pre_tokenize_str(" " + text))
        yield text
    yield from (2 * word.strip() for word, count in counts.items() if count >= _OFTEN)


def codes_backend(codes: Iterable[str], texts: Iterable[str], *, all_symbols: bool) -> Backend:
    """Apply the merges of `codes` (subword-nmt's format, version 0.2) to text whose words are separated by spaces.

    The ids are `<pad>`, `<sos>` and `<eos>`, then the symbols in the segmented `texts`, the most frequent first. With
    `all_symbols`, every other symbol that the merges can make follows. The last id is `<unk>`. Decoding joins words
    with single spaces.
    """
    merges = _parse_merges(codes)
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
    # The library needs an id for both halves of every merge. Halves that occur in no text come after <unk>.
    rest = [symbol for symbol in symbols if symbol not in used]
    known, unknown = (seen + rest, []) if all_symbols else (seen, rest)
    return _with_specials(_merging([*SPECIALS, *known, UNK, *unknown], merges))


def _ids(symbols: Iterable[str]) -> dict[str, int]:
    return {symbol: i for i, symbol in enumerate(symbols)}


def _of_words(model: models.Model, pattern: str = WORDS) -> Backend:
    """Make a backend whose tokens stay within the matches of `pattern`: words, digits and runs of punctuation."""
    backend = Backend(model)
    backend.normalizer = normalizers.Prepend(" ")  # gives a word the same token at the start of a text
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), "isolated")
    return backend


def _reproducible(subwords: list[tuple[str, float]]) -> list[tuple[str, float]]:
    """Round subwords' log-probabilities, so that they are the same after every training, saving and loading.

    The library sums in an order that differs between processes. This changes the last decimals, the order of equal
    scores, and the lowest scores, those of the rarest letters, which are `_STEP` apart.
    """
    letters = sorted(subword for subword, _ in subwords if len(subword) == 1)
    below = min((score for _, score in subwords), default=0.0) + _STEP * len(letters)
    scores = {subword: round(score, _DECIMALS) for subword, score in subwords}
    rarest = [letter for letter in letters if scores[letter] < below]
    scores.update(zip(rarest, sorted((scores[letter] for letter in rarest), reverse=True), strict=True))
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


def _parse_merges(codes: Iterable[str]) -> list[tuple[str, str]]:
    lines = [line.strip() for line in codes]
    if not lines or lines[0] != "#version: 0.2":
        raise DataError(f"the codes must begin with '#version: 0.2', as subword-nmt writes them; got {lines[:1]}")
    merges = []
    for number, line in enumerate(lines[1:], start=2):
        halves = line.split(" ")
        if len(halves) != 2:
            raise DataError(f"line {number} of the codes must be two symbols with a space between them; got {line!r}")
        merges.append((halves[0], halves[1]))
    return list(dict.fromkeys(merges))


def _merging(symbols: Sequence[str], merges: list[tuple[str, str]]) -> Backend:
    ids = _ids(symbols)
    unknown = UNK if UNK in ids else None
    backend = Backend(models.BPE(ids, merges, end_of_word_suffix=_WORD_END, unk_token=unknown))
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
