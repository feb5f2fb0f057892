"""Prove a model sound: each check is a property of a right Transformer, tried on this one, with a verdict in words."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch

from ..bundle import Bundle
from ..config import ModelConfig, Recipe
from ..corpus.pair import Pair
from ..nn import Transformer
from .data import load_pairs, no_overlap
from .engines import every_engine_is_the_model, losses_are_the_definition, positions_differ, the_best_of_all_is_found
from .learning import a_batch_is_learned_by_heart, loss_starts_at_guessing
from .model import (
    beam_of_one_is_greedy,
    cached_is_uncached,
    heads_and_units_are_alive,
    neighbours_change_nothing,
    no_leak_from_the_future,
    padding_changes_nothing,
)
from .result import CheckResult, Ids, random_ids
from .text import matches_baseline, save_baseline, text_survives

__all__ = ["CheckResult", "check_bundle", "check_recipe", "save_baseline"]

SENTENCES = 100  # of the data at hand, to try a model on
FEW_WORDS = 40  # of a model that learns a few sentences by heart


def check_bundle(folder: str | Path) -> Iterator[CheckResult]:
    """Every check of a trained model, as each is done. The data counts where its recipe still finds it.

    A folder that is no bundle is refused.
    """
    folder = Path(folder)
    bundle = Bundle.load(folder)
    model, reader, writer = bundle.model, bundle.source_tokenizer, bundle.target_tokenizer
    signs = (reader.sos_id, reader.eos_id)
    recipe = Recipe.read(folder / "recipe.toml") if (folder / "recipe.toml").exists() else None
    train, held_out = load_pairs(recipe)
    ids = random_ids(model.config, sos_id=writer.sos_id, eos_id=writer.eos_id, source_signs=signs)
    yield from _function(model, ids)
    some = held_out[:SENTENCES]
    with torch.inference_mode():
        yield heads_and_units_are_alive(model, _of_pairs(bundle, some) if some else _many(model, ids))
    yield from _learning(model, ids)
    yield text_survives([(reader, [pair.source for pair in some]), (writer, [pair.target for pair in some])])
    yield matches_baseline(bundle, folder)
    yield no_overlap(train, held_out)


def check_recipe(recipe: Recipe) -> Iterator[CheckResult]:
    """Every check that an untrained model allows, on one with new weights."""
    data = recipe.data
    size = len(set(data.alphabet)) + 3 if data.alphabet else data.vocab_size or 1_000
    torch.manual_seed(recipe.train.seed)
    model = Transformer(replace(recipe.model, vocab_size=size)).eval()
    ids = random_ids(model.config, sos_id=1, eos_id=2)
    yield from _function(model, ids)
    with torch.inference_mode():
        yield heads_and_units_are_alive(model, _many(model, ids))
    yield from _learning(model, ids)
    train, held_out = load_pairs(recipe)
    yield no_overlap(train, held_out)


def _function(model: Transformer, ids: Ids) -> Iterator[CheckResult]:
    with torch.inference_mode():
        yield no_leak_from_the_future(model, ids)
        yield padding_changes_nothing(model, ids)
        yield neighbours_change_nothing(model, ids)
        yield cached_is_uncached(model, ids)
        yield beam_of_one_is_greedy(model, ids)
    yield positions_differ(model)
    yield from every_engine_is_the_model(model, ids)
    yield the_best_of_all_is_found()
    yield losses_are_the_definition(model, ids)


def _learning(model: Transformer, ids: Ids) -> Iterator[CheckResult]:
    def new(config: ModelConfig) -> Transformer:
        torch.manual_seed(1)
        return Transformer(config)

    yield loss_starts_at_guessing(new(model.config), ids)
    few = replace(model.config, vocab_size=FEW_WORDS, target_vocab_size=None, pad_id=0)  # words of no use cost time
    yield from a_batch_is_learned_by_heart(new(few), random_ids(few, sos_id=1, eos_id=2, long=12))


def _many(model: Transformer, ids: Ids) -> Ids:
    signs = (ids.sources[0][0], ids.sources[0][-1])
    return random_ids(model.config, sos_id=ids.sos_id, eos_id=ids.eos_id, source_signs=signs, count=SENTENCES)


def _of_pairs(bundle: Bundle, pairs: list[Pair]) -> Ids:
    reader, writer, longest = bundle.source_tokenizer, bundle.target_tokenizer, bundle.model.config.max_length
    sources = reader.encode_all([pair.source for pair in pairs])
    targets = writer.encode_all([pair.target for pair in pairs])
    kept = [i for i in range(len(pairs)) if max(len(sources[i]), len(targets[i])) <= longest]
    return Ids([sources[i] for i in kept], [targets[i] for i in kept], writer.sos_id, writer.eos_id)
