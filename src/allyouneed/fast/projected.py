"""The loss of a batch by the model's own modules, with a fused attention kernel and without all logits at once."""

from torch import Tensor

from ..config import TrainConfig
from ..data.batch import Batch
from ..nn import Transformer
from ..train.gradients import autocast, autocast_dtype
from .attention import fused_attention, using_attention
from .loss import fused_linear_cross_entropy


def projected_loss(model: Transformer, batch: Batch, config: TrainConfig) -> Tensor:
    """As `train.gradients.batch_loss`."""
    batch = (batch.duplicated() if config.r_drop else batch).to(next(model.parameters()).device)
    with autocast(model, config), using_attention(model, fused_attention):
        hidden_states = model.hidden_states(batch.source, batch.target_in)
    return loss_of_hidden_states(model, hidden_states, batch, config)


def loss_of_hidden_states(model: Transformer, hidden_states: Tensor, batch: Batch, config: TrainConfig) -> Tensor:
    """The mean loss of the tokens to predict from the hidden states before the projection, (B, T, D) → ()."""
    return fused_linear_cross_entropy(
        hidden_states.float(),
        model.projection.table,
        batch.target_out,
        bias=model.projection.bias,
        smoothing=config.label_smoothing,
        pad_id=model.config.effective_target_pad_id,
        r_drop=config.r_drop,
        dtype=autocast_dtype(config.precision, model),
    )
