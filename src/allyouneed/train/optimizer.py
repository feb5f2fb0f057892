"""The optimizer (§5.3): Adam as in the paper, or AdamW with weight decay.

The learning rate is set before every update (`schedule.py`).
"""

from torch import Tensor
from torch.optim import Adam, AdamW, Optimizer

from ..config import TrainConfig
from ..errors import ConfigError
from ..machine.device import runs_ahead
from ..nn import Transformer

BETAS, EPS = (0.9, 0.98), 1e-9  # §5.3


def make_optimizer(model: Transformer, config: TrainConfig) -> Optimizer:
    """Make the optimizer that `config.optimizer` names, Adam or AdamW. Refuses other names."""
    if config.optimizer == "adam":
        return Adam(model.parameters(), lr=0.0, betas=BETAS, eps=EPS, fused=True)
    if config.optimizer == "adamw":
        return AdamW(model.parameters(), lr=0.0, betas=BETAS, eps=EPS, weight_decay=config.weight_decay, fused=True)
    raise ConfigError(
        f'optimizer="{config.optimizer}" is not the paper\'s; use allyouneed.younger.muon.build_optimizer'
    )


def step_if(is_finite: Tensor, optimizer: Optimizer) -> None:
    """Step the optimizer if `is_finite` is True. The device decides, so the program does not wait for a GPU."""
    # PyTorch sets this attribute on optimizers whose step does nothing if `found_inf` is 1, as `torch.amp.GradScaler`
    # needs.
    if runs_ahead(is_finite.device) and getattr(optimizer, "_step_supports_amp_scaling", False):
        optimizer.found_inf = (~is_finite).float()  # type: ignore[attr-defined]
        optimizer.step()
        del optimizer.found_inf  # type: ignore[attr-defined]
    elif is_finite:
        optimizer.step()
