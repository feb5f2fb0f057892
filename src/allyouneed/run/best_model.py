"""Which model of a run is kept: the best by its early-stopping metric."""

from ..config import Recipe
from ..data.prepared import PreparedData
from ..errors import ConfigError
from .callback import Evaluator, Validation
from .state import MIN_UPDATES, TrainState

WITHOUT_TRANSLATIONS = ("loss", "accuracy")  # metrics of the tokens of all validation pairs


def is_best(validation: Validation, recipe: Recipe, state: TrainState, *, has_valid: bool) -> bool:
    """Whether the model of a validation replaces that of earlier ones; counts the validation in `state`.

    Without patience and without a time budget the last model is the result, so each replaces the one before.
    """
    settings = recipe.train
    if not (settings.patience or (settings.minutes and has_valid)):
        return True
    value = _metric_value(validation, settings.early_stopping_metric)
    # A model initialized from a trained one is worth comparing from the first validation on.
    first, in_warmup = 0 if settings.init_from else MIN_UPDATES, state.position(settings) <= settings.warmup
    return state.update_best(value, loss=validation.valid_loss, first=first, in_warmup=in_warmup)


def _metric_value(validation: Validation, metric: str) -> float:
    if metric == "loss":
        return float("-inf") if validation.valid_loss is None else -validation.valid_loss
    if metric == "accuracy":
        return float("-inf") if validation.accuracy is None else validation.accuracy
    if metric not in validation.scores:
        known = ", ".join([*WITHOUT_TRANSLATIONS, *validation.scores])
        raise ConfigError(f'train.early_stopping_metric="{metric}" is no score of this run; it has {known}')
    return validation.scores[metric]


def refuse_patience_without_metric(recipe: Recipe, data: PreparedData, evaluate: Evaluator | None) -> None:
    """Refuse patience, or a time budget, where the metric that they compare is not measured."""
    settings = recipe.train
    if not settings.patience and (not settings.minutes or data.valid is None):
        return
    if data.valid is None:
        raise ConfigError(f"train.patience={settings.patience} needs validation pairs; name them in data.valid")
    if settings.early_stopping_metric not in WITHOUT_TRANSLATIONS and (
        evaluate is None or not settings.validate_samples
    ):
        raise ConfigError(
            f'train.early_stopping_metric="{settings.early_stopping_metric}" needs translations of validation pairs: '
            "set train.validate_samples to more than 0 and, from Python, give `fit` an `evaluate` function; or use "
            'train.early_stopping_metric="loss"'
        )
