"""From a draft to one with all that its pairs decide: their statistics first, then trials, if a time budget has room.

The decision follows from the statistics, the recorded speed of the machine and the recorded trials alone.
"""

from dataclasses import replace
from pathlib import Path

import torch

from ..data.clean import ProgressCallback
from .candidates import list_candidates
from .choice_rules import SMALL_CORPUS, Corpus
from .corpus_sample import CorpusSample, estimate_total, read_corpus_sample
from .draft import Draft
from .halving import TrialRecord, best_record, count_candidates, next_trial
from .machine_speed import recorded_speed
from .task_rules import NEAR_COPIES, task_kind
from .trial_records import TrialFile
from .trials import Evaluate, Trials

TRIALS_SHARE = 0.1  # of the time budget, at most
CHARACTERS_PER_TOKEN = 4  # of text, roughly


def choose_from_pairs(
    draft: Draft,
    folder: Path,
    *,
    evaluate: Evaluate | None,
    device: torch.device,
    progress: ProgressCallback,
    workers: int = 1,
) -> Draft:
    """The draft with the statistics of its pairs, a vocabulary that suits them, and what trials chose.

    A run that starts from a model has that model's vocabulary and sizes, so only its pairs are split. With a time
    budget on a CPU the speed of the machine with so many `workers` counts, too. That speed and the trials are recorded
    in `folder`; what is recorded there already is not done again. Without a time budget there are no trials.
    """
    draft, sample = choose_pairs(draft)
    if sample is None or sample.statistics is None:
        return draft
    minutes = draft.preliminary.train.minutes
    if minutes and device.type == "cpu":
        draft = replace(draft, cores=recorded_speed(folder, workers))
    draft = draft.with_statistics(sample.statistics)
    seconds = TRIALS_SHARE * 60 * minutes
    # Trials of seconds, judged on the validation pairs of a small corpus, prefer what learns fast to what generalizes.
    is_small = sample.total <= SMALL_CORPUS and task_kind(sample.statistics)[0] == "strings"
    has_trials = seconds and sample.valid and not is_small
    return _try(draft, sample, folder, seconds, evaluate, device, progress) if has_trials else draft


def choose_pairs(draft: Draft) -> tuple[Draft, CorpusSample | None]:
    """The draft with the share of the pairs to hold out and whether copies are kept, and a sample of the pairs.

    A run that starts from a model has all else from it, so there is no sample; nor is there without training pairs.
    """
    plan = draft.preliminary
    if not any(corpus.train for corpus in plan.data.corpora()):
        return draft, None
    no_choice = "held_out" in draft.tables.get("data", {}) or any(corpus.valid for corpus in plan.data.corpora())
    sample = read_corpus_sample(plan.data, plan.clean, choose_held_out=not no_choice)
    if sample.statistics is None:
        return draft, None
    if sample.held_out != plan.data.held_out:
        draft = draft.with_choice({"data.held_out": sample.held_out}, "of few pairs a larger share is held out")
    if sample.statistics.shared_words >= NEAR_COPIES and "drop_copies" not in draft.tables.get("clean", {}):
        draft = draft.with_choice({"clean.drop_copies": 0}, "many words stay as they are, so whole texts may")
        sample = read_corpus_sample(draft.preliminary.data, draft.preliminary.clean)
    return draft, None if plan.train.init_from else sample


def _try(
    draft: Draft,
    sample: CorpusSample,
    folder: Path,
    seconds: float,
    evaluate: Evaluate | None,
    device: torch.device,
    progress: ProgressCallback,
) -> Draft:
    assert draft.statistics
    sample = sample._replace(total=estimate_total(sample, draft.preliminary.data))
    corpus = Corpus(
        pairs=sample.total,
        tokens=_estimate_tokens(draft, sample),
        longest=1,
        has_valid=True,
        exact=draft.is_exact,
        gpu=device.type != "cpu",
        minutes=draft.preliminary.train.minutes,
        cores=draft.cores,
    )
    candidates = list_candidates(draft, corpus, count_candidates(seconds, exact=corpus.exact))
    if len(candidates) < 2:
        return draft
    file = TrialFile(folder, draft.statistics, candidates, seconds)
    trials = Trials(sample, "exact" if corpus.exact else "chrf", evaluate, device)
    recipes = [draft.with_choice(settings, "").complete(corpus)[0] for settings in candidates]
    if next_trial(len(candidates), file.records, seconds):
        progress("trying settings", len(file.records), None)
        seconds -= trials.set_up(recipes, seconds)
    while trial := next_trial(len(candidates), file.records, seconds):
        progress("trying settings", len(file.records), None)
        file.add(trials.run(trial, candidates[trial.candidate], recipes[trial.candidate]))
    best = best_record(len(candidates), file.records)
    return draft.with_trials(best.settings if best else {}, describe_trials(file.records, best))


def _estimate_tokens(draft: Draft, sample: CorpusSample) -> int:
    """The tokens of the longer side of all training pairs, before there is a vocabulary."""
    characters = max(sum(map(len, side)) for side in zip(*sample.train, strict=True))
    return int(characters * sample.total / len(sample.train) / (1 if draft.is_exact else CHARACTERS_PER_TOKEN))


def describe_trials(records: list[TrialRecord], best: TrialRecord | None) -> str:
    """What was decided and why, in one line."""
    count = f"{len(records)} trials in {sum(record.seconds for record in records):.0f} seconds"
    if best is None:
        return f"{count} are too few to decide; the rules decide"
    rules = next(record for record in records if record.round == best.round and not record.candidate)
    if best is rules:
        return f"{count}: nothing was better than the rules, {describe_record(rules)}"
    return f"{count}: {describe_record(best)}; by the rules {describe_record(rules)}"


def describe_record(record: TrialRecord) -> str:
    """Score and loss of a trial."""
    score = "" if record.score is None else f"{record.metric} {record.score:.1f}, "
    return f"{score}{'no finite loss' if record.loss is None else f'loss {record.loss:.3g}'}"
