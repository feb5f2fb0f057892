"""The date task with one part of the model left out at a time: python docs/make/ablations.py [NAME]…

Every variant replaces a function of a module, or a mask, during its training; the model has no option
for it. Writes docs/make/ablations.json: exact match and validation loss over
updates. About half a minute of processor time each; names that are there already are skipped.
"""

import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from allyouneed import Bundle, Recipe, fit, recipe_path
from allyouneed.data.pairs import Pair
from allyouneed.decode import SearchLimits, greedy_search
from allyouneed.metrics import exact_match
from allyouneed.nn import (
    Embedding,
    FeedForward,
    LayerNorm,
    MultiHeadAttention,
    PositionalEncoding,
    Residual,
    Transformer,
    transformer,
)
from allyouneed.nn.transformer import Memory
from allyouneed.run import Evaluation
from allyouneed.translator.definition import DefinitionEngine

RESULT = Path(__file__).with_name("ablations.json")


def no_positions() -> AbstractContextManager[Any]:
    def forward(self: PositionalEncoding, x: Tensor, *, start: int = 0) -> Tensor:
        output: Tensor = self.dropout(x)
        return output

    return patch.object(PositionalEncoding, "forward", forward)


def unscaled_embedding() -> AbstractContextManager[Any]:
    scaled = Embedding.forward

    def forward(self: Embedding, ids: Tensor) -> Tensor:
        vectors: Tensor = scaled(self, ids) / self.d_model**0.5
        return vectors

    return patch.object(Embedding, "forward", forward)


def unscaled_attention() -> AbstractContextManager[Any]:
    project = MultiHeadAttention.project

    def unscaled(self: MultiHeadAttention, *inputs: Any) -> tuple[Tensor, Tensor, Tensor]:
        queries, keys, values = project(self, *inputs)
        return queries * (self.query.weight.size(0) / self.heads) ** 0.5, keys, values  # undoes the division

    return patch.object(MultiHeadAttention, "project", unscaled)


def no_mask_over_the_future() -> AbstractContextManager[Any]:
    def everyone(length: int, past: int = 0, *, device: torch.device | None = None) -> Tensor:
        return torch.ones(length, past + length, dtype=torch.bool, device=device)

    return patch.object(transformer, "causal_mask", everyone)


def no_mask_over_padding() -> AbstractContextManager[Any]:
    def everyone(ids: Tensor, pad_id: int) -> Tensor:
        return torch.ones_like(ids, dtype=torch.bool)[:, None, None, :]

    return patch.object(transformer, "padding_mask", everyone)


def no_norm() -> AbstractContextManager[Any]:
    return patch.object(LayerNorm, "forward", lambda self, x: x)


def no_residual() -> AbstractContextManager[Any]:
    def forward(self: Residual, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        output: Tensor = self.norm(self.dropout(sublayer(x)))
        return output

    return patch.object(Residual, "forward", forward)


def no_feed_forward() -> AbstractContextManager[Any]:
    return patch.object(FeedForward, "forward", lambda self, x: torch.zeros_like(x))


def no_activation() -> AbstractContextManager[Any]:
    return patch.object(FeedForward, "forward", lambda self, x: self.outer(self.inner(x)))


def no_memory() -> AbstractContextManager[Any]:
    encode = Transformer.encode

    def forgotten(self: Transformer, source: Tensor) -> Memory:
        memory = encode(self, source)
        return memory._replace(hidden_states=torch.zeros_like(memory.hidden_states))

    return patch.object(Transformer, "encode", forgotten)


# name → what is replaced while it trains, and settings that differ
VARIANTS: dict[str, tuple[Callable[[], AbstractContextManager[Any]], list[str]]] = {
    "as in the paper": (nullcontext, []),
    "without positions": (no_positions, []),
    "embedding not scaled": (unscaled_embedding, []),
    "attention not scaled": (unscaled_attention, []),
    "without the mask over the future": (no_mask_over_the_future, []),
    "without the mask over padding": (no_mask_over_padding, []),
    "norm before (pre)": (nullcontext, ["model.norm=pre"]),
    "without norm": (no_norm, []),
    "without residual": (no_residual, []),
    "one head": (nullcontext, ["model.heads=1"]),
    "without the feed-forward networks": (no_feed_forward, []),
    "without the ReLU": (no_activation, []),
    "without the memory": (no_memory, []),
    "three tables": (nullcontext, ["model.tied_embeddings=none"]),
    "with label smoothing": (nullcontext, ["train.label_smoothing=0.1"]),
}


def judge(bundle: Bundle, pairs: Sequence[Pair]) -> Evaluation:
    """Return the share of exact translations, in %.

    The plain model translates: another engine has sums of its own, which nothing here replaces.
    """
    model, tokenizer = bundle.model, bundle.source_tokenizer
    result = greedy_search(
        DefinitionEngine(model).start(
            tokenizer.encode_all([pair.source for pair in pairs]), banned_ids=(tokenizer.pad_id, tokenizer.sos_id)
        ),
        SearchLimits(
            sos_id=tokenizer.sos_id,
            eos_id=tokenizer.eos_id,
            max_lengths=[model.config.max_length] * len(pairs),
        ),
    )
    written = [tokenizer.decode(one.ids) for one in result]
    return Evaluation({"exact": exact_match(written, [pair.target for pair in pairs]).value})


def measure(name: str) -> list[dict[str, float]]:
    """Train one variant of the date recipe; at each pause exact match, in %, and loss, in nats per character."""
    replaced, overrides = VARIANTS[name]
    settings = ["train.validate_every=50", "train.validate_samples=250", "train.tensorboard=false", *overrides]
    recipe = Recipe.read(recipe_path("dates"), settings)
    with tempfile.TemporaryDirectory() as folder, replaced():
        output = Path(folder) / "run"
        fit(recipe, output, evaluate=judge)
        lines = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
    return [
        {"step": line["step"], "valid": round(line["valid_loss"], 5), "exact": line["scores"]["exact"]}
        for line in lines
    ]


if __name__ == "__main__":
    measured = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    for name in sys.argv[1:] or VARIANTS:
        if name not in measured:
            measured[name] = measure(name)
            print(f"{name:<36}{measured[name][-1]['exact']:6.1f} %", flush=True)
            lines = [f"{json.dumps(name)}: {json.dumps(points)}" for name, points in measured.items()]
            RESULT.write_text("{\n" + ",\n".join(lines) + "\n}\n")
