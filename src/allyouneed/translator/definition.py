"""`nn/` as an engine, for GPUs and for every model that differs from what its config describes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from copy import deepcopy
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from ..data.batch import pad
from ..decode import Continuation, Restriction
from ..errors import ConfigError
from ..machine.device import has_fast_bfloat16, move, staged, using_threads
from ..nn import Transformer
from .engine import Precision
from .likelihood import eval_copy

FOLDS = 16  # a row of log-probabilities is folded into this many rows before the best are searched
FEW = 7 / 8  # of the sentences; while more are left, moving their memories takes longer than computing all of them


class DefinitionEngine:
    """An `Engine` that calls `Transformer.decode` with its KV cache.

    In float32 the engine shares the weights of the model. In bfloat16, on a GPU, it has its own copy.
    """

    def __init__(self, model: Transformer, precision: str = "auto") -> None:
        self.device = next(model.parameters()).device
        is_fast = self.device.type == "cuda" and has_fast_bfloat16(self.device)
        if precision == "bfloat16" and not is_fast:
            raise ConfigError(f'precision "bfloat16" needs a GPU that computes with it; the model is on {self.device}')
        self.config = model.config
        self.precision: Precision = "bfloat16" if is_fast and precision != "float32" else "float32"
        self.model = eval_copy(model)
        if self.precision == "bfloat16":
            self.model = deepcopy(self.model).to(torch.bfloat16)

    @property
    def workers(self) -> int:
        """The number of searches to run at once; see `Engine.workers`."""
        return torch.get_num_threads() if self.device.type == "cpu" else 1

    def start(
        self, sources: Sequence[Sequence[int]], *, banned_ids: Sequence[int] = (), renormalize: bool = True
    ) -> DefinitionStep:
        """Encode sources and start a search; see `Engine.start`."""
        return DefinitionStep(self, sources, banned_ids, renormalize)


class DefinitionStep:
    """One search of a `DefinitionEngine`; an `EngineStep`.

    Its tensors have the same number of rows for every sentence; spare rows of sentences with fewer hypotheses are never
    read. The rows of sentences that have left the search stay until an eighth of all sentences have left.
    """

    @torch.inference_mode()
    def __init__(
        self, engine: DefinitionEngine, sources: Sequence[Sequence[int]], banned_ids: Sequence[int], renormalize: bool
    ) -> None:
        self._model = engine.model
        self._device = engine.device
        self._renormalize = renormalize
        self._banned = self._put(torch.tensor(list(banned_ids), dtype=torch.int64))
        source = staged(pad([list(ids) for ids in sources], engine.config.pad_id), self._device)
        with self._threads():
            self._memory = self._model.encode(source)
        self._cache = self._model.new_cache()
        self._sentences = list(range(len(sources)))  # for each hypothesis, the row of its memory
        self._rows = list(range(len(sources)))  # for each hypothesis, its row in the cache and in the log-probabilities
        self._log_probabilities = torch.empty(0)
        self._restrictions: list[tuple[int, Restriction]] = []  # (row, restriction) still to be applied

    @torch.inference_mode()
    def __call__(self, hypotheses: Sequence[int], tokens: Sequence[int]) -> None:
        """Compute the next log-probabilities; see `Step.__call__`."""
        parents = [self._rows[n] for n in hypotheses]
        sentences = [self._sentences[n] for n in hypotheses]
        count = len(self._memory.attn_mask)
        kept = self._kept(sorted(set(sentences)), count)
        if kept:
            number = {sentence: i for i, sentence in enumerate(kept)}
            sentences = [number[sentence] for sentence in sentences]
            count = len(kept)
        by_sentence: list[list[int]] = [[] for _ in range(count)]
        for n, sentence in enumerate(sentences):
            by_sentence[sentence].append(n)
        width = self._width(max(map(len, by_sentence)))
        self._sentences = sentences
        self._rows = [sentence * width + i for sentence, group in enumerate(by_sentence) for i in range(len(group))]
        chosen = [0] * (count * width)
        last = [tokens[0]] * (count * width)
        for row, parent, token in zip(self._rows, parents, tokens, strict=True):
            chosen[row] = parent
            last[row] = token
        with self._threads():
            logits = self._decode(torch.tensor(chosen), torch.tensor(last), torch.tensor(kept) if kept else None)
            self._log_probabilities = self._normalized(logits)
        self._restrictions = []

    def _kept(self, left: list[int], count: int) -> list[int]:
        """Return which of the memory's `count` rows to keep when only the sentences `left` remain; [] means all."""
        return left if len(left) <= FEW * count else []

    def _width(self, most: int) -> int:
        """Return the number of rows for each sentence, if no sentence has more than `most` hypotheses."""
        return most

    def _decode(self, parents: Tensor, newest: Tensor, kept: Tensor | None) -> Tensor:
        """Extend rows by their newest tokens.

        Shapes: parents (N,), newest (N,), kept sentences (B,) → logits (N, V).
        """
        self._select(parents, kept)
        newest = staged(newest, self._device)  # ids are checked on the CPU, before the move
        return self._model.decode(newest[:, None], self._memory, self._cache)[:, 0]  # (N, 1, V) → (N, V)

    def _select(self, parents: Tensor, kept: Tensor | None) -> None:
        sentences = None if kept is None else self._put(kept)
        if sentences is not None:
            self._memory = self._memory.select(sentences)
        self._cache.select(self._put(parents), sentences)

    def _put(self, tensor: Tensor) -> Tensor:
        """Move a tensor from the CPU to the device, without waiting for a CUDA GPU to receive it."""
        return move(staged(tensor, self._device), self._device)

    def _threads(self) -> AbstractContextManager[None]:
        """Use one thread on a CPU: in small products, waiting threads only keep cores busy."""
        return using_threads(1 if self._device.type == "cpu" else 0)

    def _normalized(self, logits: Tensor) -> Tensor:
        """Turn logits into log-probabilities in float32, with minus infinity for banned ids."""
        if self._renormalize:
            logits = logits.index_fill(1, self._banned, -math.inf)
        log_probabilities = logits.log_softmax(-1, dtype=torch.float32)
        return log_probabilities if self._renormalize else log_probabilities.index_fill(1, self._banned, -math.inf)

    def restrict(self, hypothesis: int, restriction: Restriction) -> None:
        self._restrictions.append((self._rows[hypothesis], restriction))

    @torch.inference_mode()
    def best(self, totals: Sequence[float], count: int) -> list[list[Continuation]]:
        """Find the most likely continuations; see `Step.best`."""
        self._apply_restrictions()
        asked: dict[int, list[int]] = {sentence: [] for sentence in self._sentences}
        for n, total in enumerate(totals):
            if total > -math.inf:
                asked[self._sentences[n]].append(n)
        width = max(map(len, asked.values()))
        if not width:
            return [[] for _ in asked]
        rows = []
        before = []
        for group in asked.values():
            rows += [self._rows[n] for n in group] + [0] * (width - len(group))
            before.append([totals[n] for n in group] + [-math.inf] * (width - len(group)))
        log_probabilities = self._log_probabilities
        if rows != list(range(len(log_probabilities))):
            log_probabilities = log_probabilities[self._put(torch.tensor(rows))]
        exact = torch.float32 if self._device.type == "mps" else torch.float64
        continued = self._put(torch.tensor(before, dtype=exact))
        with self._threads():
            best, *where = top_continuations(continued, log_probabilities.view(len(asked), width, -1), count)
        found = []
        for group, totals_of_group, which, tokens in zip(asked.values(), best, *where, strict=True):
            possible = totals_of_group[: len(totals_of_group) - totals_of_group.count(-math.inf)]
            found.append(
                [Continuation(total, group[i], k) for total, i, k in zip(possible, which, tokens, strict=False)]
            )
        return found

    def log_probability(self, hypothesis: int, token: int) -> float:
        self._apply_restrictions()
        return float(self._log_probabilities[self._rows[hypothesis], token])

    @torch.inference_mode()
    def log_probabilities(self) -> Tensor:
        """Return a copy of the log-probabilities of the next token, (N, V), on the CPU."""
        self._apply_restrictions()
        return self._log_probabilities[self._put(torch.tensor(self._rows))].cpu()

    @torch.inference_mode()
    def _apply_restrictions(self) -> None:
        """Apply the stored restrictions: the first of every row at once, then the second of every row, …."""
        while self._restrictions:
            now: dict[int, Restriction] = {}
            later = []
            for row, restriction in self._restrictions:
                if row in now:
                    later.append((row, restriction))
                else:
                    now[row] = restriction
            self._restrict_rows(now)
            self._restrictions = later

    def _restrict_rows(self, restrictions: dict[int, Restriction]) -> None:
        rows = self._put(torch.tensor(list(restrictions)))
        before = self._log_probabilities[rows]  # (n, V), a copy
        numbered = list(enumerate(restrictions.values()))
        penalized = [(i, k, one.penalty) for i, one in numbered for k in one.penalized]
        if penalized:
            penalties = torch.tensor([penalty for *_, penalty in penalized])
            before[self._places(penalized)] *= self._put(penalties)
        after = before.clone()
        forced = [(i, one.forced) for i, one in numbered if one.forced is not None]
        if forced:
            where = self._places(forced)
            after.index_fill_(0, where[0], -math.inf)
            after[where] = before[where]
        banned = [(i, k) for i, one in numbered for k in one.banned]
        if banned:
            after[self._places(banned)] = -math.inf
        nothing_left = after.isneginf().all(-1, keepdim=True)
        self._log_probabilities[rows] = torch.where(nothing_left, before, after)

    def _places(self, pairs: Sequence[tuple[Any, ...]]) -> tuple[Tensor, Tensor]:
        """Return the rows and columns of some matrix entries as index tensors on the device."""
        rows, columns = self._put(torch.tensor([pair[:2] for pair in pairs]).T.contiguous())
        return rows, columns


