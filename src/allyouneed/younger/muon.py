"""Muon, an optimizer younger than the paper, for the matrices of a model."""

import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.adam import adam as adam_update

from ..config import TrainConfig
from ..machine.device import has_fast_bfloat16
from ..nn import Transformer
from ..train.optimizer import BETAS, EPS, make_optimizer


def build_optimizer(model: Transformer, config: TrainConfig) -> Optimizer:
    """Make the optimizer that `config.optimizer` names, for the parameters of `model`."""
    if config.optimizer == "muon":
        return Muon(model, weight_decay=config.weight_decay)
    return make_optimizer(model, config)


class Muon(Optimizer):
    """Muon (Jordan et al., 2024) for the matrices inside the layers, Adam for tables, gains and biases.

    A matrix moves along the momentum of its gradient, after all singular values of the momentum are made about equal;
    so no direction is learned much faster than another. Updates are scaled as in Liu et al. (2025, arXiv 2502.16982),
    so that both kinds of parameters share one learning rate. Matrices of the same shape are orthogonalized together. If
    the device has fast instructions for bfloat16, its three digits are enough, because the singular values are only
    approximate anyway.
    """

    def __init__(self, model: Transformer, *, weight_decay: float = 0.0, momentum: float = 0.95) -> None:
        inside = [*model.encoder.parameters(), *model.decoder.parameters()]
        matrices = [parameter for parameter in inside if parameter.dim() == 2]
        chosen = set(map(id, matrices))
        others = [parameter for parameter in model.parameters() if id(parameter) not in chosen]
        groups: list[dict[str, Any]] = [
            {"params": matrices, "update": "muon", "momentum": momentum, "weight_decay": weight_decay},
            {"params": others, "update": "adam"},
        ]
        super().__init__(groups, {"lr": 0.0})
        self.orthogonalize: Callable[[list[Tensor]], list[Tensor]] = orthogonalize
        # As in fused Adam, a `found_inf` of 1 on the device makes a step change nothing.
        self._step_supports_amp_scaling = True
        self.found_inf: Tensor | None = None

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update every parameter that has a gradient."""
        if closure is not None:
            raise NotImplementedError("Muon does not call a closure; compute the gradients before step()")
        for group in self.param_groups:
            with_gradient = [parameter for parameter in group["params"] if parameter.grad is not None]
            if not with_gradient:
                continue
            if group["update"] == "muon":
                self._muon(with_gradient, group)
            else:
                self._adam(with_gradient, group)

    def _muon(self, matrices: list[nn.Parameter], group: dict[str, Any]) -> None:
        # PyTorch's own optimizers use the same `_foreach` functions, for which it has no public names. On a GPU one of
        # them is a few kernels, where a loop would launch one for each matrix.
        for matrix in matrices:
            if not self.state[matrix]:
                self.state[matrix]["mean"] = torch.zeros_like(matrix)
        weights: list[Tensor] = [*matrices]
        gradients = [matrix.grad for matrix in matrices if matrix.grad is not None]
        means = [self.state[matrix]["mean"] for matrix in matrices]
        changed = _by_shape([*weights, *means])
        before = [] if self.found_inf is None else [torch.stack(tensors) for tensors in changed]
        torch._foreach_lerp_(means, gradients, 1 - group["momentum"])
        ahead = torch._foreach_lerp(gradients, means, group["momentum"])  # Nesterov (1983)
        steps = self.orthogonalize(list(ahead))
        if group["weight_decay"]:
            torch._foreach_mul_(weights, 1 - group["lr"] * group["weight_decay"])
        torch._foreach_mul_(steps, [0.2 * math.sqrt(max(weight.shape)) for weight in weights])
        torch._foreach_add_(weights, steps, alpha=-group["lr"])
        if self.found_inf is not None:
            for tensors, old in zip(changed, before, strict=True):  # few kernels, however many matrices there are
                torch._foreach_copy_(tensors, list(torch.where(self.found_inf.bool(), old, torch.stack(tensors))))

    def _adam(self, parameters: list[nn.Parameter], group: dict[str, Any]) -> None:
        for parameter in parameters:
            if not self.state[parameter]:
                self.state[parameter] = {
                    "step": torch.zeros((), device=parameter.device),
                    "mean": torch.zeros_like(parameter),
                    "square": torch.zeros_like(parameter),
                }
        states = [self.state[parameter] for parameter in parameters]
        adam_update(
            list(parameters),
            [parameter.grad for parameter in parameters if parameter.grad is not None],
            [state["mean"] for state in states],
            [state["square"] for state in states],
            [],
            [state["step"] for state in states],
            fused=True,
            found_inf=self.found_inf,
            amsgrad=False,
            beta1=BETAS[0],
            beta2=BETAS[1],
            lr=group["lr"],
            weight_decay=0.0,
            eps=EPS,
            maximize=False,
        )


def orthogonalize(matrices: list[Tensor]) -> list[Tensor]:
    """Make all singular values of each matrix about equal. Matrices of the same shape, tall or wide, go together."""
    wide = [matrix if matrix.size(0) <= matrix.size(1) else matrix.mT for matrix in matrices]
    fast = torch.bfloat16 if has_fast_bfloat16(matrices[0].device) else matrices[0].dtype
    made: dict[int, Tensor] = {}
    for same_shape in _by_shape(wide):
        stacked = newton_schulz(torch.stack(same_shape).to(fast)).to(same_shape[0].dtype)
        made.update(zip(map(id, same_shape), stacked, strict=True))
    return [made[id(x)] if x is matrix else made[id(x)].mT for x, matrix in zip(wide, matrices, strict=True)]


def _by_shape(matrices: list[Tensor]) -> list[list[Tensor]]:
    """Group matrices by their shape."""
    groups: dict[torch.Size, list[Tensor]] = defaultdict(list)
    for matrix in matrices:
        groups[matrix.shape].append(matrix)
    return list(groups.values())


def newton_schulz(matrices: Tensor, *, rounds: int = 5) -> Tensor:
    """Bring all singular values of matrices near 1, roughly 0.7 to 1.2, and keep the singular vectors.

    Each round of the Newton–Schulz iteration is x ← ax + b(xxᵀ)x + c(xxᵀ)²x with Jordan's coefficients. It changes only
    the singular values: s ← as + bs³ + cs⁵. Shapes: (N, I, J) → (N, I, J).
    """
    if matrices.size(-2) > matrices.size(-1):
        return newton_schulz(matrices.mT, rounds=rounds).mT
    x: Tensor = matrices / matrices.flatten(1).norm(dim=1).clamp(min=1e-7)[:, None, None]
    for _ in range(rounds):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=-4.7750, alpha=2.0315), x, beta=3.4445)
    return x
