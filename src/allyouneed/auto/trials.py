"""Short trainings in memory, of models of half the width, whose results decide between candidates.

What is learned from them carries to the wider model: its learning rate is that of its width (`peak_learning_rate`),
times the factor that was tried.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from math import isfinite
from typing import Any, Protocol

import torch

from ..bundle import Bundle
from ..config import DataConfig, ModelConfig, Recipe, TrainConfig
from ..data.batch import batches
from ..data.encode import encode_pairs
from ..data.pairs import EncodedPairs, Pair, stride
from ..device import using_threads
from ..fast.passes import choose_loss
from ..nn import Transformer
from ..text.normalize import Normalization
from ..text.vocabulary import Vocabulary, train_vocabulary
from ..train.gradients import add_gradients
from ..train.loop import set_learning_rate
from ..train.validation import validate
from ..younger import build_model
from ..younger.muon import build_optimizer
from .candidates import Change
from .choice_rules import WARMUP_SHARE, peak_learning_rate
from .corpus_sample import CorpusSample
from .halving import Trial, TrialRecord

PROXY, NARROWEST = 2, 32  # the width of a trial's model is divided by the first, down to the second
TRAINING_SHARE = 0.75  # of the time of a trial; the rest is for its validation
MOST_VALIDATED, PROBED = 200, 8  # validation pairs: at most, and translated to measure how many the time allows


class Scores(Protocol):
    """What an evaluator returns."""

    @property
    def scores(self) -> Mapping[str, float]: ...


Evaluate = Callable[[Bundle, Sequence[Pair]], Scores]


class Trials:
    """Trains candidates on a sample of the pairs. `now` is a clock."""

    def __init__(
        self,
        sample: CorpusSample,
        metric: str,
        evaluate: Evaluate | None,
        device: torch.device,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._train, self._valid, self._total = sample.train, evenly(sample.valid, MOST_VALIDATED), sample.total
        self._metric, self._evaluate, self._device, self._now = metric, evaluate, device, now
        self._encoded = cache(self._encode)

    def set_up(self, recipes: Iterable[Recipe], seconds: float) -> float:
        """Learn the vocabularies of some recipes and encode the pairs with them; returns the seconds that took.

        None is begun later than after `seconds`.
        """
        begin = self._now()
        for recipe in recipes:
            if self._now() - begin < seconds:
                self._encoded(recipe.data, recipe.model.max_length)
        return self._now() - begin

    def run(self, trial: Trial, settings: Change, recipe: Recipe) -> TrialRecord:
        """Train the model of a recipe, narrowed, and validate it, both within the time of the trial.

        What takes longer is an update or a few translations that have begun.
        """
        begin = self._now()
        vocabulary, train, valid = self._encoded(recipe.data, recipe.model.max_length)
        proxy = narrowed(recipe)
        torch.manual_seed(proxy.train.seed)
        model = build_model(vocabulary.with_vocab_size(proxy.model)).to(self._device)
        updates, score, loss = 0, None, None
        if len(train) and len(valid):
            with using_threads(1):  # the products are small: a second one would wait, above all on a busy machine
                updates = self._fit(model, vocabulary, train, proxy.train, begin + TRAINING_SHARE * trial.seconds)
            score, loss = self._validate(model, vocabulary, valid, proxy, begin + trial.seconds)
        return TrialRecord(
            trial.round, trial.candidate, settings, round(self._now() - begin, 2), updates, self._metric, score, loss
        )

    def _encode(self, data: DataConfig, max_length: int) -> tuple[Vocabulary, EncodedPairs, EncodedPairs]:
        vocabulary = train_vocabulary(
            data,
            lambda: (pair.source for pair in self._train),
            lambda: (pair.target for pair in self._train),
            pairs=self._total,
        )
        train, valid = (encode_pairs(pairs, vocabulary, max_length=max_length) for pairs in (self._train, self._valid))
        return vocabulary, train, valid

    def _fit(
        self, model: Transformer, vocabulary: Vocabulary, pairs: EncodedPairs, config: TrainConfig, end: float
    ) -> int:
        """Train with the learning rate of a whole run, warmup to zero, until `end`; returns the number of updates."""
        feed = batches(
            pairs,
            batch_tokens=max(config.batch_tokens, pairs.longest()),
            seed=config.seed,
            pad_id=vocabulary.source.pad_id,
            target_pad_id=vocabulary.target.pad_id,
        )
        optimizer, begin, updates = build_optimizer(model, config), self._now(), 0
        loss_of, _ = choose_loss(model, config)
        model.train()
        while (share := (self._now() - begin) / max(1e-3, end - begin)) < 1:
            updates += 1
            warmup = min(1.0, max(share, 0.001) / WARMUP_SHARE)
            set_learning_rate(optimizer, config.learning_rate * warmup * (1 - share))
            loss, _ = add_gradients(model, [next(feed)], config, loss_of)
            if not isfinite(loss.item()):
                break
            optimizer.step()
            optimizer.zero_grad()
        return updates

    def _validate(
        self, model: Transformer, vocabulary: Vocabulary, valid: EncodedPairs, recipe: Recipe, end: float
    ) -> tuple[float | None, float | None]:
        """The score of as many pairs as can be translated until `end`, and the loss of all in nats a pair.

        Pairs are compared since their number, unlike that of the tokens, does not depend on the vocabulary.
        """
        model.eval()
        tokens = len(valid.target.ids) - len(valid)
        loss = validate(model, valid, batch_tokens=recipe.train.batch_tokens)[0] * tokens / len(valid)
        if not isfinite(loss):
            return None, None
        if self._evaluate is None:
            return None, round(loss, 4)
        bundle = Bundle(
            model,
            vocabulary.source,
            vocabulary.target,
            recipe.decode,
            normalization=Normalization.from_config(recipe.clean),
        )
        with torch.inference_mode():
            score = self._score(bundle, end)
        return None if score is None or not isfinite(score) else round(score, 2), round(loss, 4)

    def _score(self, bundle: Bundle, end: float) -> float | None:
        assert self._evaluate
        few, begin = evenly(self._valid, PROBED), self._now()
        scores = self._evaluate(bundle, few).scores
        seconds = (self._now() - begin) / len(few)
        affordable = len(self._valid) if not seconds else int((end - self._now()) / seconds)
        if affordable > len(few):
            scores = self._evaluate(bundle, evenly(self._valid, affordable)).scores
        return scores.get(self._metric)


def evenly(pairs: Sequence[Pair], count: int) -> Sequence[Pair]:
    """At most `count` pairs, evenly spaced."""
    return pairs[:: stride(len(pairs), count)]


def narrowed(recipe: Recipe) -> Recipe:
    """The recipe of a model of half the width, and with the learning rate that suits this."""
    model, train = recipe.model, recipe.train
    width = model.d_model // PROXY
    if width < NARROWEST or width % (2 * model.heads):
        return recipe
    sizes: dict[str, Any] = {"d_model": width, "d_ff": max(1, model.d_ff // PROXY)}
    factor = peak_learning_rate(width, train.optimizer) / peak_learning_rate(model.d_model, train.optimizer)
    narrow: ModelConfig = replace(model, **sizes)
    return replace(recipe, model=narrow, train=replace(train, learning_rate=factor * train.learning_rate))
