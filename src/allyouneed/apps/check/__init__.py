"""Is a model sound? Each check tries a property of a right Transformer on this one and explains the result."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn

from ...bundle import Bundle
from ...config import ModelConfig, Recipe
from ...data.pairs import Pair
from ...device import one_thread
from ...nn import Transformer
from ...younger import build_model
from .baseline import matches_baseline, save_baseline
from .engines import beam_search_is_exhaustive, engines_agree, losses_match_definition, positions_differ
from .learning import initial_loss_is_log_vocabulary, memorizes_a_batch
from .model import (
    batch_changes_nothing,
    beam_of_one_is_greedy,
    cache_matches_full_pass,
    heads_and_units_are_alive,
    no_leak_from_the_future,
    padding_changes_nothing,
)
from .overlap import load_pairs, no_overlap
from .result import LONG, CheckResult, Ids, random_ids
from .round_trip import text_round_trips

__all__ = ["CheckResult", "check_bundle", "check_recipe", "save_baseline"]

LARGE = 10_000_000  # weights of linear maps; checks of a larger model use shorter and fewer sentences
LONG_OF_LARGE = 24  # tokens
SENTENCES = 100  # to find dead units with
SENTENCES_OF_LARGE = 20
MEMORIZED, MEMORIZED_OF_LARGE = (4, 8), (2, 6)  # sentences, and tokens of the first two
MEMORIZED_VOCABULARY = 40


def check_bundle(folder: str | Path) -> Iterator[CheckResult]:
    """Every check of a trained model, one after the other. Data is read if the files of its recipe still exist.

    Refuses a folder that is not a bundle.
    """
    folder = Path(folder)
    bundle = Bundle.load(folder)
    return _on_one_thread(_check_bundle(bundle, folder))


def check_recipe(recipe: Recipe) -> Iterator[CheckResult]:
    """Every check that an untrained model allows, on a model with new weights."""
    data = recipe.data
    size = len(set(data.alphabet)) + 3 if data.alphabet else data.vocab_size or 1_000
    torch.manual_seed(recipe.train.seed)
    model = build_model(replace(recipe.model, vocab_size=size)).eval()
    return _on_one_thread(_check_recipe(recipe, model))


def _check_bundle(bundle: Bundle, folder: Path) -> Iterator[CheckResult]:
    model, source_tokenizer, target_tokenizer = bundle.model, bundle.source_tokenizer, bundle.target_tokenizer
    special_ids = (source_tokenizer.sos_id, source_tokenizer.eos_id)
    recipe = Recipe.read(folder / "recipe.toml") if (folder / "recipe.toml").exists() else None
    train, held_out = load_pairs(recipe)
    ids = random_ids(
        model.config,
        sos_id=target_tokenizer.sos_id,
        eos_id=target_tokenizer.eos_id,
        source_special_ids=special_ids,
        long=_long(model),
    )
    yield from _check_function(model, ids)
    sample = held_out[:SENTENCES]
    with torch.inference_mode():
        alive = heads_and_units_are_alive(model, _encode_pairs(bundle, sample) if sample else _many(model, ids))
    yield alive
    yield from _check_learning(model, ids)
    sources, targets = [pair.source for pair in sample], [pair.target for pair in sample]
    yield text_round_trips([(source_tokenizer, sources), (target_tokenizer, targets)])
    yield matches_baseline(bundle, folder)
    yield no_overlap(train, held_out)


def _check_recipe(recipe: Recipe, model: Transformer) -> Iterator[CheckResult]:
    ids = random_ids(model.config, sos_id=1, eos_id=2, long=_long(model))
    yield from _check_function(model, ids)
    with torch.inference_mode():
        alive = heads_and_units_are_alive(model, _many(model, ids))
    yield alive
    yield from _check_learning(model, ids)
    yield no_overlap(*load_pairs(recipe))


def _check_function(model: Transformer, ids: Ids) -> Iterator[CheckResult]:
    for check in (
        no_leak_from_the_future,
        padding_changes_nothing,
        batch_changes_nothing,
        cache_matches_full_pass,
        beam_of_one_is_greedy,
    ):
        with torch.inference_mode():
            result = check(model, ids)
        yield result
    yield positions_differ(model)
    yield from engines_agree(model, ids)
    yield beam_search_is_exhaustive()
    yield losses_match_definition(model, ids)


def _check_learning(model: Transformer, ids: Ids) -> Iterator[CheckResult]:
    def new(config: ModelConfig) -> Transformer:
        torch.manual_seed(1)
        return build_model(config)

    yield initial_loss_is_log_vocabulary(new(model.config), ids)
    # A vocabulary of a few tokens: the embeddings of unused ones would only cost time.
    small = replace(model.config, vocab_size=MEMORIZED_VOCABULARY, target_vocab_size=None, pad_id=0, target_pad_id=None)
    count, long = MEMORIZED_OF_LARGE if _is_large(model) else MEMORIZED
    batch = random_ids(small, sos_id=1, eos_id=2, count=count, long=long)
    yield from memorizes_a_batch(new(small), batch)


def _on_one_thread(results: Iterator[CheckResult]) -> Iterator[CheckResult]:
    """The same results, computed on one thread: for products of so few rows, more threads mostly wait."""
    while True:
        with one_thread():
            result = next(results, None)
        if result is None:
            return
        yield result


def _is_large(model: Transformer) -> bool:
    return sum(part.weight.numel() for part in model.modules() if isinstance(part, nn.Linear)) > LARGE


def _long(model: Transformer) -> int:
    return LONG_OF_LARGE if _is_large(model) else LONG


def _many(model: Transformer, ids: Ids) -> Ids:
    special_ids = (ids.sources[0][0], ids.sources[0][-1])
    count = SENTENCES_OF_LARGE if _is_large(model) else SENTENCES
    return random_ids(model.config, sos_id=ids.sos_id, eos_id=ids.eos_id, source_special_ids=special_ids, count=count)


def _encode_pairs(bundle: Bundle, pairs: list[Pair]) -> Ids:
    source_tokenizer, target_tokenizer = bundle.source_tokenizer, bundle.target_tokenizer
    sources = source_tokenizer.encode_all([pair.source for pair in pairs])
    targets = target_tokenizer.encode_all([pair.target for pair in pairs])
    max_length = bundle.model.config.max_length
    kept = [i for i in range(len(pairs)) if max(len(sources[i]), len(targets[i])) <= max_length]
    return Ids([sources[i] for i in kept], [targets[i] for i in kept], target_tokenizer.sos_id, target_tokenizer.eos_id)
