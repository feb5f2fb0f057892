"""`Translator`: translate texts with one or more bundles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast, get_args

from ..bundle import Bundle, ModelBuilder, folders_of_models, require_one_vocabulary, warn_of_another_definition
from ..config import DecodeConfig
from ..config.settings import require_whole
from ..decode import never_cancelled
from ..errors import ConfigError, InputError
from ..machine.device import may_have_gpu, pick_device
from ..text.glossary import Glossary
from ..text.letter_case import to_capitals
from ..text.spans import VALUES, find_spans
from .alignment import Aligner, Unit
from .engine import Engine, Precision, make_engine
from .generation import TranslationGenerator
from .placeholders import KINDS as PLACEHOLDERS
from .segment_translator import SegmentTranslator
from .segments import Segment, encode_texts
from .split_texts import SplitTexts, split_texts
from .text_splitter import SplitSentences, Terms, TextSplitter, as_glossary
from .texts import checked_pairs, checked_prefixes, checked_texts
from .translation import Scored, Translation
from .unread_bundle import UnreadBundle
from .weight_versions import WeightVersions

if TYPE_CHECKING:
    from ..nn import Transformer

WINDOW = 32  # batches of texts that are sorted by length together


SearchSetting = bool | float | str | Sequence[str] | None


class Translator:
    """A bundle ready to translate: `Translator.load("runs/dates")("1845-01-05")` gives `January 5, 1845`.

    Several bundles with the same vocabulary form an ensemble: `Translator.load("runs/a", "runs/b")`. The probability of
    a token is then the mean over the models. The first bundle provides everything else: search settings, languages,
    normalization of texts, and the kinds of spans to copy.

    Several threads may use one translator, and the translators that `using` makes of it, at the same time. A translator
    keeps the weights that the model had when the translator was made, and refuses to translate once the model has
    changed: make another one after more training.
    """

    def __init__(
        self,
        bundle: Bundle,
        *others: Bundle,
        decode: DecodeConfig | None = None,
        precision: str = "auto",
    ) -> None:
        """Prepare the engine. `precision` is "float32", "int8", "bfloat16" or "auto"; see `make_engine`.

        Refuses `others` with a different vocabulary or different languages.
        """
        self.bundle = bundle
        self.bundles = (bundle, *others)
        for one in self.bundles:
            if not isinstance(one, Bundle):
                raise ConfigError(
                    f'a translator is made of bundles, or of a folder by Translator.load("runs/mine"); got {one!r:.60}'
                )
        require_one_vocabulary(self.bundles, [f"model {number + 1}" for number in range(len(self.bundles))])
        self.source_tokenizer = bundle.source_tokenizer
        self.target_tokenizer = bundle.target_tokenizer
        self.decode = decode or bundle.decode
        warn_of_another_definition(self.bundles)
        self.engine: Engine = make_engine(self.bundles, precision)
        # the model of an unread bundle cannot be trained further
        read = [one for one in self.bundles if not isinstance(one, UnreadBundle)]
        self._weight_versions = [WeightVersions(one.model) for one in read]
        self._glossary = Glossary({})
        self._prepare()

    def __repr__(self) -> str:
        """Show the bundles, the precision and the beam."""
        return f"Translator({', '.join(map(repr, self.bundles))}, precision={self.precision}, beam={self.decode.beam})"

    @property
    def languages(self) -> tuple[str, str]:
        """The source and target languages as BCP 47 tags; empty if the bundle does not name them."""
        return self.bundle.languages

    @property
    def splits_sentences(self) -> bool:
        """True if texts are translated sentence by sentence.

        False for a model of strings, such as dates: a model with a vocabulary of characters and no languages.
        """
        return self.splits_sentences_of(self.bundle)

    @staticmethod
    def splits_sentences_of(bundle: Bundle) -> bool:
        """Return `splits_sentences` for the model of a bundle."""
        return all(bundle.languages) or not bundle.source_tokenizer.is_of_characters

    @classmethod
    def known_signs_of(cls, bundle: Bundle) -> str:
        """Return the signs that occur in ordinary texts for a bundle's model, or none if they are unknown."""
        language = bundle.languages[0] if cls.splits_sentences_of(bundle) else None
        return bundle.copy_statistics.known_signs(language)

    @classmethod
    def checks_codes_of(cls, bundle: Bundle) -> bool:
        """Return True if translations that lack a code or a number should be flagged.

        False for a model of strings, and for a model whose training pairs change codes (1,25 becomes 125-ZN).
        """
        return cls.splits_sentences_of(bundle) and bundle.copy_statistics.is_copied_inside(VALUES)

    @property
    def checks_codes(self) -> bool:
        """True if translations that lack a code or a number are flagged (see `checks_codes_of`)."""
        return self.checks_codes_of(self.bundle)

    def language_tag(self, text: str) -> str:
        """Return the tag of the target language at the start of a text, such as `>>ita<<`, or "" if there is none."""
        return self.source_tokenizer.language_tag(text)

    @property
    def precision(self) -> Precision:
        """The precision of the engine's weights."""
        return self.engine.precision

    @property
    def model(self) -> Transformer:
        """The model of the first bundle."""
        return self.bundle.model

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *others: str | Path,
        device: str = "auto",
        precision: str = "auto",
        glossary: Terms | None = None,
        build_model: ModelBuilder | None = None,
        **decode: SearchSetting,
    ) -> Self:
        """Make a translator from the folder of a bundle or an ensemble, or an ensemble from several folders.

        The settings in `decode` replace the bundle's own, as in `using`. `build_model` is as in `Bundle.load`.
        """
        folders = [path for one in (folder, *others) for path in folders_of_models(one)]
        on_cpu = device == "cpu" or (device == "auto" and not may_have_gpu())
        if on_cpu and build_model is None:
            bundles: list[Bundle] = [UnreadBundle.load(Path(one)) for one in folders]  # needs no PyTorch
        else:
            where = pick_device(device)
            bundles = [Bundle.load(Path(one), device=where, build_model=build_model) for one in folders]
        require_one_vocabulary(bundles, [str(one) for one in folders])
        return cls(*bundles, precision=precision).using(glossary=glossary, **decode)

    def using(self, *, glossary: Terms | None = None, **decode: SearchSetting) -> Self:
        """Return a translator for the same model with other search settings: `translator.using(beam=8, nbest=3)`.

        None leaves a setting unchanged. `glossary` maps terms to their translations, `{"term": "translation"}`. If a
        term has several translations, the model chooses one.
        """
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)  # shares the engine and its weights
        other.decode = self.decode.with_changes(decode)
        if glossary is not None:
            other._glossary = as_glossary(glossary)
        other._prepare()
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the bundles and the settings. Unpickling prepares the engine again."""
        return _restored, (type(self), self.bundles, self.decode, self.precision, self._glossary)

    def _prepare(self) -> None:
        self._generator = TranslationGenerator(
            self.engine,
            self.target_tokenizer,
            self.decode,
            source_specials=len(self.source_tokenizer.frame([])),
            normal_repetition=self.bundle.longest_repetition,
        )
        self._splitter = TextSplitter(
            self.bundle,
            self.decode,
            self._glossary,
            limit=self._generator.limit,
            longest=self.engine.config.max_length,
        )
        aligner = Aligner(lambda: [one.model for one in self.bundles], self._generator, self.source_tokenizer)
        self._segment_translator = SegmentTranslator(
            self._generator,
            aligner,
            longest_source=self._splitter.longest_source,
            unknown=self.source_tokenizer.unk_id,
            known_signs=self.known_signs_of(self.bundle),
            checks_codes=self.checks_codes,
        )

    def _refuse_changed_weights(self) -> None:
        if any(versions.have_changed() for versions in self._weight_versions):
            raise InputError("the weights of the model have changed since its engine was made; make a new Translator")

    def __call__(self, text: str) -> str:
        """Translate one text. An empty text stays empty."""
        return self.translate([text])[0]

    def translate(self, texts: Sequence[str], *, on_progress: Callable[[int], None] = lambda _: None) -> list[str]:
        """Translate many texts, in order, to strings; `translations` also returns scores and flags."""
        return [translation.text for translation in self.translations(texts, on_progress=on_progress)]

    def translations(
        self,
        texts: Iterable[str],
        *,
        prefix: str | Sequence[str] = "",
        glossary: Terms | None = None,
        alternatives: int = 0,
        align: str | None = None,
        first_line: int = 1,
        on_progress: Callable[[int], None] = lambda _: None,
        on_refused: Callable[[InputError], None] | None = None,
        is_cancelled: Callable[[int], bool] = never_cancelled,
        split_sentences: bool = True,
    ) -> Iterator[Translation]:
        """Translate each text, in order. A blank text stays as it is.

        A text is translated sentence by sentence and line by line, by the rules of the source language. Line breaks are
        kept, and so are blanks between sentences if the target language uses them. With `split_sentences` off, only
        texts that are too long are split. A model of strings never splits (see `splits_sentences`).

        Texts are read, and kept in memory, 32 batches at a time. Every translation begins with `prefix`, or with its
        own prefix if `prefix` is a list. `alternatives` asks for other translations: each starts with a different
        likely next token after the prefix. `glossary` replaces the translator's glossary. `align` asks for alignments
        of "words" or "tokens". `on_progress` is called with the number of texts that each batch finished; the first
        call reports texts that need no batch.

        Refuses a character outside the vocabulary and a word longer than the model's `max_length`, before any of the 32
        batches is translated. The error's `line` says which text it was, counting from `first_line`. With `on_refused`
        the error is passed to that function instead, and the translation is empty.

        `is_cancelled` is called with the index of a text, from 0, before its batch and after each step of the search.
        If it returns True, the text leaves the batch before the next step, and its translation is empty and flagged
        `cancelled`. Several threads may call `is_cancelled`. Once it has returned True for a text, it must keep
        returning True.
        """
        require_whole("alternatives", alternatives, least=0)
        if align not in (None, *get_args(Unit)):
            raise ConfigError(f'align must be "words" or "tokens"; got {align!r}')
        texts = checked_texts(texts, first=first_line)
        if not isinstance(prefix, str):
            known = list(texts)
            texts = iter(known)
            prefix = checked_prefixes(prefix, len(known))
        done = 0
        while window := list(islice(texts, WINDOW * self.decode.batch_size)):
            split = self.split(
                window,
                prefix=prefix if isinstance(prefix, str) else prefix[done : done + len(window)],
                glossary=glossary,
                first_line=first_line + done,
                on_refused=on_refused,
                is_cancelled=partial(lambda first, number: is_cancelled(first + number), done),
                split_sentences=split_sentences,
            )
            counting = split.counting_texts(on_progress)
            translations = self._segment_translator.translate_in_batches(
                split.segments, alternatives=alternatives, align=cast(Unit | None, align), on_translated=counting
            )
            yield from self.join(split, translations, first_line=first_line + done, on_refused=on_refused)
            done += len(window)

    def alternatives(self, text: str, *, after: str = "", count: int = 5) -> list[Translation]:
        """Translate a text `count` times: each translation starts with `after` and a different likely next token."""
        require_whole("count", count)
        (best,) = self.translations([text], prefix=after, alternatives=count)
        return [replace(best, alternatives=()), *best.alternatives]

    def split(
        self,
        texts: Sequence[str],
        *,
        prefix: str | Sequence[str] = "",
        glossary: Terms | None = None,
        first_line: int = 1,
        on_refused: Callable[[InputError], None] | None = None,
        is_cancelled: Callable[[int], bool] = never_cancelled,
        split_sentences: bool = True,
    ) -> SplitTexts:
        """Split texts into segments, for a caller that makes its own batches: `translate_segments`, then `join`.

        Arguments and refusals are as in `translations`. A segment keeps its prefix, its glossary and `is_cancelled`
        (called with the index of its text in `texts`), so a batch may mix segments of several calls.
        """
        self._refuse_changed_weights()
        return split_texts(
            self._splitter,
            texts,
            prefix=prefix,
            glossary=glossary,
            first_line=first_line,
            on_refused=on_refused,
            is_cancelled=is_cancelled,
            split_sentences=split_sentences and self.splits_sentences,
        )

    def translate_segments(
        self, segments: Sequence[Segment], *, alternatives: int = 0, align: Unit | None = None
    ) -> list[Translation | None]:
        """Translate segments of one or more texts in one batch.

        Returns None for a segment that was cancelled, or whose glossary terms and kept spans do not fit within the
        length limit; `join` distinguishes the two.
        """
        return self._segment_translator.translate(segments, alternatives=alternatives, align=align)

    def join(
        self,
        split: SplitTexts,
        translations: Sequence[Translation | None],
        *,
        first_line: int = 1,
        on_refused: Callable[[InputError], None] | None = None,
    ) -> list[Translation]:
        """Join the translations of segments into a translation of each text.

        A text with a cancelled segment gets an empty translation, flagged `cancelled`. A text that has no translation
        for another reason is refused.
        """
        return split.join(
            translations, lambda segment, number: self._splitter.refusal(segment, first_line + number), on_refused
        )

    def stream(self, text: str) -> Iterator[str]:
        """Yield the translation piece by piece as the model writes it: greedy, or sampled if `sample` is set.

        Joined, the pieces are the translation. Pieces are final, so a repetitive sentence is not searched again, and a
        sentence with constraints (from a glossary or `copy_spans`) comes as a whole when its search has ended. Unknown
        tokens are never written.
        """
        split = self.split([*checked_texts([text])])
        sentences = split.sentences
        for number, gap in enumerate(split.gaps(0)):
            if gap:
                yield gap
            if number < len(sentences.texts):
                yield from self._stream(sentences.only(number))

    def _stream(self, sentence: SplitSentences) -> Iterator[str]:
        if sentence.ready or any(segment.as_is for segment in sentence.segments):
            (translation,) = sentence.join(self.translate_segments(sentence.segments), self._refuse)
            yield from filter(None, [translation.text.strip()])
        elif sentence.recased:
            yield from map(to_capitals, self._stream_segments(sentence.segments, sentence.blank))
        else:
            yield from self._stream_segments(sentence.segments, sentence.blank)

    def _refuse(self, segment: Segment) -> None:
        raise self._splitter.refusal(segment, 1)

    def _stream_segments(self, segments: Sequence[Segment], blank: str) -> Iterator[str]:
        for number, segment in enumerate(segments):
            if number and blank:
                yield blank
            if segment.request.constraints or find_spans(segment.text, PLACEHOLDERS):
                (translation,) = self.translate_segments([segment])
                if translation is None:
                    raise self._splitter.refusal(segment, 1)
                yield translation.text
                continue
            ids = []
            previous = ""
            for token in self._generator.stream(segment.request.source):
                ids.append(token)
                # The bytes of a character may be spread over tokens. Until it is complete, it shows as U+FFFD.
                text_so_far = self.target_tokenizer.decode(ids).rstrip("\N{REPLACEMENT CHARACTER}")
                if len(text_so_far) > len(previous):
                    yield text_so_far[len(previous) :]
                    previous = text_so_far
            if rest := self.target_tokenizer.decode(ids)[len(previous) :]:  # a character that was never completed
                yield rest

    def score(self, pairs: Iterable[tuple[str, str]]) -> Iterator[Scored]:
        """Score given translations: compute the log-probability of every target token, as in a search.

        A target token outside the vocabulary gets minus infinity, because a search never writes it, unless
        `replace_unknown` is set.
        """
        self._refuse_changed_weights()
        pairs = checked_pairs(pairs)
        longest = self.engine.config.max_length
        first = 1
        while batch := list(islice(pairs, self.decode.batch_size)):
            sources = encode_texts(
                self.source_tokenizer, [self.bundle.normalization(source) for source, _ in batch], first
            )
            targets = encode_texts(
                self.target_tokenizer, [self.bundle.normalization(target) for _, target in batch], first
            )
            for side, rows, unread in (("source", sources, 0), ("target", targets, 1)):  # `<eos>` is only predicted
                for line, ids in enumerate(rows, start=first):
                    if len(ids) - unread > longest:
                        raise InputError(
                            f"the {side} has {len(ids)} tokens; this model reads at most {longest}", line=line
                        )
            gains = self._generator.log_probabilities(sources, targets)
            for (source, target), ids, gained in zip(batch, targets, gains, strict=True):
                yield Scored(
                    source, target, tuple(self.target_tokenizer.pieces(ids[1:])), tuple(gained[: len(ids) - 1])
                )
            first += len(batch)


def _restored(
    kind: type[Translator],
    bundles: tuple[Bundle, ...],
    decode: DecodeConfig,
    precision: Precision,
    terms: Glossary,
) -> Translator:
    return kind(*bundles, decode=decode, precision=precision).using(glossary=terms)