def top_continuations(
    before: Tensor, log_probabilities: Tensor, count: int
) -> tuple[list[list[float]], list[list[int]], list[list[int]]]:
    """Find the `count` best continuations of each sentence: totals, hypotheses and tokens, best first.

    Equal continuations are ordered by hypothesis, then by token.

    Each number of a long vocabulary is read only once. The row of each hypothesis is folded into 16 short rows, whose
    maximum is taken column by column; only columns with one of the `count` highest maxima can hold the best
    continuations. Shapes: totals so far (B, N), in float64 where the device has it; log-probabilities (B, N, V).
    """
    sentences, hypotheses, vocabulary = log_probabilities.shape
    width = vocabulary // FOLDS
    if width < 8 * count:
        continued = (before[:, :, None] + log_probabilities).flatten(1)
        best, where = continued.topk(min(count, continued.size(1)))
    else:
        folded = log_probabilities[:, :, : FOLDS * width].view(sentences, hypotheses, FOLDS, width).amax(2)
        columns = (before[:, :, None] + folded).flatten(1).topk(count).indices  # (B, count), of N · V / 16
        first = columns // width * vocabulary + columns % width
        fold, rest = _unfolding(hypotheses, vocabulary, width, before.device)
        indices = torch.cat(((first[:, :, None] + fold).flatten(1), rest.expand(sentences, -1)), 1)  # of N · V
        gains = log_probabilities.flatten(1).gather(1, indices)
        best, which = (gains + before.gather(1, indices // vocabulary)).topk(count)
        where = indices.gather(1, which)
    where, order = where.sort(1)
    best, order = best.gather(1, order).sort(dim=1, descending=True, stable=True)
    where = where.gather(1, order)
    together = torch.stack((best, (where // vocabulary).to(best.dtype), (where % vocabulary).to(best.dtype)))
    totals, numbers, tokens = together.cpu().numpy()  # all in one copy from the device
    return totals.tolist(), numbers.astype(int).tolist(), tokens.astype(int).tolist()


@lru_cache(8)
def _unfolding(hypotheses: int, vocabulary: int, width: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the indices of a column's tokens, relative to its first, and the indices of tokens in no column."""
    indices = torch.arange(hypotheses * vocabulary, device=device).view(hypotheses, vocabulary)
    return indices[0, : FOLDS * width : width], indices[:, FOLDS * width :].flatten()
