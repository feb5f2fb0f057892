"""Check that a model is sound. Each check tries a property of every correct Transformer on the model, and explains."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

import torch
from torch import nn

from ...bundle import Bundle
from ...config import ModelConfig, Recipe
from ...data.pairs import Pair, encode_within
from ...machine.device import using_threads
from ...nn import Transformer
from ...younger import build_model
from .data import load_pairs, matches_baseline, no_overlap, save_baseline, text_round_trips
from .engines import beam_search_is_exhaustive, engines_agree, losses_match_definition, positions_differ
from .learning import initial_loss_is_log_vocabulary, memorizes_a_batch
from .model import (
    LONG,
    CheckResult,
    Ids,
    batch_changes_nothing,
    beam_of_one_is_greedy,
    cache_matches_full_pass,
    heads_and_units_are_alive,
    no_leak_from_the_future,
    padding_changes_nothing,
    random_ids,
)

__all__ = ["CheckResult", "check_bundle", "check_recipe", "save_baseline"]

LARGE = 10_000_000  # weights of linear maps; checks of a larger model use shorter and fewer sentences
SENTENCES, MEMORIZED_VOCABULARY = 100, 40
# Tokens of the longest sentences; how many sentences to find dead units with; and for memorizing, the number of
# sentences and of tokens.
FOR_SMALL, FOR_LARGE = (LONG, SENTENCES, (4, 8)), (24, 20, (2, 6))


def check_bundle(folder: str | Path) -> Iterator[CheckResult]:
    """Run every check on a trained model, one after the other. Reads its data if the files in its recipe still exist.

    Refuses a folder that is not a bundle.
    """
    folder = Path(folder)
    return _on_one_thread(_check_bundle(Bundle.load(folder), folder))


def check_recipe(recipe: Recipe) -> Iterator[CheckResult]:
    """Run every check that needs no training, on a model with new weights."""
    data = recipe.data
    size = len(set(data.alphabet)) + 3 if data.alphabet else data.vocab_size or 1_000
    torch.manual_seed(recipe.train.seed)
    model = build_model(replace(recipe.model, vocab_size=size)).eval()
    overlap = (no_overlap(*load_pairs(one)) for one in (recipe,))
    return _on_one_thread(chain(_check_model(model, partial(random_ids, model.config, sos_id=1, eos_id=2)), overlap))


def _check_bundle(bundle: Bundle, folder: Path) -> Iterator[CheckResult]:
    source, target = bundle.source_tokenizer, bundle.target_tokenizer
    recipe = Recipe.read(folder / "recipe.toml") if (folder / "recipe.toml").exists() else None
    train, held_out = load_pairs(recipe)
    sample = held_out[:SENTENCES]
    make_ids = partial(
        random_ids,
        bundle.model.config,
        sos_id=target.sos_id,
        eos_id=target.eos_id,
        source_special_ids=(source.sos_id, source.eos_id),
    )
    yield from _check_model(bundle.model, make_ids, _encode_pairs(bundle, sample) if sample else None)
    sources, targets = [pair.source for pair in sample], [pair.target for pair in sample]
    yield text_round_trips([(source, sources), (target, targets)])
    yield matches_baseline(bundle, folder)
    yield no_overlap(train, held_out)


def _check_model(model: Transformer, make_ids: Callable[..., Ids], sample: Ids | None = None) -> Iterator[CheckResult]:
    """Run every check that needs only a model.

    `sample` is a set of sentences to find dead units with; by default it is random.
    """
    weights = sum(part.weight.numel() for part in model.modules() if isinstance(part, nn.Linear))
    long, sentences, memorized = FOR_LARGE if weights > LARGE else FOR_SMALL
    ids = make_ids(long=long)
    checks = (
        no_leak_from_the_future,
        padding_changes_nothing,
        batch_changes_nothing,
        cache_matches_full_pass,
        beam_of_one_is_greedy,
    )
    for check in checks:
        with torch.inference_mode():
            result = check(model, ids)
        yield result
    yield positions_differ(model)
    yield from engines_agree(model, ids)
    yield beam_search_is_exhaustive()
    yield losses_match_definition(model, ids)
    with torch.inference_mode():
        alive = heads_and_units_are_alive(model, sample or make_ids(count=sentences))
    yield alive

    def new(config: ModelConfig) -> Transformer:
        torch.manual_seed(1)
        return build_model(config)

    yield initial_loss_is_log_vocabulary(new(model.config), ids)
    # With a small vocabulary, because embeddings of unused tokens would only cost time.
    small = replace(model.config, vocab_size=MEMORIZED_VOCABULARY, target_vocab_size=None, pad_id=0, target_pad_id=None)
    count, long = memorized
    yield from memorizes_a_batch(new(small), random_ids(small, sos_id=1, eos_id=2, count=count, long=long))


def _on_one_thread(results: Iterator[CheckResult]) -> Iterator[CheckResult]:
    """Compute the results on one thread. With so few rows, more threads would mostly wait for each other."""
    while True:
        with using_threads(1):
            result = next(results, None)
        if result is None:
            return
        yield result


def _encode_pairs(bundle: Bundle, pairs: list[Pair]) -> Ids:
    """Encode the pairs that the model can read."""
    ids, _ = encode_within(pairs, bundle.vocabulary, bundle.model.config.max_length)
    sources, targets = ([side[i] for i in range(len(ids))] for side in (ids.source, ids.target))
    return Ids(sources, targets, bundle.target_tokenizer.sos_id, bundle.target_tokenizer.eos_id)
