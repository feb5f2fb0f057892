"""Generation: turn source ids into the hypotheses that a `DecodeConfig` asks for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from math import ceil
from random import Random
from typing import NamedTuple

from ..config import DecodeConfig
from ..decode import (
    Hypothesis,
    Limit,
    Order,
    Rule,
    SearchLimits,
    Step,
    at_most,
    beam_options,
    best_first,
    build_rules,
    in_order,
    length_divisor,
    restricted,
    search,
    stream_tokens,
)
from ..text.spans import is_in_word
from ..text.tokenizer import Tokenizer
from .constrained import constrained_beam_search
from .constraint_state import PhraseConstraint, WordBoundaries, max_constrained_length, min_constrained_length
from .engine import Engine
from .repetition import is_repetitive, longest_repetition
from .scoring import score_targets


def find_word_boundaries(tokenizer: Tokenizer) -> WordBoundaries:
    """Find which tokens of a vocabulary begin or end inside a word. Special tokens do neither."""
    special = {tokenizer.pad_id, tokenizer.sos_id, tokenizer.eos_id, tokenizer.unk_id}
    pieces = enumerate(tokenizer.pieces(range(len(tokenizer))))
    words = [(i, piece) for i, piece in pieces if piece and i not in special]
    return WordBoundaries(
        starts_in_word=frozenset(i for i, piece in words if is_in_word(piece[0])),
        ends_in_word=frozenset(i for i, piece in words if is_in_word(piece[-1])),
    )


# An output counts as nearly as likely as another if its mean log-probability is at least this multiple of the other's.
NEARLY = 1.25


class GenerationRequest(NamedTuple):
    """A source, and requirements of its translation: a prefix, phrases, limits on tokens, and the order of phrases.

    If no translation contains all `constraints`, the search is repeated with the phrases `fewer`, unless that is None.
    `is_cancelled` returns True as soon as the translation is no longer needed. Several threads may call it.
    """

    source: list[int]
    prefix: list[int]
    constraints: list[PhraseConstraint]
    fewer: list[PhraseConstraint] | None = None
    at_most: Sequence[Limit] = ()
    orders: Sequence[Order] = ()
    is_cancelled: Callable[[], bool] = bool  # bool() is False

    @property
    def is_free(self) -> bool:
        """True if only the length limits restrict the translation."""
        return not (self.prefix or self.constraints or self.at_most or self.orders)


class TranslationGenerator:
    """An engine together with the settings of its searches.

    A generator never changes, so several threads may use it at once.
    """

    def __init__(
        self,
        engine: Engine,
        target_tokenizer: Tokenizer,
        config: DecodeConfig,
        *,
        source_specials: int,
        normal_repetition: int = 0,
    ) -> None:
        """Store the settings. `source_specials` is the number of special tokens around a source.

        `normal_repetition` is the length, in tokens, of the longest repetition in the training targets.
        """
        self.engine = engine
        self.target_tokenizer = target_tokenizer
        self.config = config
        self.limit = min(engine.config.max_length, config.max_length or engine.config.max_length)
        self._source_specials = source_specials
        self._normal_repetition = normal_repetition
        self.banned_ids = target_tokenizer.banned_ids(unknown=config.ban_unknown and not config.replace_unknown)

    def generate(self, requests: Sequence[GenerationRequest]) -> tuple[list[list[Hypothesis]], list[bool]]:
        """Return the hypotheses of each request, best first, and whether the output of its first search was repetitive.

        A request gets no hypotheses if its phrases do not fit within the length limit, or if it was cancelled. An
        output that the model is sure of is final. After any other repetitive output, a second search bans repeated
        n-grams; its output is used if the model finds it nearly as likely.
        """
        hypotheses = self._search_all(requests, self.config)
        without = [
            b
            for b, one in enumerate(requests)
            if not hypotheses[b] and one.fewer is not None and not one.is_cancelled()
        ]
        fewer = [requests[b]._replace(constraints=requests[b].fewer or []) for b in without]
        for b, found in zip(without, self._search_all(fewer, self.config), strict=True):
            hypotheses[b] = found
        repetitive = [self._is_repetitive(*pair) for pair in zip(requests, hypotheses, strict=True)]
        again: dict[DecodeConfig, list[int]] = defaultdict(list)
        for b, found in enumerate(hypotheses):
            if repetitive[b]:
                again[without_repetition(self.config, found[0])].append(b)
        for config, numbers in again.items():
            for b, others in zip(numbers, self._search_all([requests[b] for b in numbers], config), strict=True):
                # No output remains if the constraints themselves repeat.
                if others and others[0].confidence >= NEARLY * hypotheses[b][0].confidence:
                    hypotheses[b] = others
        return hypotheses, repetitive

    def _search_all(self, requests: Sequence[GenerationRequest], config: DecodeConfig) -> list[list[Hypothesis]]:
        """Search for all requests: those with constraints in one search, the others in another.

        A request whose constraints exceed the length limit gets no hypotheses.
        """
        hypotheses: list[list[Hypothesis]] = [[] for _ in requests]
        for constrained in (False, True):
            numbers = [
                b
                for b, one in enumerate(requests)
                if bool(one.constraints) == constrained
                # Phrases that cannot fit would only widen the beam of the others.
                and min_constrained_length(one.constraints) <= self.limit
                and not one.is_cancelled()
            ]
            if numbers:
                for b, found in zip(numbers, self._search([requests[b] for b in numbers], config), strict=True):
                    hypotheses[b] = found
        return hypotheses

    def _is_repetitive(self, request: GenerationRequest, hypotheses: list[Hypothesis]) -> bool:
        if not (self.config.retry_repetition and hypotheses) or hypotheses[0].is_sure:
            return False
        normal = self._normal_repetition
        return is_repetitive(hypotheses[0].ids, request.source, normal=normal, is_word=self._is_word)

    def _is_word(self, token: int) -> bool:
        """Return True if a token that directly follows itself makes a whole word of letters each time."""
        several = self.target_tokenizer.decode([token, token]).split()
        return len(several) == 2 and len(several[0]) > 1 and several[0].isalpha()

    def search_wider(self, request: GenerationRequest) -> list[Hypothesis]:
        """Search with a beam of at least 4, and return all its hypotheses, best first."""
        beam = max(4, self.config.beam)
        (hypotheses,) = self._search([request], replace(self.config, beam=beam, nbest=beam, sample=False))
        return hypotheses

    def next_tokens(self, sources: Sequence[list[int]], prefix: list[int], count: int) -> list[list[int]]:
        """Find, for each source, the `count` tokens that most likely follow the prefix, or all if there are fewer."""
        step = self._start(sources)
        numbers = range(len(sources))
        for token in (self.target_tokenizer.sos_id, *prefix):
            step(numbers, [token] * len(sources))
        likely = step.best([0.0] * len(sources), count + 1)
        return [[one.token for one in best if one.token != self.target_tokenizer.eos_id][:count] for best in likely]

    def stream(self, source: list[int]) -> Iterator[int]:
        """Yield the tokens of a translation as they are generated, without unknown tokens that can be replaced."""
        requests = [GenerationRequest(source, [], [])]
        config = self.config
        banned_ids = self.target_tokenizer.banned_ids(unknown=config.ban_unknown or config.replace_unknown)
        step = self.engine.start([source], banned_ids=banned_ids, renormalize=config.renormalize_logits)
        return stream_tokens(
            step,
            config,
            self.limits(requests),
            rules=self._rules(requests, config),
            generators=[self._generator(requests[0])],
        )

    def log_probabilities(self, sources: Sequence[list[int]], targets: Sequence[list[int]]) -> list[list[float]]:
        """Return the log-probability of every target token except the first; a banned token has minus infinity."""
        return score_targets(self._start(sources), targets)

    def limits(self, requests: Sequence[GenerationRequest]) -> SearchLimits:
        """Return the limits of a search for these requests."""
        return SearchLimits(
            sos_id=self.target_tokenizer.sos_id,
            eos_id=self.target_tokenizer.eos_id,
            max_lengths=self._max_lengths(requests),
            is_cancelled=lambda b: requests[b].is_cancelled(),
        )

    def _max_lengths(self, requests: Sequence[GenerationRequest]) -> list[int]:
        """Compute how many tokens each translation may have, counting the end token."""
        longest = [int(self.config.length_ratio * self._length(one)) + self.config.extra_length for one in requests]
        needs = [len(one.prefix) + max_constrained_length(one.constraints) for one in requests]
        return [min(max(1, *pair), self.limit) for pair in zip(longest, needs, strict=True)]

    def _length(self, request: GenerationRequest) -> int:
        """Count the tokens of a source, without special tokens."""
        return len(request.source) - self._source_specials

    def target(self, hypothesis: Hypothesis) -> list[int]:
        """Return all tokens of a hypothesis, with the start and end tokens."""
        end = [self.target_tokenizer.eos_id] if hypothesis.finished else []
        return [self.target_tokenizer.sos_id, *hypothesis.ids, *end]

    @cached_property
    def _boundaries(self) -> WordBoundaries:
        return find_word_boundaries(self.target_tokenizer)

    def _start(self, sources: Sequence[list[int]]) -> Step:
        renormalize = self.config.renormalize_logits
        return self.engine.start(sources, banned_ids=self.banned_ids, renormalize=renormalize)

    def _search(self, requests: Sequence[GenerationRequest], config: DecodeConfig) -> list[list[Hypothesis]]:
        is_constrained = any(one.constraints for one in requests)
        if config.sample and not is_constrained:
            hypotheses = self._sample(requests, config)
        else:
            step = self._start([one.source for one in requests])
            limits = self.limits(requests)
            rules = self._rules(requests, config)
            if is_constrained:
                hypotheses = constrained_beam_search(
                    restricted(step, config, limits, rules),
                    limits,
                    beam_options(config),
                    constraints=[one.constraints for one in requests],
                    boundaries=self._boundaries,
                )
            else:
                hypotheses = search(step, config, limits, rules=rules)
        found = [[] if one.is_cancelled() else best for one, best in zip(requests, hypotheses, strict=True)]
        return found if config.repetition_penalty == 1 else self._score_again(requests, found, config)

    def _sample(self, requests: Sequence[GenerationRequest], config: DecodeConfig) -> list[list[Hypothesis]]:
        """Draw `config.nbest` samples of each request, best first."""
        repeated = [one for one in requests for _ in range(config.nbest)]
        samples = search(
            self._start([one.source for one in repeated]),
            config,
            self.limits(repeated),
            rules=self._rules(repeated, config),
            generators=[self._generator(one, number) for one in requests for number in range(config.nbest)],
        )
        starts = range(0, len(samples), config.nbest)
        return [best_first([one for found in samples[i : i + config.nbest] for one in found]) for i in starts]

    def _generator(self, one: GenerationRequest, number: int = 0) -> Random:
        """Make the random generator of a sample from the seed, the text and the number of the sample.

        A sample therefore depends neither on its batch nor on the line of its text.
        """
        digest = sha256(repr((self.config.seed, one.source, one.prefix, number)).encode()).digest()
        return Random(int.from_bytes(digest, "big"))

    def _rules(self, requests: Sequence[GenerationRequest], config: DecodeConfig) -> list[Rule]:
        shortest = [max(config.min_length, ceil(config.min_ratio * self._length(one))) for one in requests]
        rules = build_rules(
            config,
            eos_id=self.target_tokenizer.eos_id,
            # At most the limit, so that each can end.
            min_lengths=list(map(min, shortest, self._max_lengths(requests))),
            prefixes=[one.prefix for one in requests],
        )
        if any(one.at_most for one in requests):
            rules.append(at_most([one.at_most for one in requests]))
        if any(one.orders for one in requests):
            rules.append(in_order([one.orders for one in requests]))
        return rules

    def _score_again(
        self, requests: Sequence[GenerationRequest], hypotheses_by_request: list[list[Hypothesis]], config: DecodeConfig
    ) -> list[list[Hypothesis]]:
        """Replace log-probabilities that a rule has changed with the model's own, and sort the hypotheses again."""
        if not any(hypotheses_by_request):
            return hypotheses_by_request
        pairs = zip(requests, hypotheses_by_request, strict=True)
        sources = [one.source for one, hypotheses in pairs for _ in hypotheses]
        targets = [self.target(hypothesis) for hypotheses in hypotheses_by_request for hypothesis in hypotheses]
        gains = iter(self.log_probabilities(sources, targets))

        def scored(hypothesis: Hypothesis) -> Hypothesis:
            total = sum(next(gains))
            return hypothesis._replace(log_probability=total, score=total / length_divisor(config, hypothesis))

        return [best_first([scored(hypothesis) for hypothesis in hypotheses]) for hypotheses in hypotheses_by_request]


def without_repetition(config: DecodeConfig, hypothesis: Hypothesis) -> DecodeConfig:
    """Return the settings for a second search that bans the n-grams repeated in a repetitive hypothesis."""
    return replace(config, no_repeat_ngram_size=max(3, longest_repetition(hypothesis.ids).period))
