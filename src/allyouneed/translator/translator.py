"""`Translator`: texts to translations."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import Any, Self, cast, get_args

import torch

from ..bundle import Bundle
from ..config import DecodeConfig
from ..decode import Hypothesis
from ..device import parallel_map, pick_device
from ..errors import ConfigError, InputError
from ..inference import Compiled, Precision, make_engine, pick_precision
from ..settings import build_settings
from ..text.glossary import Glossary
from .alignment import Aligner, Unit
from .constraints import ConstraintBuilder
from .generation import GenerationRequest, TranslationGenerator
from .segments import Segment, Segmenter, batch_segments, encode_texts
from .span_search import search_for_spans
from .split_texts import SplitTexts
from .texts import checked_pairs, checked_texts
from .translation import Flag, Scored, Translation

WINDOW = 32  # batches of texts that are sorted by length among themselves


SearchSetting = bool | float | str | Sequence[str] | None
Terms = Glossary | Mapping[str, str | Iterable[str]]


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
        self._normalize = bundle.normalization  # of every text that comes in
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
        **decode: SearchSetting,
    ) -> Self:
        """A translator from a bundle's folder. Settings of `DecodeConfig` replace the bundle's own, as in `using`."""
        bundle = Bundle.load(Path(folder), device=pick_device(device))
        return cls(bundle, precision=precision, compiled=compiled).using(glossary=glossary, **decode)

    def using(self, *, glossary: Terms | None = None, **decode: SearchSetting) -> Self:
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
        self._constraints = None
        if self._glossary or self.decode.copy_spans:
            self._constraints = ConstraintBuilder(
                self.target_tokenizer, self._glossary.normalized(self._normalize), self.decode.copy_spans
            )
        longest = self.model.config.max_length
        self._segmenter = Segmenter(
            self.source_tokenizer,
            self._constraints,
            longest_source=min(longest, self.bundle.longest_source or longest),
            max_length=longest,
        )
        boundaries = self._constraints.boundaries if self._constraints else None
        self._generator = TranslationGenerator(self.model, self._engine, self.target_tokenizer, self.decode, boundaries)
        self._aligner = Aligner(self._generator, self.source_tokenizer)

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
        """The translation of each text, in their order; a blank text stays empty.

        The texts are read, and held in memory, a window of 32 batches at a time. Every translation
        begins with `prefix`; with `alternatives` it continues with each of this many most likely next tokens,
        and the best translation of each is an alternative of the others. `align` asks for alignments of "words"
        or "tokens". `on_progress` gets the number of texts that each batch finished. Refuses a character outside
        the vocabulary and a word longer than the model's `max_length`, before any text of its window
        is translated; the error's `line` says which text, the first being number `first_line`. With
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

    def split(
        self,
        texts: Sequence[str],
        *,
        prefix: str = "",
        first_line: int = 1,
        on_refused: Callable[[InputError], None] | None = None,
    ) -> SplitTexts:
        """The segments of some texts, for a caller that makes the batches: `translate_segments`, then `join`.

        Refuses what `translations` refuses.
        """
        normalized = [self._normalize(text) for text in texts]
        prefix_ids = self._encode_prefix(self._normalize(prefix))
        ready = {
            number: same for number, text in enumerate(normalized) if (same := self._without_decoding(text, prefix))
        }
        remaining = ["" if number in ready else text for number, text in enumerate(normalized)]
        try:
            segments = self._segmenter.split(remaining, prefix_ids, first_line)
        except InputError:
            if on_refused is None:
                raise
            segments = self._segmenter.split_accepted(remaining, prefix_ids, first_line, on_refused)
        return SplitTexts(texts, ready, segments)

    def translate_segments(
        self, segments: Sequence[Segment], *, alternatives: int = 0, align: Unit | None = None
    ) -> list[Translation | None]:
        """The translations of segments, of one text or of several, in one batch; None where there is none."""
        return self._translations(segments, *self._generate(segments, alternatives), align)

    def join(
        self,
        split: SplitTexts,
        translations: Sequence[Translation | None],
        *,
        first_line: int = 1,
        on_refused: Callable[[InputError], None] | None = None,
    ) -> list[Translation]:
        """The translation of each text, from those of all its segments. Refuses a segment without one (None)."""
        return split.join(translations, lambda segment: self._refusal(segment, first_line), on_refused)

    def stream(self, text: str) -> Iterator[str]:
        """The translation piece by piece as the model writes it: greedy, or by chance if `sample` is set.

        The pieces together are the translation. What is written cannot be taken back: a sentence that
        goes round in circles is not decoded again, and one that must say something (by a glossary or
        `keep`) comes as a whole once it is found. Unknown words are not said.
        """
        text = self._normalize(*checked_texts([text]))
        if self._without_decoding(text) is not None:
            yield from filter(None, [text.strip()])
            return
        for number, piece in enumerate(self._segmenter.split([text], [], 1)):
            if number:
                yield " "
            if piece.request.constraints:
                (hypotheses,), _ = self._generate([piece], 0)
                if not hypotheses:
                    raise self._refusal(piece, 1)
                yield self._translation(piece, hypotheses, ()).text
                continue
            ids, previous = [], ""
            for word in self._generator.stream(piece.request.source):
                ids.append(word)
                # The bytes of a letter may be spread over tokens; until it is whole it shows as U+FFFD.
                text_so_far = self.target_tokenizer.decode(ids).rstrip("\N{REPLACEMENT CHARACTER}")
                if len(text_so_far) > len(previous):
                    yield text_so_far[len(previous) :]
                    previous = text_so_far

    def score(self, pairs: Iterable[tuple[str, str]]) -> Iterator[Scored]:
        """Score given translations: the log-probability of every token of each target.

        It is that of a search. A word outside the vocabulary has minus infinity, as no search writes it,
        unless `replace_unknown` is set.
        """
        pairs = checked_pairs(pairs)
        first = 1
        while batch := list(islice(pairs, self.decode.batch_size)):
            sources = encode_texts(self.source_tokenizer, [self._normalize(source) for source, _ in batch], first)
            targets = encode_texts(self.target_tokenizer, [self._normalize(target) for _, target in batch], first)
            gains = self._generator.log_probabilities(sources, targets)
            for (source, target), ids, gained in zip(batch, targets, gains, strict=True):
                yield Scored(
                    source, target, tuple(self.target_tokenizer.pieces(ids[1:])), tuple(gained[: len(ids) - 1])
                )
            first += len(batch)

    def _window(
        self,
        texts: list[str],
        prefix: str,
        alternatives: int,
        align: Unit | None,
        first: int,
        on_progress: Callable[[int], None],
        on_refused: Callable[[InputError], None] | None,
    ) -> list[Translation]:
        split = self.split(texts, prefix=prefix, first_line=first, on_refused=on_refused)
        translations: dict[int, Translation | None] = {}

        def work(batch: list[int]) -> list[Translation | None]:
            return self.translate_segments([split.segments[i] for i in batch], alternatives=alternatives, align=align)

        batches = list(
            batch_segments(
                split.segments, batch_size=self.decode.batch_size, beam=self.decode.beam, alternatives=alternatives
            )
        )
        # What looks on from outside (alignments) is done batch after batch.
        sequential = self.decode.replace_unknown or align or self._generator.device.type != "cpu"
        with parallel_map(1 if sequential else min(torch.get_num_threads(), len(batches) or 1)) as map_batches:
            for batch, some in zip(batches, map_batches(work, batches), strict=True):
                translations.update(zip(batch, some, strict=True))
                on_progress(len(batch))
        in_order = [translations[i] for i in range(len(split.segments))]
        return self.join(split, in_order, first_line=first, on_refused=on_refused)

    def _encode_prefix(self, prefix: str) -> list[int]:
        try:
            ids = self.target_tokenizer.encode(prefix)[1:-1] if prefix else []
        except InputError as error:
            raise InputError(f"the prefix of every translation: {error}") from error
        if self.target_tokenizer.unk_id in ids:
            raise InputError(f"the vocabulary cannot spell all of the prefix {prefix!r}; leave out what it cannot")
        if len(ids) >= self._generator.limit:
            raise InputError(
                f"the prefix has {len(ids)} tokens, but a translation has at most {self._generator.limit}, "
                "its end sign included; give a shorter one"
            )
        return ids

    def _generate(
        self, segments: Sequence[Segment], alternatives: int
    ) -> tuple[list[list[Hypothesis]], list[tuple[Flag, ...]]]:
        """The hypotheses of each segment, the best first, and its flags; none if its constraints cannot be met."""
        requests = [[piece.request] for piece in segments]
        if alternatives:
            requests = self._continue_prefixes([piece.request for piece in segments], alternatives)
        answers = iter(zip(*self._generator.generate([request for some in requests for request in some]), strict=True))
        hypotheses: list[list[Hypothesis]] = []
        flags: list[tuple[Flag, ...]] = []
        for piece, some in zip(segments, requests, strict=True):
            lists, again = zip(*islice(answers, len(some)), strict=True)
            checked = [self._search_for_spans(piece, *one) for one in zip(some, lists, strict=True)]
            hypotheses.append([best for best, *_ in filter(None, checked)] if alternatives else checked[0])
            flags.append(("repeats",) if again[0] else ())
        return hypotheses, flags

    def _search_for_spans(
        self, piece: Segment, request: GenerationRequest, hypotheses: list[Hypothesis]
    ) -> list[Hypothesis]:
        if self._constraints is None:
            return hypotheses
        prefix = piece.request.prefix  # without the next token that an alternative goes on with
        return search_for_spans(self._generator, self._constraints, piece.text, request, hypotheses, prefix=prefix)

    def _continue_prefixes(self, requests: Sequence[GenerationRequest], count: int) -> list[list[GenerationRequest]]:
        """Each request once for every prefix that continues its own."""
        continued: list[list[GenerationRequest]] = [[] for _ in requests]
        for prefix in {tuple(one.prefix) for one in requests}:  # only the first piece of a text has one
            which = [i for i, one in enumerate(requests) if tuple(one.prefix) == prefix]
            follow = self._generator.next_tokens([requests[i].source for i in which], list(prefix), count)
            for i, words in zip(which, follow, strict=True):
                continued[i] = [requests[i]._replace(prefix=[*prefix, word]) for word in words]
        return continued

    def _translations(
        self,
        segments: Sequence[Segment],
        hypotheses: Sequence[list[Hypothesis]],
        flags: Sequence[tuple[Flag, ...]],
        align: Unit | None,
    ) -> list[Translation | None]:
        """The translation of each segment; None where there is no hypothesis."""
        some = [i for i, hypotheses in enumerate(hypotheses) if hypotheses]
        sources, best = [segments[i].request.source for i in some], [hypotheses[i][0] for i in some]
        links = self._aligner.align(sources, best, align) if align and some else [None] * len(some)
        translations: list[Translation | None] = [None] * len(segments)
        for i, alignment in zip(some, links, strict=True):
            translations[i] = replace(self._translation(segments[i], hypotheses[i], flags[i]), alignment=alignment)
        return translations

    def _translation(self, segment: Segment, hypotheses: list[Hypothesis], flags: tuple[Flag, ...]) -> Translation:
        texts = self.target_tokenizer.decode_all([hypothesis.ids for hypothesis in hypotheses])
        best, *others = (
            self._one_translation(segment, text, hypothesis, flags)
            for text, hypothesis in zip(texts, hypotheses, strict=True)
        )
        return replace(best, alternatives=tuple(others))

    def _one_translation(
        self, segment: Segment, text: str, hypothesis: Hypothesis, flags: tuple[Flag, ...]
    ) -> Translation:
        text = self._aligner.replace_unknown(text, segment.text, segment.request.source, hypothesis)
        if self._constraints and self._constraints.spans_differ(segment.text, text, prefix=segment.request.prefix):
            flags = (*flags, "wrong_spans")
        if not hypothesis.finished:
            flags = (*flags, "unfinished")
        if len(segment.request.source) > self._segmenter.longest_source:
            flags = (*flags, "long")
        tokens = len(hypothesis.ids) + hypothesis.finished
        return Translation(segment.text, text, hypothesis.log_probability, tokens, flags)

    def _refusal(self, segment: Segment, first: int) -> InputError:
        return InputError(
            f"no translation of {segment.text!r} says all it must within {self._generator.limit} tokens",
            line=first + segment.number,
        )

    def _without_decoding(self, text: str, prefix: str = "") -> Translation | None:
        if not text or text.isspace():
            return Translation(text, "")
        if not prefix and self.decode.copy_untranslatable and self.bundle.copy_statistics.is_copied(text):
            return Translation(text, text.strip(), flags=("copied",))
        return None


def _restored(
    kind: type[Translator],
    bundle: Bundle,
    decode: DecodeConfig,
    precision: Precision,
    compiled: Compiled,
    terms: Glossary,
) -> Translator:
    return kind(bundle, decode=decode, precision=precision, compiled=compiled).using(glossary=terms)
