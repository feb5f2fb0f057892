"""The end of a run: translate and score its test pairs within a limited time, next to baselines."""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ...bundle import Bundle, folders_of_models
from ...config import Recipe
from ...data.pairs import Pair, Side
from ...data.prepared_files import open_training_ids
from ...errors import InputError
from ...evaluation.baselines import affordable_pairs, encode_known, find_nearest
from ...evaluation.held_out import find_prepared, held_out_pairs
from ...evaluation.model_scores import ScoredSet, TranslatedSet
from ...metrics import QUICK_METRICS, can_rise, make_metrics
from ...translator import Translator
from .advice import Evidence, advise
from .record import COPY, MODEL, NEAREST, HeldOutResult, RunRecord
from .report import write_report

FINAL_TEST_SECONDS = 60.0
MAX_TEST_PAIRS = 500
SHOWN_SAMPLES = 20
FIRST_ROUND = 16  # pairs that are translated to measure the speed
TRANSLATING, SEARCHING = 0.6, 0.1  # shares of the time; the rest is for scores and the report
MAX_SEARCH_SECONDS = 3.0  # for finding the nearest training pairs


def evaluate_run(
    bundle: Bundle,
    run: Path,
    *,
    seconds: float = FINAL_TEST_SECONDS,
    on_progress: Callable[[int], None] = lambda _: None,
) -> HeldOutResult:
    """Score the finished `bundle` of a run on its test pairs, compare it with baselines, and add this to the report.

    Up to 500 random test pairs are translated with the settings of the bundle, or as many as `seconds` permit. The
    scores of the model have 95 % intervals. The baselines are the source itself, and the target of the nearest training
    pair. A text that the model refuses counts as an empty translation. The result is written to `test.json`,
    `test-samples.txt` and `report.html` in the folder `run`, with twenty of the translations and, if the scores are
    poor, with advice. Refuses a run without test pairs.
    """
    held_out = held_out_pairs(run)
    pairs = random.Random(0).sample(held_out, min(len(held_out), MAX_TEST_PAIRS))
    sources = [pair.source for pair in pairs]
    others = [Bundle.load(folder) for folder in folders_of_models(run)[1:]]
    outputs, refused = translate_within(
        Translator(bundle, *others), sources, TRANSLATING * seconds, on_progress=on_progress
    )
    notes = []
    if len(outputs) < len(pairs):
        notes.append(
            f"{len(outputs):,} of {len(pairs):,} test pairs: there was no time for more in {seconds:.0f} seconds"
        )
    if refused:
        notes.append(f"{refused:,} sources could not be translated, and count as wrong")
    pairs = pairs[: len(outputs)]
    systems = {MODEL: outputs, COPY: [pair.source for pair in pairs]}
    evidence = Evidence()
    if known := open_training_ids(find_prepared(run, Recipe.read(run / "recipe.toml"))):
        searched = affordable_pairs(len(pairs), len(known), seconds=min(MAX_SEARCH_SECONDS, SEARCHING * seconds))
        systems[NEAREST], evidence = _nearest_targets(bundle, pairs, known.source, known.target, searched=searched)
        if searched < len(known):
            notes.append(f"nearest of {searched:,} training pairs, evenly spaced among {len(known):,}")
    result = _score(bundle, pairs, systems, held_out=len(held_out), refused=refused, notes=notes)
    record = RunRecord.read(run)
    result = replace(
        result, step=record.last_step(), advice=advise(result, record, evidence, pairs=len(known) if known else None)
    )
    result.write(run)
    write_report(run)
    return result


def translate_within(
    translator: Translator, sources: Sequence[str], seconds: float, *, on_progress: Callable[[int], None]
) -> tuple[list[str], int]:
    """Translate at least sixteen sources, and more as time permits. Also count the refused sources."""
    outputs: list[str] = []
    refused: list[InputError] = []
    begin, count = time.monotonic(), FIRST_ROUND
    while count >= 1 and len(outputs) < len(sources):
        some = sources[len(outputs) : len(outputs) + count]
        translations = translator.translations(some, on_refused=refused.append, on_progress=on_progress)
        outputs += [translation.text for translation in translations]
        elapsed = time.monotonic() - begin
        # Large batches are faster than the first round, so later rounds seldom exceed the plan.
        count = int(len(outputs) * min(4.0, (seconds - elapsed) / max(elapsed, 1e-9)))
    return outputs, len(refused)


def _nearest_targets(
    bundle: Bundle, pairs: Sequence[Pair], sources: Side, targets: Side, *, searched: int
) -> tuple[list[str], Evidence]:
    queries = [encode_known(bundle.source_tokenizer, pair.source) for pair in pairs]
    nearest = find_nearest(queries, sources, searched=searched)[:, 0]
    outputs = bundle.target_tokenizer.decode_all([targets[row] for row in nearest])
    seen = [sources[row] == query for row, query in zip(nearest, queries, strict=True)]
    contradicted = sum(
        is_seen and output != pair.target for is_seen, output, pair in zip(seen, outputs, pairs, strict=True)
    )
    return outputs, Evidence(seen=sum(seen), contradicted=contradicted)


def _score(
    bundle: Bundle,
    pairs: Sequence[Pair],
    systems: dict[str, list[str]],
    *,
    held_out: int,
    refused: int,
    notes: Sequence[str],
) -> HeldOutResult:
    references = [[bundle.normalization(pair.target)] for pair in pairs]
    metrics = {name: metric for name, metric in make_metrics(QUICK_METRICS).items() if can_rise(metric, references)}
    scored = {
        name: ScoredSet.count(TranslatedSet(name, [pair.source for pair in pairs], references, outputs), metrics)
        for name, outputs in systems.items()
    }
    model = scored[MODEL]
    if model.counts["exact"].score == 100:
        # With this share of errors, there is a 5 % chance that this many pairs have none.
        undetected = 1 - 0.05 ** (1 / len(pairs))
        notes = [*notes, f"no error in {len(pairs):,} pairs: up to {undetected:.1%} of others may be wrong"]
    return HeldOutResult(
        step=0,
        pairs=len(pairs),
        held_out=held_out,
        refused=refused,
        scores={name: {metric: counts.score for metric, counts in one.counts.items()} for name, one in scored.items()},
        intervals={name: (interval.low, interval.high) for name, interval in model.intervals().items()},
        signatures={name: counts.signature for name, counts in model.counts.items()},
        samples=model.translated.samples()[:SHOWN_SAMPLES],
        notes=notes,
    )
