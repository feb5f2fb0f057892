"""Table 3: every row as a recipe, with its exact number of parameters next to the printed number."""

from dataclasses import replace
from functools import cache
from typing import NamedTuple

import torch

from ...config import ModelConfig, Recipe
from ...nn import Transformer
from ...recipes import recipe_path

VOCABULARY = 37_000  # "about 37000 tokens" (§5.1)


class Row(NamedTuple):
    """A row as printed: perplexity per subword and BLEU on newstest2013, parameters in millions (None: as in base)."""

    name: str
    perplexity: float
    bleu: float
    millions: int | None

    @property
    def model(self) -> ModelConfig:
        """The sizes of this row, from its recipe."""
        return Recipe.read(recipe_path(self.name)).model


ROWS = [
    Row("base", 4.92, 25.8, 65),
    Row("A1", 5.29, 24.9, None),
    Row("A4", 5.00, 25.5, None),
    Row("A16", 4.91, 25.8, None),
    Row("A32", 5.01, 25.4, None),
    Row("B16", 5.16, 25.1, 58),
    Row("B32", 5.01, 25.4, 60),
    Row("C-N2", 6.11, 23.7, 36),
    Row("C-N4", 5.19, 25.3, 50),
    Row("C-N8", 4.88, 25.5, 80),
    Row("C-d256", 5.75, 24.5, 28),
    Row("C-d1024", 4.66, 26.0, 168),
    Row("C-ff1024", 5.12, 25.4, 53),
    Row("C-ff4096", 4.75, 26.2, 90),
    Row("D-drop0", 5.77, 24.6, None),
    Row("D-drop2", 4.95, 25.5, None),
    Row("D-ls0", 4.67, 25.3, None),
    Row("D-ls2", 5.47, 25.7, None),
    Row("E", 4.92, 25.7, None),
    Row("big", 4.33, 26.4, 213),
]


@cache
def count_parameters(config: ModelConfig, *, vocabulary: int = VOCABULARY) -> int:
    """Count the parameters of a model of these sizes, without allocating the model."""
    with torch.device("meta"):
        return Transformer(replace(config, vocab_size=vocabulary)).parameter_count()


def matching_vocabulary(row: Row) -> int | None:
    """Return the vocabulary size with which a row has as many parameters as the paper prints."""
    if row.millions is None:
        return None
    config = row.model
    return VOCABULARY + round((row.millions * 1_000_000 - count_parameters(config)) / config.d_model)


def flops_per_token_pair(config: ModelConfig, *, length: int = 25, vocabulary: int = VOCABULARY) -> int:
    """Count multiplications and additions of a forward pass, per pair of a source and a target token.

    Sentences have `length` tokens. Only matrix products are counted, which make up all but a few percent. An update
    takes three times as many operations.
    """
    d_k = config.effective_d_k
    d_v = config.effective_d_v
    maps = 2 * config.d_model * config.heads * 2 * (d_k + d_v)  # query, key, value and output
    products = 2 * length * config.heads * (d_k + d_v)  # QKᵀ, and the weights times V
    feed_forward = 2 * 2 * config.d_model * config.d_ff
    encoder = config.encoder_layers * (maps + products + feed_forward)
    decoder = config.decoder_layers * (2 * (maps + products) + feed_forward)
    return encoder + decoder + 2 * config.d_model * vocabulary
