"""The proof of an export: the other program translates, and its translations and probabilities are compared with ours.

An export is finished only if it passes. Two programs add the same numbers in another order, so their probabilities
differ by rounding, and where two continuations are as good as equal each may choose another one: such a translation
counts as a tie if this model gives both the same score to within `TIE`.
"""

import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

import torch

from ...bundle import Bundle
from ...config import DecodeConfig
from ...decode import SearchLimits, search, target_log_probabilities
from ...decode.eval_copy import eval_copy
from ...errors import ExportError, InputError
from ...fast.engine import EngineStep
from ...fast.selection import make_engine
from ...files import to_json, write_whole

TIE = 1e-3  # nats
PROOF_LENGTH = 64  # tokens of a translation, `<eos>` included
TOLERANCE = 2e-3  # nats, of the log-probability of a token
CLOSE = 0.2  # nats, on average, where the weights are rounded to int8 or float16


class ConvertedModel(Protocol):
    """An exported model in the program it was exported for. Ids have `<sos>` and `<eos>`, where not said otherwise."""

    def translate(self, sources: list[list[int]], *, beam: int, max_length: int) -> list[list[int]]:
        """The ids of each translation without `<sos>` and `<eos>`, at most `max_length`; no length penalty."""
        ...

    def log_probabilities(self, sources: list[list[int]], targets: list[list[int]]) -> list[list[float]]:
        """The log-probability of every id of each target but its first, in nats."""
        ...


@dataclass(frozen=True, slots=True)
class Proof:
    """How the translations of an exported model compare with this model's.

    Of `sentences`, `identical` were translated equally token for token with every beam of `beams`, and in `ties` the
    other program chose another hypothesis of the same score, with weights in `precision`. `max_difference` is the
    largest difference of the log-probability of a token, in nats, among `tokens`; `mean_difference` is their mean.
    `unexpressed_settings` are those of the bundle's search that the export does not keep; no beam of the proof has
    them.
    """

    sentences: int
    identical: int
    ties: int
    tokens: int
    max_difference: float
    mean_difference: float
    beams: tuple[int, ...]
    precision: str = "float32"
    unexpressed_settings: tuple[str, ...] = ()

    @property
    def close(self) -> bool:
        """Whether an export with rounded weights is good enough: the mean difference is at most `CLOSE`."""
        return self.mean_difference <= CLOSE

    @property
    def passed(self) -> bool:
        """Whether all translations are equal but for ties, and all log-probabilities within the tolerance."""
        return self.identical + self.ties == self.sentences and self.max_difference <= TOLERANCE

    def save(self, folder: Path) -> None:
        """Write `proof.json` beside the export."""
        write_whole(folder / "proof.json", to_json(asdict(self), indent=2) + "\n")


def prove(bundle: Bundle, converted: ConvertedModel, sources: list[list[int]]) -> Proof:
    """Translate `sources` with both models, greedily and with the bundle's beam, and compare.

    Sources are ids with `<sos>` and `<eos>`; translations are cut off at `PROOF_LENGTH` tokens. Those that are cut off
    are compared in the greedy search only: with a beam, the other program may prefer such a one to an ended one if it
    is more likely.
    """
    tokenizer = bundle.target_tokenizer
    banned = banned_ids(bundle)
    engine = make_engine(bundle.model)
    step = EngineStep(engine, banned_ids=banned)
    max_length = min(PROOF_LENGTH, bundle.model.config.max_length - 1)
    different, tied = set(), set()
    targets: list[list[int]] = []
    beams = tuple(sorted({1, bundle.decode.beam}))
    for beam in beams:
        config = DecodeConfig(beam=beam, alpha=0.0)
        translated = converted.translate(sources, beam=beam, max_length=max_length)
        for number, (source, ids) in enumerate(zip(sources, translated, strict=True)):
            with torch.inference_mode():
                ((best,),) = search(
                    step,
                    engine.start(torch.tensor([source])),
                    config,
                    SearchLimits(
                        sos_id=tokenizer.sos_id, eos_id=tokenizer.eos_id, max_lengths=torch.tensor([max_length])
                    ),
                )
            end = [tokenizer.eos_id] if best.finished else []
            targets.append([tokenizer.sos_id, *best.ids, *end])
            # Programs differ in which of several hypotheses that are cut off at the limit comes first,
            # and in whether one that is cut off comes before a less likely one that ended, as in transformers.
            if best.ids == ids or (beam > 1 and not best.finished):
                continue
            cut_off = len(ids) >= max_length
            end = [] if cut_off else [tokenizer.eos_id]
            score = sum(_log_probabilities(bundle, source, [tokenizer.sos_id, *ids, *end], banned))
            if beam > 1 and cut_off and score > best.log_probability:
                continue
            different.add(number)
            if abs(score - best.log_probability) <= TIE:
                tied.add(number)
    repeated = sources * len(beams)
    gains = converted.log_probabilities(repeated, targets)
    differences = [
        abs(value - expected)
        for source, target, gained in zip(repeated, targets, gains, strict=True)
        for value, expected in zip(gained, _log_probabilities(bundle, source, target, banned), strict=True)
    ]
    return Proof(
        sentences=len(sources),
        identical=len(sources) - len(different),
        ties=len(tied),
        tokens=len(differences),
        max_difference=max(differences),
        mean_difference=sum(differences) / len(differences),
        beams=beams,
    )


def require_passed(proof: Proof, *, program: str, rounded: bool = False) -> None:
    """Refuse an export whose translations are not this model's; one with `rounded` weights may be `CLOSE` to them."""
    if not (proof.close if rounded else proof.passed):
        raise ExportError(
            f"{program} translated {proof.sentences - proof.identical - proof.ties} of {proof.sentences} sentences "
            f"differently from this model; log-probabilities are up to {proof.max_difference:.1e} apart, "
            f"{proof.mean_difference:.1e} on average. Nothing was written"
        )


def probe_sources(bundle: Bundle) -> list[list[int]]:
    """The bundle's probes as ids, without those that the vocabulary cannot spell or the model is too short for."""
    sources = []
    for text in bundle.probes:
        with suppress(InputError):
            sources += bundle.source_tokenizer.encode_all([bundle.normalization(text)])
    return [ids for ids in sources if len(ids) <= bundle.model.config.max_length]


def random_sources(bundle: Bundle, count: int, *, seed: int) -> list[list[int]]:
    """Sentences of 1 to 30 random tokens, as ids with `<sos>` and `<eos>`."""
    rng, tokenizer = random.Random(seed), bundle.source_tokenizer
    excluded = {tokenizer.eos_id, *tokenizer.banned_ids(unknown=True)}
    tokens = [i for i in range(len(tokenizer)) if i not in excluded]
    longest = min(30, bundle.model.config.max_length - 2)
    return [tokenizer.frame(rng.choices(tokens, k=rng.randint(1, longest))) for _ in range(count)]


def banned_ids(bundle: Bundle) -> tuple[int, ...]:
    """The ids that no search writes: padding, the start token, and `<unk>` unless the bundle allows it."""
    return bundle.target_tokenizer.banned_ids(unknown=bundle.decode.ban_unknown)


@torch.inference_mode()
def _log_probabilities(bundle: Bundle, source: list[int], target: list[int], banned: Sequence[int]) -> list[float]:
    model = eval_copy(bundle.model)
    memory = model.encode(torch.tensor([source]))
    return target_log_probabilities(model, torch.tensor([target]), memory, banned_ids=banned)[0].tolist()
