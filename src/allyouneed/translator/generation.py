"""Ids → ids: for sources, the hypotheses that a `DecodeConfig` asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from math import ceil
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..config import DecodeConfig
from ..data.batch import pad
from ..decode import (
    Hypothesis,
    Limit,
    Order,
    PhraseConstraint,
    Rule,
    SearchLimits,
    WordBoundaries,
    at_most,
    best_first,
    build_rules,
    in_order,
    is_repetitive,
    length_divisor,
    longest_repetition,
    max_constrained_length,
    mean_probability,
    min_constrained_length,
    search,
    stream_tokens,
    target_log_probabilities,
)
from ..decode.likelihood import eval_copy
from ..device import using_threads
from ..fast.engine import EngineStep
from ..lazy import Tensor, torch
from ..light.search import LightLimits
from ..text.spans import is_in_word
from ..text.tokenizer import Tokenizer
from .prepared_model import PreparedModel


def find_word_boundaries(tokenizer: Tokenizer) -> WordBoundaries:
    """The word boundaries of a vocabulary: special tokens neither begin nor end in a word."""
    special = {tokenizer.pad_id, tokenizer.sos_id, tokenizer.eos_id, tokenizer.unk_id}
    pieces = enumerate(tokenizer.pieces(range(len(tokenizer))))
    words = [(i, piece) for i, piece in pieces if piece and i not in special]
    return WordBoundaries(
        starts_in_word=frozenset(i for i, piece in words if is_in_word(piece[0])),
        ends_in_word=frozenset(i for i, piece in words if is_in_word(piece[-1])),
    )


NEARLY = 1.25  # times its mean log-probability: the least of another output that the model finds nearly as likely
MANY_LOGITS = 30_000_000  # at most so many at once when translations are scored: 120 MB, and as much again

AnyLimits = TypeVar("AnyLimits", bound=SearchLimits)


class GenerationRequest(NamedTuple):
    """A source, and what its translation must have: a prefix, phrases, limits on its tokens, phrases in order.

    `fewer` are phrases to search with where no translation has all `constraints`; with None there is none then.
    `is_cancelled` returns True as soon as the translation is no longer needed; several threads may call it.
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
        """Whether nothing but its length limits its translation."""
        return not (self.prefix or self.constraints or self.at_most or self.orders)


