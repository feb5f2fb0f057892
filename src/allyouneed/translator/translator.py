"""Text → text: the product."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Self, cast, get_args

import torch

from ..bundle import Bundle
from ..config import DecodeConfig
from ..decode import Hypothesis, beam_width
from ..device import parallel_map, pick_device
from ..errors import ConfigError, InputError
from ..inference import Compiled, Precision, make_engine, pick_precision
from ..settings import build_settings
from ..text.glossary import Glossary
from ..text.sentences import cut
from ..text.tokenizer import Tokenizer
from .alignment import Aligner, Unit
from .constraints import ConstraintBuilder
from .generation import GenerationRequest, TranslationGenerator
from .span_search import search_for_spans
from .texts import checked_pairs, checked_texts
from .translation import Flag, Scored, Translation, join_translations

WINDOW = 32  # batches of texts that are sorted by length among themselves


Setting = bool | float | str | Sequence[str] | None
Terms = Glossary | Mapping[str, str | Iterable[str]]


class _Segment(NamedTuple):
    """What is translated at once: text number `place` of a window, or a part of it."""

    number: int
    text: str
    request: GenerationRequest


class Translator:
    """A bundle at work: `Translator.load("runs/dates")("1845-01-05")` gives `January 5, 1845`."""

    def __init__(
        self,
        bundle: Bundle,
        *,
        decode: DecodeConfig | None = None,
        precision: str = "float32",
        compiled: Compiled = False,
    ) -> None:
        """`precision` is that of the weights: "float32", "int8", or "auto" (see `pick_precision`).

        `compiled` kernels translate faster and load more slowly; with "auto" PyTorch answers until they are loaded (see
        `make_engine`).
        """
        self.bundle = bundle
        self.model, self.source_tokenizer, self.target_tokenizer = (
            bundle.model,
            bundle.source_tokenizer,
            bundle.target_tokenizer,
        )
        self._form = bundle.normalization  # of every text that comes in
        self.decode = decode or bundle.decode
        chosen = pick_precision(self.model) if precision == "auto" else precision
        self._compiled = compiled
        self._engine = make_engine(self.model, precision=chosen, compiled=compiled)
        self._glossary = Glossary({})
        self._prepare()

    @property
    def precision(self) -> Precision:
        """That of the weights at work."""
        return self._engine.precision

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        device: str = "auto",
        precision: str = "auto",
        compiled: Compiled = "auto",
        glossary: Terms | None = None,
        **decode: Setting,
    ) -> Self:
        """A translator from a bundle's folder. Settings of `DecodeConfig` replace the bundle's own, as in `using`."""
        bundle = Bundle.load(Path(folder), device=pick_device(device))
        return cls(bundle, precision=precision, compiled=compiled).using(glossary=glossary, **decode)

    def using(self, *, glossary: Terms | None = None, **decode: Setting) -> Self:
        """The same model, searched otherwise: `translator.using(beam=8, nbest=3)`. None leaves a setting as it is.

        `glossary` says what terms must become, `{"term": "translation"}`; with several translations
        any one of them will do.
        """
        changed = {name: value for name, value in decode.items() if value is not None}
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)  # the weights at work are shared
        other.decode = build_settings(
            DecodeConfig, {**asdict(self.decode), **changed}, where="the settings of the search,"
        )
        if glossary is not None:
            other._glossary = glossary if isinstance(glossary, Glossary) else Glossary(glossary)
        other._prepare()
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        """What it is made of, for a pickle; the process that reads it prepares the weights anew."""
        return _restored, (type(self), self.bundle, self.decode, self.precision, self._compiled, self._glossary)

    def _prepare(self) -> None:
        self._demands = None
        if self._glossary or self.decode.copy_spans:
            self._demands = ConstraintBuilder(
                self.target_tokenizer, self._glossary.normalized(self._form), self.decode.copy_spans
            )
        seams = self._demands.boundaries if self._demands else None
        self._finder = TranslationGenerator(self.model, self._engine, self.target_tokenizer, self.decode, seams)
        self._aligner = Aligner(self._finder, self.source_tokenizer)

    def __call__(self, text: str) -> str:
        """The translation of one text; an empty one stays empty."""
        return self.translate([text])[0]

    def translate(self, texts: Sequence[str], *, on_progress: Callable[[int], None] = lambda _: None) -> list[str]:
        """The translations of many texts, in their order; `translations` says more of each."""
        return [translation.text for translation in self.translations(texts, on_progress=on_progress)]

    def translations(
        self,
        texts: Iterable[str],
        *,
        prefix: str = "",
        alternatives: int = 0,
        align: str | None = None,
        first_line: int = 1,
        on_progress: Callable[[int], None] = lambda _: None,
        on_refused: Callable[[InputError], None] | None = None,
    ) -> Iterator[Translation]:
        """What becomes of each text, in their order; a blank one stays empty.

        The texts are read, and held in memory, a window of 32 batches at a time. Every translation
        begins with `prefix`; with `branches` it goes on with each of so many likeliest next tokens,
        and the best of each are one another's alternatives. `align` asks for alignments of "words"
        or "tokens". `done` is told how many texts each batch finished. Refuses a character outside
        the vocabulary and a word longer than the model's `max_length`, before any text of its window
        is translated; the error's `line` says which text, the first being number `first`. With
        `on_refused` such a text is no error: it is called with the error, and the translation is empty.
        """
        if alternatives < 0:
            raise ConfigError(f"alternatives must be 0 or more; got {alternatives}")
        if align not in (None, *get_args(Unit)):
            raise ConfigError(f'align must be "words" or "tokens"; got {align!r}')
        texts = checked_texts(texts, first=first_line)
        while window := list(islice(texts, WINDOW * self.decode.batch_size)):
            yield from self._window(
                window, prefix, alternatives, cast(Unit | None, align), first_line, on_progress, on_refused
            )
            first_line += len(window)

    def alternatives(self, text: str, *, after: str = "", count: int = 5) -> list[Translation]:
        """Translations that begin with `after` and then go on with each of the `count` likeliest next tokens."""
        (best,) = self.translations([text], prefix=after, alternatives=count)
        return [replace(best, alternatives=()), *best.alternatives]

    def stream(self, text: str) -> Iterator[str]:
        """The translation piece by piece as the model writes it: greedy, or by chance if `sample` is set.

        The pieces together are the translation. What is written cannot be taken back: a sentence that
        goes round in circles is not decoded again, and one that must say something (by a glossary or
        `keep`) comes as a whole once it is found. Unknown words are not said.
        """
        text = self._form(*checked_texts([text]))
        if self._nothing_to_do(text) is not None:
            yield from filter(None, [text.strip()])
            return
        for number, piece in enumerate(self._pieces(text, self._encode([text], 1)[0], [], 0, 1)):
            if number:
                yield " "
            if piece.request.constraints:
                (found,), _ = self._found([piece], 0)
                if not found:
                    raise self._refusal(piece, 1)
                yield self._translation(piece, found, ()).text
                continue
            written, shown = [], ""
            for word in self._finder.stream(piece.request.source):
                written.append(word)
                # The bytes of a letter may be spread over tokens; until it is whole it shows as U+FFFD.
                text_so_far = self.target_tokenizer.decode(written).rstrip("\N{REPLACEMENT CHARACTER}")
                if len(text_so_far) > len(shown):
                    yield text_so_far[len(shown) :]
                    shown = text_so_far

    def score(self, pairs: Iterable[tuple[str, str]]) -> Iterator[Scored]:
        """What the model thinks of given translations: the log-probability of every token of each target.

        It is that of a search. A word outside the vocabulary has minus infinity, as no search writes it,
        unless `replace_unknown` is set.
        """
        pairs = checked_pairs(pairs)
        first = 1
        while batch := list(islice(pairs, self.decode.batch_size)):
            sources = self._encode([self._form(source) for source, _ in batch], first)
            targets = self._encode([self._form(target) for _, target in batch], first, self.target_tokenizer)
            gains = self._finder.log_probabilities(sources, targets)
            for (source, target), ids, gained in zip(batch, targets, gains, strict=True):
                yield Scored(
                    source, target, tuple(self.target_tokenizer.pieces(ids[1:])), tuple(gained[: len(ids) - 1])
                )
            first += len(batch)

    def _window(
        self,
        texts: list[str],
        prefix: str,
        branches: int,
        align: Unit | None,
        first: int,
        done: Callable[[int], None],
        on_refused: Callable[[InputError], None] | None,
    ) -> list[Translation]:
        originals, texts = texts, [self._form(text) for text in texts]
        begun = self._begun(self._form(prefix))
        ready = {place: same for place, text in enumerate(texts) if (same := self._nothing_to_do(text, prefix))}
        to_do = ["" if place in ready else text for place, text in enumerate(texts)]
        try:
            pieces = self._all_pieces(to_do, begun, first)
        except InputError:
            if on_refused is None:
                raise
            pieces = self._pieces_of_the_rest(to_do, begun, first, on_refused)
        parts: dict[int, Translation | None] = {}

        def work(batch: list[int]) -> list[Translation | None]:
            some = [pieces[i] for i in batch]
            return self._translations(some, *self._found(some, branches), align)

        batches = list(self._batches(pieces, branches))
        # What looks on from outside (alignments) is done batch after batch.
        alone = self.decode.replace_unknown or align or self._finder.device.type != "cpu"
        with parallel_map(1 if alone else min(torch.get_num_threads(), len(batches) or 1)) as each:
            for batch, translations in zip(batches, each(work, batches), strict=True):
                parts.update(zip(batch, translations, strict=True))
                done(len(batch))
        of_text: list[list[Translation]] = [[] for _ in texts]
        refused: dict[int, InputError] = {}
        for i, piece in enumerate(pieces):
            if (part := parts[i]) is not None:
                of_text[piece.number].append(part)
            else:
                refused.setdefault(piece.number, self._refusal(piece, first))
        for place, error in refused.items():
            if on_refused is None:
                raise error
            on_refused(error)
            of_text[place] = []
        return [
            replace(ready[place], source=original) if place in ready else join_translations(original, of_text[place])
            for place, original in enumerate(originals)
        ]

    def _begun(self, prefix: str) -> list[int]:
        try:
            ids = self.target_tokenizer.encode(prefix)[1:-1] if prefix else []
        except InputError as error:
            raise InputError(f"the prefix of every translation: {error}") from error
        if self.target_tokenizer.unk_id in ids:
            raise InputError(f"the vocabulary cannot spell all of the prefix {prefix!r}; leave out what it cannot")
        if len(ids) >= self._finder.limit:
            raise InputError(
                f"the prefix has {len(ids)} tokens, but a translation has at most {self._finder.limit}, "
                "its end sign included; give a shorter one"
            )
        return ids

    def _all_pieces(self, texts: Sequence[str], begun: list[int], first: int) -> list[_Segment]:
        """The pieces of the texts of a window, of which an empty one has none."""
        return [
            piece
            for place, (text, ids) in enumerate(zip(texts, self._encode(texts, first), strict=True))
            if text
            for piece in self._pieces(text, ids, begun, place, first + place)
        ]

    def _pieces_of_the_rest(
        self, texts: Sequence[str], begun: list[int], first: int, on_refused: Callable[[InputError], None]
    ) -> list[_Segment]:
        """Those of the texts that are not refused."""
        pieces: list[_Segment] = []
        for place, text in enumerate(texts):
            try:
                pieces += [piece._replace(number=place) for piece in self._all_pieces([text], begun, first + place)]
            except InputError as error:
                on_refused(error)
        return pieces

    def _batches(self, pieces: Sequence[_Segment], branches: int) -> Iterator[list[int]]:
        """Sentences of similar length, those with demands among themselves: they have wider beams."""
        room = self.decode.batch_size * self.decode.beam
        for bound in (False, True):
            batch: list[int] = []
            taken = 0
            for i in sorted(range(len(pieces)), key=lambda i: len(pieces[i].request.source)):
                demands = pieces[i].request.constraints
                if bool(demands) == bound:
                    width = beam_width(self.decode.beam, demands) * max(1, branches)
                    if batch and taken + width > room:
                        yield batch
                        batch, taken = [], 0
                    batch.append(i)
                    taken += width
            if batch:
                yield batch

    def _found(
        self, pieces: Sequence[_Segment], branches: int
    ) -> tuple[list[list[Hypothesis]], list[tuple[Flag, ...]]]:
        """What is found for each piece, the best first, and flags; nothing, if none says all that it must."""
        each = [[piece.request] for piece in pieces]
        if branches:
            each = self._branched([piece.request for piece in pieces], branches)
        answers = iter(zip(*self._finder.generate([wanted for some in each for wanted in some]), strict=True))
        found: list[list[Hypothesis]] = []
        flags: list[tuple[Flag, ...]] = []
        for piece, some in zip(pieces, each, strict=True):
            lists, again = zip(*islice(answers, len(some)), strict=True)
            best = [hypotheses[0] for hypotheses in lists if hypotheses] if branches else lists[0]
            if best and self._demands and not branches:
                best = search_for_spans(self._finder, self._demands, piece.text, piece.request, best)
            found.append(best)
            flags.append(("repeats",) if again[0] else ())
        return found, flags

    def _branched(self, wanted: Sequence[GenerationRequest], branches: int) -> list[list[GenerationRequest]]:
        """Each of them with every prefix that goes on after its own."""
        each: list[list[GenerationRequest]] = [[] for _ in wanted]
        for begun in {tuple(one.prefix) for one in wanted}:  # only the first piece of a text has one
            which = [i for i, one in enumerate(wanted) if tuple(one.prefix) == begun]
            follow = self._finder.next_tokens([wanted[i].source for i in which], list(begun), branches)
            for i, words in zip(which, follow, strict=True):
                each[i] = [wanted[i]._replace(prefix=[*begun, word]) for word in words]
        return each

    def _translations(
        self,
        pieces: Sequence[_Segment],
        found: Sequence[list[Hypothesis]],
        flags: Sequence[tuple[Flag, ...]],
        align: Unit | None,
    ) -> list[Translation | None]:
        """The translation of each piece; None where nothing was found."""
        some = [i for i, hypotheses in enumerate(found) if hypotheses]
        sources, best = [pieces[i].request.source for i in some], [found[i][0] for i in some]
        links = self._aligner.align(sources, best, align) if align and some else [None] * len(some)
        translations: list[Translation | None] = [None] * len(pieces)
        for i, alignment in zip(some, links, strict=True):
            translations[i] = replace(self._translation(pieces[i], found[i], flags[i]), alignment=alignment)
        return translations

    def _translation(self, piece: _Segment, found: list[Hypothesis], flags: tuple[Flag, ...]) -> Translation:
        texts = self.target_tokenizer.decode_all([hypothesis.ids for hypothesis in found])
        best, *others = (
            self._one_translation(piece, text, hypothesis, flags) for text, hypothesis in zip(texts, found, strict=True)
        )
        return replace(best, alternatives=tuple(others))

    def _one_translation(
        self, piece: _Segment, text: str, hypothesis: Hypothesis, flags: tuple[Flag, ...]
    ) -> Translation:
        text = self._aligner.replace_unknown(text, piece.text, piece.request.source, hypothesis)
        if self._demands and self._demands.spans_differ(piece.text, text, prefix=piece.request.prefix):
            flags = (*flags, "wrong_spans")
        if not hypothesis.finished:
            flags = (*flags, "unfinished")
        if len(piece.request.source) > self._longest_source:
            flags = (*flags, "long")
        tokens = len(hypothesis.ids) + hypothesis.finished
        return Translation(piece.text, text, hypothesis.log_probability, tokens, flags)

    def _pieces(self, text: str, ids: list[int], prefix: list[int], place: int, line: int) -> list[_Segment]:
        """A text and its ids, in pieces if it is longer than the model reads or has learned to read."""
        limit = self.model.config.max_length
        texts, encoded = [text], [ids]
        if len(ids) > self._longest_source:
            whole = self._demands.places(text) if self._demands else []
            texts = cut(
                text, lambda piece: len(self.source_tokenizer.encode(piece)) <= self._longest_source, whole=whole
            )
            encoded = self.source_tokenizer.encode_all(texts)
        for piece, piece_ids in zip(texts, encoded, strict=True):
            if len(piece_ids) > limit:
                raise InputError(
                    f"{piece[:30]!r}… has {len(piece_ids)} tokens and no place to cut it; "
                    f"this model reads at most {limit}",
                    line=line,
                )
        try:
            demands = [self._demands.build(piece) if self._demands else [] for piece in texts]
        except InputError as error:
            raise InputError(str(error), line=line) from error
        return [
            _Segment(place, piece, GenerationRequest(piece_ids, [] if number else prefix, phrases))
            for number, (piece, piece_ids, phrases) in enumerate(zip(texts, encoded, demands, strict=True))
        ]

    def _refusal(self, piece: _Segment, first: int) -> InputError:
        return InputError(
            f"no translation of {piece.text!r} says all it must within {self._finder.limit} tokens",
            line=first + piece.number,
        )

    @property
    def _longest_source(self) -> int:
        """In tokens: as far as the model has learned to read."""
        limit = self.model.config.max_length
        return min(limit, self.bundle.longest_source or limit)

    def _nothing_to_do(self, text: str, prefix: str = "") -> Translation | None:
        if not text or text.isspace():
            return Translation(text, "")
        if not prefix and self.decode.copy_untranslatable and self.bundle.copy_statistics.is_copied(text):
            return Translation(text, text.strip(), flags=("copied",))
        return None

    def _encode(self, texts: Sequence[str], first: int, tokenizer: Tokenizer | None = None) -> list[list[int]]:
        try:
            return (tokenizer or self.source_tokenizer).encode_all(texts)
        except InputError as error:
            raise InputError(str(error), line=error.line and error.line + first - 1) from error


def _restored(
    kind: type[Translator],
    bundle: Bundle,
    decode: DecodeConfig,
    precision: Precision,
    compiled: Compiled,
    terms: Glossary,
) -> Translator:
    return kind(bundle, decode=decode, precision=precision, compiled=compiled).using(glossary=terms)
