"""Translate segments: search a batch, then turn the hypotheses into translations with flags."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from math import ceil

from ..decode import Hypothesis, best_first
from ..machine.device import parallel_map
from ..text.spans import foreign_runs
from ..text.tokenizer import Tokenizer
from .alignment import Aligner, Unit
from .constraints import ConstraintBuilder, codes_differ, runs_are_lost
from .generation import GenerationRequest, TranslationGenerator
from .placeholders import separate_placeholders
from .segments import Segment, batch_segments
from .translation import Flag, Translation

TRIES = 4
LEAST_SHARE = 16  # segments; a smaller batch is not worth a thread of its own


def search_for_spans(
    generator: TranslationGenerator,
    constraints: ConstraintBuilder,
    source: str,
    request: GenerationRequest,
    hypotheses: list[Hypothesis],
    *,
    prefix: list[int],
) -> list[Hypothesis]:
    """Search again, with wider beams, for each hypothesis whose spans differ from the spans of `source`.

    Returns the same number of hypotheses: first those with correct spans, then those that remain wrong. These searches
    limit how often the signs of placeholders and tags, and one token of every surplus span, may occur: only as often as
    the constraints need them. Ordered spans keep the order of the source. `prefix` is the prefix that the caller asked
    for; the prefix of `request` may be longer.
    """
    tokenizer = generator.target_tokenizer

    def is_wrong(hypothesis: Hypothesis) -> bool:
        return constraints.spans_differ(source, tokenizer.decode(hypothesis.ids), prefix=prefix)

    wrong = [hypothesis for hypothesis in hypotheses if is_wrong(hypothesis)]
    right = {tuple(hypothesis.ids): hypothesis for hypothesis in hypotheses if not is_wrong(hypothesis)}
    if not wrong:
        return hypotheses
    markers: dict[int, int] = {}
    extra = ""
    orders = constraints.orders(source)
    worst = wrong[0]
    for number in range(TRIES):
        text = tokenizer.decode(worst.ids)
        spans = constraints.extra_spans(source, text, prefix=prefix)
        new_markers = _markers(tokenizer, worst.ids, spans)
        if number and new_markers <= markers.keys():
            break
        markers |= {i: _needed(request, prefix, i) for i in new_markers}
        extra += " ".join(["", *(text[start:end] for start, end in spans)])
        limits = constraints.sign_limits(source, extra, prefix=prefix)
        limits += [({i: 1}, highest) for i, highest in markers.items()]
        again = generator.search_wider(request._replace(at_most=limits, orders=orders))
        still_wrong = [hypothesis for hypothesis in again if is_wrong(hypothesis)]
        right |= {tuple(hypothesis.ids): hypothesis for hypothesis in again if hypothesis not in still_wrong}
        if len(right) >= len(hypotheses) or not still_wrong:
            break
        worst = still_wrong[0]
    return [*best_first(list(right.values())), *wrong][: len(hypotheses)]


def _markers(tokenizer: Tokenizer, ids: list[int], extra: list[tuple[int, int]]) -> set[int]:
    """Choose one token of every surplus span: the first with a character other than a letter, or else the first."""
    starts = [len(tokenizer.decode(ids[:end])) for end in range(len(ids) + 1)]
    pieces = tokenizer.pieces(ids)
    markers: set[int] = set()
    for start, end in extra:
        inside = [k for k in range(len(ids)) if starts[k] < end and starts[k + 1] > start]
        signs = [k for k in inside if not pieces[k].replace("␣", "").isalpha()]
        markers.update(ids[k] for k in (signs or inside)[:1])
    return markers


def _needed(request: GenerationRequest, prefix: list[int], i: int) -> int:
    """Count how often an id occurs in the prefix and in all phrases that the translation must have."""
    required = sum(
        phrase.times * max(spelling.count(i) for spelling in phrase.spellings) for phrase in request.constraints
    )
    return prefix.count(i) + required


class SegmentTranslator:
    """Translates segments, and flags doubtful translations.

    The flag `long` means that the source has more than `longest_source` tokens, and `unknown` that it has text outside
    the vocabulary. `wrong_spans` means that the translation lacks characters foreign to the source language
    (`foreign_runs`) or, with `checks_codes`, a code or a number. In an unsure translation, the blanks next to
    placeholders are made the same as in the source.

    An object of this class never changes, so several threads may use it at once.
    """

    def __init__(
        self,
        generator: TranslationGenerator,
        aligner: Aligner,
        *,
        longest_source: int,
        unknown: int | None,
        known_signs: str,
        checks_codes: bool,
    ) -> None:
        self._generator = generator
        self._aligner = aligner
        self._known_signs = frozenset(known_signs)
        self._checks_codes = checks_codes
        self._longest_source = longest_source
        self._unknown = unknown

    def translate(
        self, segments: Sequence[Segment], *, alternatives: int = 0, align: Unit | None = None
    ) -> list[Translation | None]:
        """Translate all segments in one batch.

        The result is None for a segment that was cancelled, or whose constraints do not fit within the length limit.
        """
        hypotheses, flags = self._generate(segments, alternatives)
        some = [i for i, best in enumerate(hypotheses) if best]
        sources = [segments[i].request.source for i in some]
        best = [hypotheses[i][0] for i in some]
        links = self._aligner.align(sources, best, align) if align and some else [None] * len(some)
        translations: list[Translation | None] = [None] * len(segments)
        for i, alignment in zip(some, links, strict=True):
            translations[i] = replace(self._translation(segments[i], hypotheses[i], flags[i]), alignment=alignment)
        return translations

    def translate_in_batches(
        self,
        segments: Sequence[Segment],
        *,
        alternatives: int = 0,
        align: Unit | None = None,
        on_translated: Callable[[list[int]], None] = lambda _: None,
    ) -> list[Translation | None]:
        """Translate like `translate`, but in batches of similar length, several at a time.

        Each search uses one thread, so a large batch is divided among the threads. `on_translated` is called with the
        indices of a batch's segments once they are translated.
        """
        config = self._generator.config
        translations: list[Translation | None] = [None] * len(segments)

        def work(batch: list[int]) -> list[Translation | None]:
            return self.translate([segments[i] for i in batch], alternatives=alternatives, align=align)

        # Alignments are computed by the model instead of the engine, and the model uses all threads for one batch.
        threads = 1 if config.replace_unknown or align else self._generator.engine.workers
        least_share = LEAST_SHARE if threads > 1 else 1
        batch_size = min(config.batch_size, max(least_share, ceil(len(segments) / threads)))
        batches = list(batch_segments(segments, batch_size=batch_size, beam=config.beam, alternatives=alternatives))
        with parallel_map(min(threads, len(batches) or 1)) as map_batches:
            for batch, some in zip(batches, map_batches(work, batches), strict=True):
                for i, translation in zip(batch, some, strict=True):
                    translations[i] = translation
                on_translated(batch)
        return translations

    def _generate(
        self, segments: Sequence[Segment], alternatives: int
    ) -> tuple[list[list[Hypothesis]], list[tuple[Flag, ...]]]:
        """Find the hypotheses of each segment, best first, and its flags."""
        requests = [[segment.request] for segment in segments]
        if alternatives:
            requests = self._continue_prefixes([segment.request for segment in segments], alternatives)
        answers = iter(zip(*self._generator.generate([request for some in requests for request in some]), strict=True))
        hypotheses: list[list[Hypothesis]] = []
        flags: list[tuple[Flag, ...]] = []
        for segment, some in zip(segments, requests, strict=True):
            lists, again = zip(*islice(answers, len(some)), strict=True)
            checked = [self._search_for_spans(segment, *one) for one in zip(some, lists, strict=True)]
            hypotheses.append([best for best, *_ in filter(None, checked)] if alternatives else checked[0])
            flags.append(("repeats",) if again[0] else ())
        return hypotheses, flags

    def _search_for_spans(
        self, segment: Segment, request: GenerationRequest, hypotheses: list[Hypothesis]
    ) -> list[Hypothesis]:
        if segment.constraints is None:
            return hypotheses
        prefix = segment.request.prefix  # without the token that an alternative adds
        return search_for_spans(self._generator, segment.constraints, segment.text, request, hypotheses, prefix=prefix)

    def _continue_prefixes(self, requests: Sequence[GenerationRequest], count: int) -> list[list[GenerationRequest]]:
        """Replace each request with up to `count` copies, each with a different likely token after its prefix."""
        continued: list[list[GenerationRequest]] = [[] for _ in requests]
        for prefix in {tuple(one.prefix) for one in requests}:  # few, because only the first segment of a text has one
            which = [i for i, one in enumerate(requests) if tuple(one.prefix) == prefix]
            follow = self._generator.next_tokens([requests[i].source for i in which], list(prefix), count)
            for i, tokens in zip(which, follow, strict=True):
                continued[i] = [requests[i]._replace(prefix=[*prefix, token]) for token in tokens]
        return continued

    def _translation(self, segment: Segment, hypotheses: list[Hypothesis], flags: tuple[Flag, ...]) -> Translation:
        texts = self._generator.target_tokenizer.decode_all([hypothesis.ids for hypothesis in hypotheses])
        best, *others = (
            self._one_translation(segment, text, hypothesis, flags)
            for text, hypothesis in zip(texts, hypotheses, strict=True)
        )
        return replace(best, alternatives=tuple(others))

    def _one_translation(
        self, segment: Segment, text: str, hypothesis: Hypothesis, flags: tuple[Flag, ...]
    ) -> Translation:
        text = self._aligner.replace_unknown(text, segment.text, segment.request.source, hypothesis)
        result = Translation(segment.text, text, hypothesis.log_probability, hypothesis.tokens)
        if not (hypothesis.finished and result.is_sure):
            text = separate_placeholders(segment.text, text)
        constraints = segment.constraints
        wrong = constraints and constraints.spans_differ(segment.text, text, prefix=segment.request.prefix)
        source = segment.text.removeprefix(segment.language_tag)
        lost = runs_are_lost(foreign_runs(source, self._known_signs), source, text)
        if wrong or lost or (self._checks_codes and codes_differ(source, text)):
            flags = (*flags, "wrong_spans")
        if not hypothesis.finished:
            flags = (*flags, "unfinished")
        if len(segment.request.source) > self._longest_source:
            flags = (*flags, "long")
        if self._unknown is not None and self._unknown in segment.request.source:
            flags = (*flags, "unknown")
        return replace(result, text=text, flags=flags)
