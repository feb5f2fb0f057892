"""Sampling: each token is drawn at random with the probability that the model gives it.

A temperature makes the distribution flatter or sharper; `top_k` leaves the k most likely tokens (Fan et al., 2018),
`top_p` the fewest tokens that together have the probability p (Holtzman et al., 2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ..lazy import Tensor, torch
from .step import AnyState, Hypothesis, SearchLimits, Step
from .stepwise import collect_hypotheses, generate_stepwise


def sample_search(
    step: Step[AnyState],
    state: AnyState,
    limits: SearchLimits,
    *,
    generators: Sequence[torch.Generator],
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
) -> list[Hypothesis]:
    """One sampled hypothesis for each of B sentences. A `top_k` of 0 and a `top_p` of 1 leave no token out.

    Each sentence has its own generator, on the CPU, so that its sample does not depend on the other sentences. The
    log-probability is that of the model at a temperature of 1.
    """
    choose = partial(sample_tokens, generators=generators, temperature=temperature, top_k=top_k, top_p=top_p)
    return collect_hypotheses(generate_stepwise(step, state, limits, choose=choose), limits)


def sample_tokens(
    log_probabilities: Tensor,
    sentences: Sequence[int],
    *,
    generators: Sequence[torch.Generator],
    temperature: float,
    top_k: int,
    top_p: float,
) -> tuple[Tensor, Tensor]:
    """A `TokenChooser`: a random token of each row, and its log-probability at a temperature of 1."""
    probabilities = sampling_probabilities(log_probabilities, temperature=temperature, top_k=top_k, top_p=top_p)
    reached = probabilities.cumsum(-1)
    drawn = torch.cat([torch.rand(1, generator=generators[sentence], dtype=torch.float64) for sentence in sentences])
    # More than 0 and at most the last sum, so a token with a probability of 0 is never the first to reach it.
    goal = (1 - drawn).to(reached)[:, None] * reached[:, -1:]
    tokens = torch.searchsorted(reached, goal)  # (N, V) → (N, 1)
    return log_probabilities.gather(1, tokens)[:, 0], tokens[:, 0]


def sampling_probabilities(log_probabilities: Tensor, *, temperature: float, top_k: int, top_p: float) -> Tensor:
    """The probabilities with which tokens are drawn. Shapes: (N, V) → (N, V)."""
    exact = torch.float32 if log_probabilities.device.type == "mps" else torch.float64  # many of a long row are tiny
    likely = keep_top_p(keep_top_k(log_probabilities / temperature, top_k), top_p)
    return likely.softmax(-1, dtype=exact)


def keep_top_k(scores: Tensor, k: int) -> Tensor:
    """Set all but the k highest scores of each row to minus infinity; 0 keeps all. Shapes: (N, V) → (N, V)."""
    if not 0 < k < scores.size(-1):
        return scores
    best = scores.topk(k)
    return torch.full_like(scores, -torch.inf).scatter(-1, best.indices, best.values)


def keep_top_p(scores: Tensor, p: float) -> Tensor:
    """Keep the fewest tokens of each row that have the probability p together; set the others to minus infinity."""
    if p >= 1:
        return scores
    ordered, tokens = scores.sort(descending=True)
    probabilities = ordered.softmax(-1)
    superfluous = probabilities.cumsum(-1) - probabilities >= p  # those before it are enough; never the first
    return torch.empty_like(scores).scatter(-1, tokens, ordered.masked_fill(superfluous, -torch.inf))