class TranslationGenerator:
    """A model, or several as an ensemble, and how to search with it.

    It keeps nothing between calls but what never changes, so several threads may use it at once.
    """

    def __init__(
        self,
        model: PreparedModel,
        target_tokenizer: Tokenizer,
        config: DecodeConfig,
        *,
        source_specials: int,
        normal_repetition: int = 0,
    ) -> None:
        """`source_specials` is the number of special tokens around a source.

        `normal_repetition` is the length, in tokens, of the longest repetition in the training targets.
        """
        self.model, self.target_tokenizer, self.config = model, target_tokenizer, config
        self.limit = min(model.config.max_length, config.max_length or model.config.max_length)
        self._source_specials, self._normal_repetition = source_specials, normal_repetition
        self.banned_ids = target_tokenizer.banned_ids(unknown=config.ban_unknown and not config.replace_unknown)

    @property
    def device(self) -> torch.device:
        """Where the models are."""
        return next(self.model.models[0].parameters()).device

    @cached_property
    def _step(self) -> EngineStep[Any]:
        renormalize = self.config.renormalize_logits
        return EngineStep(self.model.engine, banned_ids=self.banned_ids, renormalize=renormalize)

    @cached_property
    def _step_of_stream(self) -> EngineStep[Any]:
        config = self.config
        banned_ids = self.target_tokenizer.banned_ids(unknown=config.ban_unknown or config.replace_unknown)
        return EngineStep(self.model.engine, banned_ids=banned_ids, renormalize=config.renormalize_logits)

    def threads(self, requests: int) -> int:
        """How many batches to search at once: one for each thread of a CPU."""
        if self.model.light and self.model.light.can_search(self.config, requests):
            return 1
        return torch.get_num_threads() if self.device.type == "cpu" else 1

    def generate(self, requests: Sequence[GenerationRequest]) -> tuple[list[list[Hypothesis]], list[bool]]:
        """The hypotheses of each request, the best first, and whether the first search gave a repetitive one.

        There are none where the required phrases do not fit within the limit, or where the request was cancelled.
        """
        hypotheses = self._generate(requests)
        again = [
            b for b, one in enumerate(requests)
            if not hypotheses[b] and one.fewer is not None and not one.is_cancelled()
        ]  # fmt: skip
        if again:
            fewer = self._generate([requests[b]._replace(constraints=requests[b].fewer or []) for b in again])
            for b, best in zip(again, fewer, strict=True):
                hypotheses[b] = best
        repetitive = [False] * len(requests)
        for b, one in enumerate(requests):
            hypotheses[b], repetitive[b] = self._retry_repetition(one, hypotheses[b])
        return hypotheses, repetitive

    def _generate(self, requests: Sequence[GenerationRequest]) -> list[list[Hypothesis]]:
        hypotheses: list[list[Hypothesis]] = [[] for _ in requests]
        # Constraints take a search of their own; one of phrases that do not fit would have a wide beam.
        for constrained in (False, True):
            some = [
                b
                for b, one in enumerate(requests)
                if bool(one.constraints) == constrained
                and min_constrained_length(one.constraints) <= self.limit
                and not one.is_cancelled()
            ]
            if some:
                for b, best in zip(some, self._search([requests[b] for b in some], self.config), strict=True):
                    hypotheses[b] = best
        return hypotheses

    def _retry_repetition(
        self, request: GenerationRequest, hypotheses: list[Hypothesis]
    ) -> tuple[list[Hypothesis], bool]:
        """The hypotheses, or those of another search if the best is repetitive; and whether it was.

        What the model is sure of is its answer. Otherwise the best of the second search replaces a repetitive one if
        the model finds it nearly as likely.
        """
        if not (self.config.retry_repetition and hypotheses) or hypotheses[0].is_sure:
            return hypotheses, False
        first, normal = hypotheses[0], self._normal_repetition
        if not is_repetitive(first.ids, request.source, normal=normal, is_word=self._is_word):
            return hypotheses, False
        (others,) = self._search([request], without_repetition(self.config, first))  # none, if the constraints repeat
        is_likely = others and others[0].confidence >= NEARLY * first.confidence
        return others if is_likely else hypotheses, True

    def _is_word(self, token: int) -> bool:
        """Whether a token that stands in a row with itself is a word of letters each time."""
        several = self.target_tokenizer.decode([token, token]).split()
        return len(several) == 2 and len(several[0]) > 1 and several[0].isalpha()

    def search_wider(self, request: GenerationRequest) -> list[Hypothesis]:
        """All hypotheses of a beam of at least 4, the best first."""
        beam = max(4, self.config.beam)
        config = replace(self.config, beam=beam, nbest=beam, beam_groups=1, sample=False)
        (hypotheses,) = self._search([request], config)
        return hypotheses

    def next_tokens(self, sources: Sequence[list[int]], prefix: list[int], count: int) -> list[list[int]]:
        """For each source the `count` tokens, or as many as there are, that most likely follow the prefix."""
        with torch.inference_mode(), using_threads(1):
            state = self.model.engine.start(self.tensor(sources))
            for token in (self.target_tokenizer.sos_id, *prefix):
                logits, state = self._step(torch.full((len(sources),), token, device=self.device), state)
            logits[:, self.target_tokenizer.eos_id] = -torch.inf
            best = logits.topk(min(count, logits.size(-1) - len(self.banned_ids) - 1)).indices
        return best.tolist()

    def stream(self, source: list[int]) -> Iterator[int]:
        """The tokens of one translation as they are generated; never the unknown token if it could be replaced."""
        requests = [GenerationRequest(source, [], [])]
        with torch.inference_mode(), using_threads(1):
            state = self.model.engine.start(self.tensor([source]))
        yield from stream_tokens(
            using_threads(1)(torch.inference_mode()(self._step_of_stream)),
            state,
            self.config,
            self.limits(requests),
            rules=self._rules(requests, self.config),
            generators=[self._generator(requests[0])],
        )

    def log_probabilities(self, sources: Sequence[list[int]], targets: Sequence[list[int]]) -> list[list[float]]:
        """Those of every token of each target but its first, as in a search: a banned token has minus infinity."""
        rows = max(1, MANY_LOGITS // (max(map(len, targets)) * len(self.target_tokenizer)))
        if len(targets) > rows:
            parts = (slice(start, start + rows) for start in range(0, len(targets), rows))
            return [row for part in parts for row in self.log_probabilities(sources[part], targets[part])]

        def score() -> Tensor:
            source, target = self.tensor(sources), self.target_tensor(targets)
            gained = [
                target_log_probabilities(
                    model,
                    target,
                    model.encode(source),
                    banned_ids=self.banned_ids,
                    renormalize=self.config.renormalize_logits,
                )
                for model in map(eval_copy, self.model.models)
            ]
            return mean_probability(gained)

        return self.read(sum(map(len, targets)), score).tolist()

    def limits(self, requests: Sequence[GenerationRequest]) -> SearchLimits:
        """Where the search of these requests begins and ends."""
        return self._limits(requests, SearchLimits, torch.tensor(self._max_lengths(requests), device=self.device))

    def _limits(self, requests: Sequence[GenerationRequest], kind: type[AnyLimits], max_lengths: Any) -> AnyLimits:
        return kind(
            sos_id=self.target_tokenizer.sos_id,
            eos_id=self.target_tokenizer.eos_id,
            max_lengths=max_lengths,
            is_cancelled=lambda b: requests[b].is_cancelled(),
        )

    def _max_lengths(self, requests: Sequence[GenerationRequest]) -> list[int]:
        """How many tokens, the end token included, each translation may have."""
        longest = [int(self.config.length_ratio * self._length(one)) + self.config.extra_length for one in requests]
        needs = [len(one.prefix) + max_constrained_length(one.constraints) for one in requests]
        return [min(max(1, *pair), self.limit) for pair in zip(longest, needs, strict=True)]

    def _length(self, request: GenerationRequest) -> int:
        """The tokens of a source without special ones."""
        return len(request.source) - self._source_specials

    def target(self, hypothesis: Hypothesis) -> list[int]:
        """All its tokens, the start token and the end token included."""
        return [
            self.target_tokenizer.sos_id,
            *hypothesis.ids,
            *([self.target_tokenizer.eos_id] if hypothesis.finished else []),
        ]

    def tensor(self, rows: Sequence[list[int]]) -> Tensor:
        """Padded ids of sources, (B, L)."""
        return pad(rows, self.model.config.pad_id).to(self.device)

    def target_tensor(self, rows: Sequence[list[int]]) -> Tensor:
        """Padded ids of targets, (B, L)."""
        return pad(rows, self.model.config.effective_target_pad_id).to(self.device)

    @cached_property
    def _boundaries(self) -> WordBoundaries:
        return find_word_boundaries(self.target_tokenizer)

    def _search(self, requests: Sequence[GenerationRequest], config: DecodeConfig) -> list[list[Hypothesis]]:
        is_free = all(one.is_free for one in requests)
        if self.model.light and is_free and self.model.light.can_search(config, len(requests)):
            limits = self._limits(requests, LightLimits, np.array(self._max_lengths(requests)))
            return self.model.light.search([one.source for one in requests], config, limits, self.banned_ids)
        # The products of a step are small: a thread of OpenMP that waits for its share of each keeps a core busy, which
        # on a busy machine takes several times the processor time. Threads are for batches: `SegmentTranslator`.
        with torch.inference_mode(), using_threads(1):
            hypotheses = search(
                self._step,
                self.model.engine.start(self.tensor([one.source for one in requests])),
                config,
                self.limits(requests),
                rules=self._rules(requests, config),
                constraints=[one.constraints for one in requests],
                boundaries=self._boundaries if any(one.constraints for one in requests) else None,
                generators=[self._generator(one) for one in requests] if config.sample else (),
            )
        if config.repetition_penalty == 1 and config.beam_groups == 1:
            return hypotheses
        return self._score_again(requests, hypotheses, config)

    def read(self, tokens: int, compute: Callable[[], Tensor]) -> Tensor:
        """What is computed of so many tokens of whole sentences: by one thread or by all, as timed in use."""
        with torch.inference_mode():
            return self.model.one_thread_or_all((tokens.bit_length(), torch.get_num_threads()), compute)

    def _generator(self, one: GenerationRequest) -> torch.Generator:
        """The random generator of a text: of the seed and the text alone, so that its batch and line do not matter."""
        digest = sha256(repr((self.config.seed, one.source, one.prefix)).encode()).digest()
        return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big", signed=True))

    def _rules(self, requests: Sequence[GenerationRequest], config: DecodeConfig) -> list[Rule]:
        shortest = [max(config.min_length, ceil(config.min_ratio * self._length(one))) for one in requests]
        min_lengths = torch.tensor(shortest, device=self.device)
        max_lengths = torch.tensor(self._max_lengths(requests), device=self.device)
        rules = build_rules(
            config,
            eos_id=self.target_tokenizer.eos_id,
            min_lengths=min_lengths.minimum(max_lengths),  # so that each can end
            max_lengths=max_lengths,
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
        """The hypotheses with the log-probabilities of the model, which a rule had changed, and ordered by these."""
        if not any(hypotheses_by_request):
            return hypotheses_by_request
        sources = [
            one.source for one, hypotheses in zip(requests, hypotheses_by_request, strict=True) for _ in hypotheses
        ]
        targets = [self.target(hypothesis) for hypotheses in hypotheses_by_request for hypothesis in hypotheses]
        gains = iter(self.log_probabilities(sources, targets))

        def scored(hypothesis: Hypothesis) -> Hypothesis:
            total = sum(next(gains))
            return hypothesis._replace(log_probability=total, score=total / length_divisor(config, hypothesis))

        return [best_first([scored(hypothesis) for hypothesis in hypotheses]) for hypotheses in hypotheses_by_request]


def without_repetition(config: DecodeConfig, hypothesis: Hypothesis) -> DecodeConfig:
    """The settings of a second search, after a repetitive hypothesis: its repeated n-grams are banned."""
    return replace(config, no_repeat_ngram_size=max(3, longest_repetition(hypothesis.ids).period))
