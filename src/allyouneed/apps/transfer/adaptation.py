"""Teach a trained model new pairs, such as corrections of its translations, in a short run.

Every epoch mixes the corrections with pairs that the model knows, because a network that is trained on new pairs only
forgets the old ones. The best model is the one that translates held-out corrections best, among the models that still
translate the known validation pairs about as well as before.

    output/pairs/corrections.*.jsonl, known.*.jsonl    the pairs for training, validation and test
    output/pairs/adaptation.json                       what these pairs were made from; written last
    output/adaptation.json                             scores on both test sets, before and after
    output/…                                           the run and its bundle (run/run.py)
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from math import ceil
from pathlib import Path
from typing import Any

from ...auto import Draft
from ...auto.choice_rules import ALWAYS, peak_learning_rate
from ...bundle import Bundle, model_files
from ...config import Recipe
from ...data.clean import dedup_key
from ...data.pairs import Pair
from ...data.tabular import iterate_pairs
from ...errors import ConfigError, DataError, InputError
from ...evaluation import evaluate_greedily
from ...machine.files import (
    followed,
    locked,
    parse_json,
    read_json_lines,
    read_whole,
    to_json,
    to_json_lines,
    unused,
    write_whole,
)
from ...metrics import can_rise, make_metrics
from ...run import Evaluation, Hooks, SilentCallback, TrainingCallback
from ...run.run_folder import has_run, refuse_a_run
from ..reports.fitting import train_draft
from ..reports.report import try_to_write_report
from .known_pairs import Parts, check_vocabulary, count_tokens, find_known_pairs, split

EPOCH = 1_000  # fewer corrections are repeated until an epoch has this many

# chrF that the known validation pairs may lose before the loss counts against a model. Any change to a model gives
# other translations, which may be just as good.
_TOLERANCE = {"pairs": 0.5, "outputs": 10.0}
PENALTY = 3.0  # points of chrF on the corrections that make up for a further point lost on known pairs
FEW_TOKENS, FEW_STEPS = 100_000, 1_500  # three epochs of fewer tokens would be too few updates
# From MANY corrections on, the learning rate is this share of a new model's, because so many cannot be memorized. For
# fewer corrections it is a fifth.
MANY, LEARNING_RATE_OF_MANY = 10_000, 0.5
PATIENCE = 10  # of 20 validations: scores fall at the start, and rise again as the learning rate falls
_SEED = 1  # for the parts, and for the draw of known pairs


@dataclass(frozen=True, slots=True)
class Adaptation:
    """An adapted bundle, and its scores on the test sets "corrections" and "known", next to the old bundle's.

    No test pair was trained on. If a set has too few pairs to hold some out, it has no scores. If no target of a test
    set has four words, its scores do not include BLEU. `are_outputs` says that the references of "known" are
    translations by the old bundle. `learned` is for corrections without scores: how many of them each bundle translates
    exactly as corrected, and their number.
    """

    bundle: Bundle
    before: Mapping[str, Mapping[str, float]]
    after: Mapping[str, Mapping[str, float]]
    are_outputs: bool
    learned: tuple[int, int, int] | None


def adapt_bundle(
    folder: str | Path,
    corrections: Iterable[tuple[str, str]],
    output: str | Path,
    *,
    mix: float = 3.0,
    sources: Sequence[str] = (),
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    callback: TrainingCallback | None = None,
    resume: bool = False,
) -> Adaptation:
    """Continue training the bundle in `folder` on `corrections`, pairs of texts, and write the result to `output`.

    An epoch has `mix` known pairs for every correction. The known pairs are the training pairs of the bundle's run, if
    they are in its folder. Otherwise they are the bundle's own translations of `sources` or, without these, of its
    sample sources. The tables `settings` replace settings chosen here. With `resume`, an interrupted adaptation is
    continued.

    Refuses an empty set of corrections, corrections with a tenth of their tokens unknown to the vocabulary, and
    an `output` that exists. Refuses to resume with other corrections, another bundle or another `mix`.
    """
    folder, output, callback = Path(folder), followed(Path(output)), callback or SilentCallback()
    _ = Draft.from_tables(settings or {}).preliminary  # refuses wrong settings before any work
    base = Bundle.load(folder)
    pairs = _usable(base, corrections, callback)
    # The lock of a run is held while pairs are collected, and again during training. This lock also covers the time in
    # between.
    with locked(output.with_name(f"{output.name}.pairs"), what=str(output)):
        with locked(output, what=str(output)):
            plan = _Plan(folder, output / "pairs", pairs, mix, tuple(sources))
            if has_run(output) and not plan.manifest.is_file():
                raise ConfigError(f"{output} contains a run that is not an adaptation; name another folder").mended_by(
                    "--output", str(unused(output))
                )
            if not resume:
                refuse_a_run(output, remedy="delete it")
            prepared = plan.prepare(base, callback, resume=resume)
        parts = {name: plan.read(name) for name in ("corrections", "known")}
        draft = Draft.from_tables(_tables(plan, base, parts, settings or {}))
        evaluate = _JointEvaluator(base, frozenset(parts["corrections"].valid), prepared["are_outputs"])
        hooks = Hooks(callback=callback, evaluate=evaluate, report=try_to_write_report)
        bundle = train_draft(draft, output, hooks, resume=resume)
        after = _scores(bundle, parts)
        write_whole(
            output / "adaptation.json", to_json({"before": prepared["before"], "after": after}, indent=2) + "\n"
        )
        trained = parts["corrections"].train
        is_split = parts["corrections"].is_split
        learned = None if is_split else (_exact(base, trained), _exact(bundle, trained), len(trained))
        result = Adaptation(bundle, prepared["before"], after, prepared["are_outputs"], learned)
        for message in _disappointments(result):
            callback.on_message("warning", message)
        return result


def _disappointments(result: Adaptation) -> Iterator[str]:
    """Describe what went wrong, according to the scores on both test sets, and what may help."""
    gains = {name: result.after[name]["chrf"] - result.before[name]["chrf"] for name in result.before}
    if result.learned:
        before, after, count = result.learned
        gain: float = after - before
        changed = f"{after:,} of {count:,} corrections are translated as they say, {before:,} before"
    else:
        gain = gains["corrections"]
        changed = f"the corrections changed by {gain:+.1f} chrF"
    if gain <= 0:
        yield (
            f"{changed}, so nothing was gained; a longer training (--minutes, train.steps) or a higher "
            "train.learning_rate learns more"
        )
    if -gains.get("known", 0.0) > _TOLERANCE["outputs" if result.are_outputs else "pairs"]:
        yield f"what the model knew lost {-gains['known']:.1f} chrF; a larger --mix keeps more"


def _usable(base: Bundle, corrections: Iterable[tuple[str, str]], callback: TrainingCallback) -> list[Pair]:
    """Normalize the corrections as the base does, without duplicates. Reports pairs that are dropped or changed."""
    rows = [Pair(*map(base.normalization, map(str.strip, pair))) for pair in iterate_pairs(corrections)]
    pairs = list(dict.fromkeys(pair for pair in rows if pair.source and pair.target))
    if not pairs:
        raise DataError("there are no corrections to learn: expected pairs of a source and its translation")
    if not (pairs := _short_enough(base, different := pairs)):
        raise DataError(
            f"there are no corrections to learn: all {len(different):,} are longer than the "
            f"{base.model.config.max_length:,} tokens that the model reads; split them into sentences"
        )
    if left_out := len(rows) - len(pairs):
        callback.on_message(
            "corrections", f"{left_out:,} of {len(rows):,} are left out: repeated, with an empty side, or too long"
        )
    counts = Counter(pair.source for pair in pairs)
    if several := [source for source, count in counts.items() if count > 1]:
        callback.on_message(
            "warning",
            f"{len(several):,} of {len(counts):,} corrected texts have several translations, such as {several[0]!r}; "
            "all of these are learned, so the model may give any of them",
        )
    return pairs


def _short_enough(base: Bundle, pairs: list[Pair]) -> list[Pair]:
    """Keep the pairs that the model can read. Keeps all if the vocabulary cannot encode one: see `check_vocabulary`."""
    sides = zip((base.source_tokenizer, base.target_tokenizer), zip(*pairs, strict=True), strict=True)
    try:
        lengths = [map(len, tokenizer.encode_all(texts)) for tokenizer, texts in sides]
    except InputError:
        return pairs
    longest = base.model.config.max_length
    return [pair for pair, *both in zip(pairs, *lengths, strict=True) if max(both) <= longest]


@dataclass(frozen=True, slots=True)
class _Plan:
    """The inputs of an adaptation, and the folder of its pairs."""

    bundle: Path
    folder: Path
    corrections: list[Pair]
    mix: float
    sources: tuple[str, ...]

    def prepare(self, base: Bundle, callback: TrainingCallback, *, resume: bool) -> dict[str, Any]:
        """Write the pairs, and score the base on them. Returns `adaptation.json`, perhaps from an earlier call."""
        origin = {
            "bundle": _digest(*(path.read_bytes() for path in model_files(self.bundle))),
            "corrections": _digest(self.corrections),
            "sources": _digest(self.sources),
            "mix": self.mix,
        }
        if resume and self.manifest.is_file():
            stored: dict[str, Any] = parse_json(read_whole(self.manifest))
            if changed := [name for name, value in origin.items() if stored["origin"][name] != value]:
                raise ConfigError(
                    f"{self.folder.parent} was started with other values of: {', '.join(changed)}; resume with the "
                    "same ones, or start another adaptation with --output"
                )
            return stored
        parts = {"corrections": split(self.corrections, seed=_SEED)}
        count = ceil((self.mix or 1) * _epoch_corrections(parts["corrections"]))
        callback.on_prepare("known pairs", 0, None)
        known = find_known_pairs(self.bundle, base, self.sources, count=count, seed=_SEED)
        parts["known"] = _without(known.parts, self.corrections)
        if not all(parts["known"]):
            raise DataError(f"the corrections have the sources of {known.origin}; name other texts with --sources")
        for message in check_vocabulary(base, self.corrections, parts["known"].train, self.bundle):
            callback.on_message("warning", message)
        callback.on_message("known", f"{known.origin}: {len(parts['known'].train):,} to mix in")
        self.folder.mkdir(parents=True, exist_ok=True)
        for name, some in parts.items():
            for part, rows in some._asdict().items():
                write_whole(self._file(name, part), to_json_lines(pair._asdict() for pair in rows))
        table = {
            "origin": origin,
            "are_outputs": known.are_outputs,
            "before": _scores(base, parts),
        }
        write_whole(self.manifest, to_json(table, indent=2) + "\n")
        return table

    @property
    def manifest(self) -> Path:
        """The file that says what the pairs were made from."""
        return self.folder / "adaptation.json"

    def read(self, name: str) -> Parts:
        """Read the stored corrections or known pairs."""
        return Parts(*([Pair(**row) for row in read_json_lines(self._file(name, part))] for part in Parts._fields))

    def files(self, name: str) -> dict[str, str]:
        """Return the settings that name the files of the stored pairs as a corpus."""
        return {part: str(self._file(name, part).resolve()) for part in Parts._fields}

    def _file(self, name: str, part: str) -> Path:
        return self.folder / f"{name}.{part}.jsonl"


@dataclass(frozen=True, slots=True)
class _JointEvaluator:
    """Scores a model on both kinds of validation pairs, and combines the scores into one, "joint"."""

    base: Bundle
    corrections: frozenset[Pair]
    are_outputs: bool
    before: dict[tuple[Pair, ...], float] = field(default_factory=dict)  # chrF of the base on sets of known pairs

    def __call__(self, bundle: Bundle, pairs: Sequence[Pair]) -> Evaluation:
        """Compute both chrF scores, and "joint": the corrections' chrF minus a penalty for the loss on known pairs."""
        known_pairs = tuple(pair for pair in pairs if pair not in self.corrections)
        new = evaluate_greedily(bundle, [pair for pair in pairs if pair in self.corrections])
        known = evaluate_greedily(bundle, known_pairs)
        if known_pairs not in self.before:
            self.before[known_pairs] = evaluate_greedily(self.base, known_pairs).scores["chrf"]
        lost = self.before[known_pairs] - known.scores["chrf"]
        loss = lost - _TOLERANCE["outputs" if self.are_outputs else "pairs"]
        scores = {"new": new.scores["chrf"], "known": known.scores["chrf"]}
        return Evaluation(scores | {"joint": scores["new"] - PENALTY * max(0.0, loss)}, [*new.samples, *known.samples])


