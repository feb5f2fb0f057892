"""A likely sentence, by chance: each word is drawn from what the model expects.

The draw can be made bolder or more careful: by a temperature, by looking at the k likeliest words
only (Fan et al., 2018), or at the fewest words that together have the probability p (Holtzman et
al., 2020).
"""

from collections.abc import Sequence
from functools import partial
from typing import Unpack

import torch
from torch import Tensor

from .step import AnyState, Hypothesis, SearchLimits, Step
from .stepwise import collect_hypotheses, generate_stepwise


def sample_search(
    step: Step[AnyState],
    state: AnyState,
    *,
    generators: Sequence[torch.Generator],
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    **limits: Unpack[SearchLimits],
) -> list[Hypothesis]:
    """One sentence drawn for each of B. A `top_k` of 0 and a `top_p` of 1 leave no word out.

    Each has a generator of its own, of the CPU, so that what is drawn for it does not depend on the
    others. The log-probability is the model's own, whatever the temperature.
    """
    choose = partial(sample_tokens, generators=generators, temperature=temperature, top_k=top_k, top_p=top_p)
    steps = generate_stepwise(step, state, choose=choose, **limits)
    return collect_hypotheses(steps, sentences=len(limits["max_lengths"]), eos_id=limits["eos_id"])


def sample_tokens(
    log_probabilities: Tensor,
    sentences: Sequence[int],
    *,
    generators: Sequence[torch.Generator],
    temperature: float,
    top_k: int,
    top_p: float,
) -> tuple[Tensor, Tensor]:
    """A `Choose`: of every row a word by chance, and its log-probability at a temperature of 1."""
    device = log_probabilities.device
    exact = torch.float32 if device.type == "mps" else torch.float64  # a long vocabulary has many tiny chances
    likely = keep_top_p(keep_top_k(log_probabilities / temperature, top_k), top_p)
    reached = likely.softmax(-1, dtype=exact).cumsum(-1)
    drawn = torch.cat([torch.rand(1, generator=generators[sentence], dtype=torch.float64) for sentence in sentences])
    # More than 0, at most the last: so no word without a chance is ever the first to reach it.
    goal = (1 - drawn).to(device, exact)[:, None] * reached[:, -1:]
    words = torch.searchsorted(reached, goal)  # (N, V) → (N, 1)
    return log_probabilities.gather(1, words)[:, 0], words[:, 0]


def keep_top_k(scores: Tensor, k: int) -> Tensor:
    """All but the k highest of each row at minus infinity; 0 keeps all. Shapes: (N, V) → (N, V)."""
    if not 0 < k < scores.size(-1):
        return scores
    best = scores.topk(k)
    return torch.full_like(scores, -torch.inf).scatter(-1, best.indices, best.values)


def keep_top_p(scores: Tensor, p: float) -> Tensor:
    """Of each row the fewest words whose probability is at least p together, the rest at minus infinity."""
    if p >= 1:
        return scores
    ordered, places = scores.sort(descending=True)
    probabilities = ordered.softmax(-1)
    superfluous = probabilities.cumsum(-1) - probabilities >= p  # those before it are enough; never the first
    return torch.empty_like(scores).scatter(-1, places, ordered.masked_fill(superfluous, -torch.inf))
