"""Complete a draft with facts about its pairs, from statistics of a sample, and with the machine's speed."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from ..config import CleanConfig, DataConfig
from ..data.clean import read_part
from ..data.filter import mask_corpora, select_pairs
from ..data.pairs import stride
from ..data.report import DataReport
from ..machine.files import refusing_errors
from .choice_rules import choose_parallel_models, held_out_share
from .draft import Draft
from .machine_speed import recorded_speed
from .statistics import MOST_MEASURED, PairStatistics, measure_pairs
from .task_rules import NEAR_COPIES, task_kind

MOST_READ = 200_000  # pairs of each corpus, from its beginning
# How pairs are cleaned if only one target is correct. Other sources with the same target, such as the other cases of a
# noun, are other questions, so they remain if the target is held out.
EXACT_CLEANING = {"max_length_ratio": 0, "overlap": "source"}


def choose_from_pairs(
    draft: Draft, folder: Path, *, device: torch.device, workers: int = 1, parallel_models: int = 1
) -> Draft:
    """Add the statistics of its pairs to a draft, and a vocabulary that suits them.

    A run that starts from a model keeps that model's vocabulary and sizes, so only the split of its pairs is chosen.
    At most `parallel_models` models of an ensemble train at the same time. With a time budget on a CPU, the speed of
    the machine with `workers` processes, divided among these models, is also measured, and recorded in `folder`.
    """
    draft, statistics = choose_pairs(draft)
    draft = _with_parallel_models(draft, statistics, parallel_models)
    if statistics is None:
        return draft
    train = draft.tables.get("train", {})
    minutes = draft.preliminary.train.minutes
    if minutes and device.type == "cpu":
        share = max(1, workers // train.get("parallel_models", 1))
        draft = replace(draft, speed=recorded_speed(folder, minutes, share))
    return draft.with_statistics(statistics)


def _with_parallel_models(draft: Draft, statistics: PairStatistics | None, most: int) -> Draft:
    """Choose how many models of an ensemble train at the same time, if there will be an ensemble."""
    train = draft.tables.get("train", {})
    models = train.get("ensemble")
    may_choose_ensemble = statistics is not None and task_kind(statistics)[0] == "strings"
    if "parallel_models" in train or (models is None and not may_choose_ensemble):
        return draft
    count = choose_parallel_models(most, models, draft.preliminary.train.minutes)
    return draft.with_choice({"train.parallel_models": count}, f"on {most} cores") if count > 1 else draft


def choose_pairs(draft: Draft) -> tuple[Draft, PairStatistics | None]:
    """Choose the share of pairs to hold out, and how texts are cleaned. Returns the draft and the pairs' statistics.

    The statistics are None without training pairs, and for a run that starts from a model, because that model decides
    the other settings.
    """
    plan = draft.preliminary
    if not any(corpus.train for corpus in plan.data.corpora()):
        return draft, None
    no_choice = "held_out" in draft.tables.get("data", {}) or any(corpus.valid for corpus in plan.data.corpora())
    may_choose_form = "unicode" not in draft.tables.get("clean", {}) and not plan.train.init_from
    clean = replace(plan.clean, unicode="none") if may_choose_form else plan.clean
    statistics, held_out = measure_sample(plan.data, clean, choose_held_out=not no_choice)
    if statistics is None:
        return draft, None
    if held_out != plan.data.held_out:
        draft = draft.with_choice({"data.held_out": held_out}, "of few pairs a larger share is held out")
    if may_choose_form and statistics.unicode_form == "consistent" and task_kind(statistics)[0] != "text":
        reason = "some texts are not in NFC, and outputs are to be written like the targets"
        draft = draft.with_choice({"clean.unicode": "none"}, reason)
    elif clean.unicode != plan.clean.unicode and statistics.unicode_form != "NFC":
        statistics, _ = measure_sample(draft.preliminary.data, draft.preliminary.clean)
        assert statistics is not None  # normalization removes no pairs
    if statistics.shared_words >= NEAR_COPIES and "drop_copies" not in draft.tables.get("clean", {}):
        draft = draft.with_choice({"clean.drop_copies": 0}, "many words stay as they are, so whole texts may")
        statistics, _ = measure_sample(draft.preliminary.data, draft.preliminary.clean)
        assert statistics is not None  # more pairs than before
    if task_kind(statistics)[0] != "text":
        is_set = draft.tables.get("clean", {})
        cleaning = {f"clean.{name}": value for name, value in EXACT_CLEANING.items() if name not in is_set}
        draft = draft.with_choice(cleaning, "no text: any lengths, and other sources may share a target")
    return draft, None if plan.train.init_from else statistics


def measure_sample(
    data: DataConfig, clean: CleanConfig, *, choose_held_out: bool = False
) -> tuple[PairStatistics | None, float]:
    """Return the statistics of the training pairs, or None without pairs, and the share held out for validation.

    The pairs are read, cleaned and split as in `prepare`, but only the first pairs of a large corpus. `choose_held_out`
    replaces `data.held_out` with the share that suits the number of usable pairs. Refuses everything that `prepare`
    refuses.
    """
    report = DataReport()
    with TemporaryDirectory() as folder, refusing_errors(Path(folder)):
        train, valid, test = (
            read_part(part, data, clean, Path(folder), report, most=MOST_READ) for part in ("train", "valid", "test")
        )
        if choose_held_out:
            may_be_held_out = ~mask_corpora(train, lambda corpus: corpus.is_synthetic)
            usable = select_pairs(replace(data, held_out=0.0), clean, train, valid, test, DataReport()).train
            data = replace(data, held_out=held_out_share(int(may_be_held_out[usable].sum())))
        selected = select_pairs(data, clean, train, valid, test, report).train
        pairs = list(train.texts(selected[:: stride(len(selected), MOST_MEASURED)]))
        return measure_pairs(pairs) if pairs else None, data.held_out