def _tables(plan: _Plan, base: Bundle, parts: Mapping[str, Parts], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Make the tables of the recipe.

    Settings that depend on the size of the corpus are chosen as for any fine-tuning.
    """
    count = _epoch_corrections(parts["corrections"])
    counts = {"corrections": count, "known": min(plan.mix * count, len(parts["known"].train))}
    weights = {name: counts[name] / len(some.train) for name, some in parts.items()}
    corpora = [plan.files("corrections") | {"weight": weights["corrections"]}]
    known = plan.files("known")
    corpora.append(
        known | {"weight": weights["known"]} if plan.mix else {part: known[part] for part in ("valid", "test")}
    )
    before = Recipe.read(plan.bundle / "recipe.toml").train if (plan.bundle / "recipe.toml").is_file() else None
    kept: dict[str, Any] = {key: getattr(before, key) for key in ("label_smoothing", "precision")} if before else {}
    tokens = sum(weights[name] * count_tokens(base, some.train) for name, some in parts.items())
    if tokens / 2 < FEW_TOKENS:
        kept["steps"] = FEW_STEPS
    if len(parts["corrections"].train) >= MANY:
        optimizer = settings.get("train", {}).get("optimizer", ALWAYS["optimizer"])
        kept["learning_rate"] = LEARNING_RATE_OF_MANY * peak_learning_rate(base.model.config.d_model, optimizer)
    languages = dict(zip(("source_language", "target_language"), base.languages, strict=True))
    tables: dict[str, Any] = {
        "data": {"corpus": corpora, **(languages if all(base.languages) else {})},
        # Corrections were chosen by people, and known pairs are already clean.
        "clean": {
            **asdict(base.normalization), "max_chars": 0, "max_length_ratio": 0, "drop_copies": 0, "overlap": "none",
        },
        "train": {
            **kept, "init_from": str(plan.bundle), "patience": PATIENCE, "early_stopping_metric": "joint",
            "validate_samples": sum(len(some.valid) for some in parts.values()),
        },
        "decode": {key: value for key, value in asdict(base.decode).items() if value is not None},
    }  # fmt: skip
    return {name: {**tables.get(name, {}), **settings.get(name, {})} for name in {**tables, **settings}}


def _epoch_corrections(corrections: Parts) -> int:
    """Count the corrections in an epoch, with repetitions."""
    return max(EPOCH, len(corrections.train))


def _without(parts: Parts, corrections: Sequence[Pair]) -> Parts:
    """Remove known pairs whose sources are corrected, because their translations have changed."""
    corrected = {dedup_key(pair.source) for pair in corrections}
    return Parts(*([pair for pair in part if dedup_key(pair.source) not in corrected] for part in parts))


def _scores(bundle: Bundle, parts: Mapping[str, Parts]) -> dict[str, dict[str, float]]:
    """Score the test pairs that are not trained on, without BLEU if no target has four words."""
    return {
        name: _telling(evaluate_greedily(bundle, some.test).scores, some.test)
        for name, some in parts.items()
        if some.is_split
    }


def _exact(bundle: Bundle, pairs: Sequence[Pair]) -> int:
    """Count the pairs that a bundle translates exactly."""
    return round(evaluate_greedily(bundle, pairs).scores["exact"] / 100 * len(pairs))


def _telling(scores: Mapping[str, float], pairs: Sequence[Pair]) -> dict[str, float]:
    metrics, references = make_metrics(tuple(scores)), [pair.target for pair in pairs]
    return {name: score for name, score in scores.items() if can_rise(metrics[name], references)}


def _digest(*values: object) -> str:
    return sha256(repr(values).encode()).hexdigest()[:16]
