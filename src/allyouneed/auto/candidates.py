"""Candidates: the settings that the rules chose, and the changes of them that the statistics leave open."""

from collections.abc import Iterator, Mapping

from .choice_rules import FEW_EPOCHS, Corpus, expected_epochs
from .draft import VOCABULARY_SETTINGS, Draft

# Settings `section.key` and their values; none: what the rules chose.
Change = Mapping[str, object]

NARROW, WIDE, SLOW, FAST = 0.5, 2.0, 0.5, 2.0  # factors of the width and of the learning rate
REGULARIZED, UNREGULARIZED = 0.1, 0.0  # dropout rates


def list_candidates(draft: Draft, corpus: Corpus, count: int) -> list[Change]:
    """At most `count` candidates, what the rules chose first, then changes by their importance.

    A change of a setting that the user has set is left out.
    """
    set_by_user = {f"{section}.{key}" for section, table in draft.tables.items() for key in table}
    set_by_user -= {name for choice in draft.chosen for name in choice.settings}
    if VOCABULARY_SETTINGS & {name.removeprefix("data.") for name in set_by_user}:
        set_by_user |= {f"data.{key}" for key in VOCABULARY_SETTINGS}
    changes = [change for change in _changes(draft, corpus) if not set_by_user & change.keys()]
    return [{}, *changes][:count]


def _changes(draft: Draft, corpus: Corpus) -> Iterator[Change]:
    recipe, _ = draft.complete(corpus)
    model, learning_rate = recipe.model, recipe.train.learning_rate
    # Of text, short trials prefer narrow models and high learning rates, which learn more at first and less in the end.
    if corpus.exact:
        yield from (_width(int(factor * model.d_model)) for factor in (NARROW, WIDE) if factor * model.d_model >= 64)
        yield {"train.learning_rate": FAST * learning_rate}
    yield {"train.learning_rate": SLOW * learning_rate}
    # A trial reads few pairs twice, so it may prefer no dropout even if the run will learn the pairs by heart.
    if expected_epochs(corpus, model.d_model) < FEW_EPOCHS:
        dropout = REGULARIZED if corpus.exact and not model.dropout else UNREGULARIZED
        yield {"model.dropout": dropout, **({} if corpus.exact else {"train.label_smoothing": 0.0})}
    yield {"train.batch_tokens": 2 * recipe.train.batch_tokens}
    yield {"model.encoder_layers": model.encoder_layers + 1, "model.decoder_layers": model.decoder_layers + 1}


def _width(d_model: int) -> Change:
    return {"model.d_model": d_model, "model.d_ff": 4 * d_model, "model.heads": 4}
