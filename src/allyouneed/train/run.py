"""A whole run: a recipe in, a bundle out, with a checkpoint at every pause.

output/recipe.toml            the recipe, every setting written out
output/metrics.jsonl          a line for each pause
output/checkpoints/           the last few, for going on and for the mean
output/…                      the bundle: at every pause the newest weights, at the end their mean
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Protocol

import numpy as np
import tomli_w
import torch

from ..bundle import Bundle, set_weights
from ..config import DataConfig, Recipe
from ..data.sampler import batches, in_order
from ..data.store import EncodedPairs, encode_pairs
from ..device import keep_freed_memory, pick_device, use_threads
from ..errors import ConfigError, DataError, InputError
from ..files import refuse_to_replace, write_whole
from ..nn import Transformer
from ..text.corpus import Pair, read_lines, read_pairs
from ..text.spans import CopyHabits
from ..text.tokenizer import Tokenizer
from .checkpoint import (
    average_checkpoints,
    checkpoint_path,
    checkpoints,
    load_checkpoint,
    save_checkpoint,
)
from .loop import Update, train
from .loss import mean_loss
from .optimizer import make_optimizer


@dataclass(frozen=True, slots=True)
class Pause:
    """Where a run stands: losses in nats a word, the training loss averaged since the last pause.

    `valid_loss` is without label smoothing, so exp of it is the perplexity; None without validation
    data. `scores` is what the judge said; `seconds` is what this process has spent training.
    """

    step: int
    loss: float
    valid_loss: float | None
    scores: Mapping[str, float]
    seconds: float


class Watch(Protocol):
    """Who is told how a run goes."""

    def tell(self, topic: str, text: str) -> None:
        """A line about the data or the model, before training begins."""

    def updated(self, update: Update) -> None:
        """An update is done."""

    def paused(self, pause: Pause) -> None:
        """A pause is over: validated, and saved."""


class Silent:
    """A `Watch` that keeps it to itself."""

    def tell(self, topic: str, text: str) -> None: ...
    def updated(self, update: Update) -> None: ...
    def paused(self, pause: Pause) -> None: ...


Judge = Callable[[Bundle], Mapping[str, float]]


def fit(
    recipe: Recipe,
    output: Path,
    *,
    watch: Watch | None = None,
    judge: Judge | None = None,
    resume: bool = False,
) -> Bundle:
    """Train what `recipe` describes and leave it in the folder `output`.

    `watch` is told how it goes; `judge` scores the model at every pause, in whatever it likes.

    With `resume`, go on from the newest checkpoint there, as if the run had never stopped. Refuses an
    `output` that exists unless it is to be resumed, and to resume with another recipe or other data.
    """
    if resume:
        _refuse_other_recipe(recipe, output)
    else:
        refuse_to_replace(output, what="a run")
    watch = watch or Silent()
    use_threads(recipe.train.threads)
    keep_freed_memory()
    torch.set_flush_denormal(True)  # numbers too small to matter are slow on a CPU
    device = pick_device(recipe.train.device)

    pairs = _read("train", recipe.data, recipe.data.limit, recipe.train.seed)
    held_out = _read("valid", recipe.data, recipe.data.valid_limit, recipe.train.seed)
    tokenizer = Tokenizer.load(output / "tokenizer.json") if resume else learn_tokenizer(recipe.data, pairs)
    encoded = _encode("train", recipe, pairs, tokenizer)
    valid = _encode("valid", recipe, held_out, tokenizer) if held_out else None
    watch.tell("data", _about_data(encoded, valid, tokenizer))

    torch.manual_seed(recipe.train.seed)
    model = Transformer(replace(recipe.model, vocab_size=len(tokenizer), pad_id=tokenizer.pad_id)).to(device)
    optimizer = make_optimizer(model, recipe.train)
    watch.tell("model", _about_model(model))

    saved = output / "checkpoints"
    fingerprint = _fingerprint(encoded)
    first = 1
    if resume and (old := checkpoints(saved)):
        first = 1 + load_checkpoint(old[-1], model, optimizer, fingerprint=fingerprint)
        watch.tell("resume", f"going on after update {first - 1:,}")
    if not resume:
        saved.mkdir(parents=True)
        write_whole(output / "recipe.toml", tomli_w.dumps(recipe.tables()))
        tokenizer.save(output / "tokenizer.json")

    copies, longest_source = CopyHabits.of(pairs), int(np.quantile(encoded.source.lengths, 0.999))
    losses: list[torch.Tensor] = []
    begin = time.monotonic()

    def bundle(pause: Pause) -> Bundle:
        card = _card(output.name, encoded, model, pause)
        return Bundle(model, tokenizer, recipe.decode, card, copies, longest_source)

    def look_around(step: int) -> Pause:
        with _evaluating(model):
            valid_loss = None if valid is None else validation_loss(model, valid, recipe.train.batch_tokens)
            mean = torch.stack(losses).mean().item() if losses else float("nan")
            pause = Pause(step, mean, valid_loss, {}, time.monotonic() - begin)
            return replace(pause, scores=judge(bundle(pause))) if judge else pause

    def after(update: Update) -> None:
        losses.append(update.loss)
        watch.updated(update)
        if update.step % recipe.train.pause and update.step != recipe.train.steps:
            return
        pause = look_around(update.step)
        losses.clear()
        save_checkpoint(
            checkpoint_path(saved, update.step), model, optimizer, step=update.step, fingerprint=fingerprint
        )
        bundle(pause).save(output)
        for superfluous in checkpoints(saved)[: -recipe.train.average]:
            superfluous.unlink()
        _log(output / "metrics.jsonl", pause)
        watch.paused(pause)

    feed = batches(
        encoded,
        batch_tokens=recipe.train.batch_tokens,
        seed=recipe.train.seed,
        pad_id=tokenizer.pad_id,
        skip=first - 1,
    )
    train(model, optimizer, feed, recipe.train, after=after, first=first)

    set_weights(model, average_checkpoints(checkpoints(saved)[-recipe.train.average :]))
    result = bundle(look_around(recipe.train.steps))
    result.save(output)
    model.eval()
    return result


def learn_tokenizer(data: DataConfig, pairs: list[Pair]) -> Tokenizer:
    """The vocabulary that `data` asks for, learned from both sides of the training pairs."""
    if data.vocabulary == "characters":
        return Tokenizer.characters(data.alphabet or sorted(set(chain.from_iterable(chain.from_iterable(pairs)))))
    if data.vocabulary == "codes":
        return Tokenizer.of_codes(read_lines(Path(data.folder, data.codes)), chain.from_iterable(pairs))
    return Tokenizer.learn_bpe(chain.from_iterable(pairs), vocab_size=data.vocab_size)


def validation_loss(model: Transformer, pairs: EncodedPairs, batch_tokens: int) -> float:
    """The mean cross entropy over the words of some pairs, in nats a word, without label smoothing."""
    total, words = 0.0, 0
    pad_id, device = model.config.pad_id, next(model.parameters()).device
    for batch in in_order(pairs, batch_tokens=batch_tokens, pad_id=pad_id):
        batch = batch.to(device)
        count = int((batch.target_out != pad_id).sum())
        logits = model(batch.source, batch.target_in)
        total += mean_loss(logits, batch.target_out, smoothing=0.0, pad_id=pad_id).item() * count
        words += count
    return total / words


@contextmanager
def _evaluating(model: Transformer) -> Iterator[None]:
    """Dropout and gradients off, and random numbers afterwards as if nothing had happened."""
    model.eval()
    with torch.inference_mode():
        yield
    model.train()


def _read(part: str, data: DataConfig, limit: int, seed: int) -> list[Pair]:
    where = getattr(data, part)
    if not where:
        if part == "train":
            raise ConfigError("data.train is missing; name two aligned files, [source, target]")
        return []
    return read_pairs(where, folder=data.folder, limit=limit, seed=seed)


def _encode(part: str, recipe: Recipe, pairs: list[Pair], tokenizer: Tokenizer) -> EncodedPairs:
    try:
        encoded = encode_pairs(pairs, tokenizer, max_length=recipe.model.max_length)
    except InputError as error:
        raise DataError(f"data.{part}, pair {error.line}: {error}") from error
    if not len(encoded):
        raise DataError(
            f"data.{part} has no pair to use: {len(pairs)} read, {encoded.dropped} dropped as empty "
            f"or longer than model.max_length={recipe.model.max_length} tokens"
        )
    return encoded


def _refuse_other_recipe(recipe: Recipe, output: Path) -> None:
    then, now = Recipe.read(output / "recipe.toml").tables(), recipe.tables()
    keys = {(table, key) for table in now for key in then[table].keys() | now[table].keys()}
    for section, key in sorted(keys):
        before, after = then[section].get(key), now[section].get(key)
        if before != after:
            raise ConfigError(
                f"{output} was begun with {section}.{key}={before!r}, not {after!r}; "
                "a run goes on only with the settings it began with"
            )


def _fingerprint(pairs: EncodedPairs) -> str:
    digest = hashlib.sha256()
    for side in (pairs.source, pairs.target):
        digest.update(side.starts.tobytes())
        digest.update(side.ids.tobytes())
    return digest.hexdigest()


def _about_data(train: EncodedPairs, valid: EncodedPairs | None, tokenizer: Tokenizer) -> str:
    parts = [f"{len(train):,} pairs to train on"]
    if train.dropped:
        parts.append(f"{train.dropped:,} dropped as empty or too long")
    if valid is not None:
        parts.append(f"{len(valid):,} to validate")
    return ", ".join([*parts, f"vocabulary of {len(tokenizer):,}"])


def _about_model(model: Transformer) -> str:
    config = model.config
    return (
        f"{config.encoder_layers}+{config.decoder_layers} layers, d_model {config.d_model}, d_ff {config.d_ff}, "
        f"{config.heads} heads: {model.parameter_count():,} parameters"
    )


def _card(name: str, pairs: EncodedPairs, model: Transformer, pause: Pause) -> str:
    lines = [
        f"# {name}",
        "",
        f"A Transformer (Vaswani et al., 2017) with {_about_model(model)}.",
        f"Trained on {len(pairs):,} pairs for {pause.step:,} updates.",
    ]
    if pause.valid_loss is not None:
        lines.append(f"Validation loss {pause.valid_loss:.4f} nats a token.")
    lines += [f"Validation {score}: {value:.2f}." for score, value in pause.scores.items()]
    lines += ["", "    from allyouneed import Translator", '    Translator.load("this/folder")("…")', ""]
    return "\n".join(lines)


def _log(path: Path, pause: Pause) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(pause)) + "\n")
