"""Export a bundle: write it in another program's format, compare the copy with the model, and keep or remove it.

For the comparison, the other program translates, and its translations and probabilities must equal ours. Programs add
the same numbers in different orders, so probabilities differ by rounding. If two continuations are almost equal,
programs may choose differently: such a translation counts as a tie if our model gives both the same score within `TIE`.
A web page contains the engine of a CPU, so it is also compared with that engine in its own precision, bit by bit.
"""

import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Literal, Protocol, cast

import torch

from ...bundle import Bundle
from ...config import DecodeConfig, ModelConfig
from ...config.export_limits import exportable, unexpressed_settings, usual_settings
from ...decode import SearchLimits, greedy_search, search
from ...errors import ConfigError, ExportError, InputError, require_extra
from ...machine.files import folder_written_whole, to_json, write_whole
from ...native.engine import NativeEngine
from ...native.engine import Precision as NativePrecision
from ...native.library import load_library
from ...nn.weights import weight_buffers
from ...translator.definition import DefinitionEngine
from ...translator.engine import pick_precision
from ...translator.likelihood import eval_copy, target_log_probabilities
from ...translator.scoring import score_targets

ExportPrecision = Literal["float32", "float16", "int8"]

TIE = 1e-3  # nats
PROOF_LENGTH = 64  # tokens of a translation, with `<eos>`
TOLERANCE = 2e-3  # nats, for the log-probability of a token
CLOSE = 0.2  # nats, on average, if weights are rounded to int8 or float16


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """A format, written by `write_FORMAT(bundle, folder, precision)` in its module of this folder.

    The extra with the name of the format installs its libraries. The default precision is the first in the list or,
    with `as_on_cpu`, the precision with which a CPU translates.
    """

    program: str  # runs the export
    folder: str  # the class that runs an exported folder in that program
    libraries: tuple[str, ...]
    precisions: tuple[ExportPrecision, ...]
    as_on_cpu: bool = False

    def choose_precision(self, config: ModelConfig) -> ExportPrecision:
        """Choose the precision for a model of this size, if the user has not chosen any."""
        return pick_precision(config) if self.as_on_cpu else self.precisions[0]


FORMATS = {  # by the name of the module in this folder
    "ctranslate2": ExportFormat("CTranslate2", "CTranslate2Folder", ("ctranslate2",), ("float32", "float16", "int8")),
    "onnx": ExportFormat("onnxruntime", "ONNXFolder", ("onnxruntime", "onnxscript"), ("float32",)),
    "huggingface": ExportFormat("transformers", "MarianFolder", ("transformers",), ("float32", "float16")),
    "html": ExportFormat("the page", "HTMLFolder", ("py_mini_racer",), ("float32", "int8"), as_on_cpu=True),
}


class ConvertedModel(Protocol):
    """An exported model in its program. Ids include `<sos>` and `<eos>` unless stated otherwise."""

    def translate(self, source: list[int], *, beam: int, max_length: int) -> list[int]:
        """Return the ids of the translation, at most `max_length`, without `<sos>` and `<eos>`: no length penalty."""
        ...

    def log_probabilities(self, source: list[int], target: list[int]) -> list[float]:
        """Return the log-probability, in nats, of every id of the target except the first."""
        ...


@dataclass(frozen=True, slots=True)
class Proof:
    """How the translations of an exported model compare with the original model's.

    Of `sentences` sentences, `identical` were translated with the same tokens for every beam of `beams`, and in `ties`
    the other program chose another hypothesis with the same score. `precision` is that of the exported weights. Over
    `tokens` tokens, `max_difference` is the largest difference of a log-probability, in nats, and `mean_difference` the
    mean. `unexpressed_settings` are settings of the bundle's search that the export cannot keep; the comparison does
    not use them.
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
        """True if an export with rounded weights is close enough: its mean difference is at most `CLOSE`."""
        return self.mean_difference <= CLOSE

    @property
    def passed(self) -> bool:
        """True if all translations are equal except for ties, and all log-probabilities are within the tolerance."""
        return self.identical + self.ties == self.sentences and self.max_difference <= TOLERANCE


def export_bundle(
    bundle: Bundle | str | Path,
    folder: str | Path,
    *,
    to: str,
    precision: str | None = None,
    sentences: int = 50,
    decode: Mapping[str, object] | None = None,
) -> Proof:
    """Write a bundle, or the bundle in a folder, to a new folder in the format `to`, and check the export.

    The check compares translations of the bundle's probes and of `sentences` random sentences. Settings in `decode`
    replace the bundle's; only a web page contains a search that uses them. The folder appears once the check has
    passed, completely or not at all. Refuses a model that the format cannot express, a model that reads fewer than 3
    tokens, and a folder that exists.
    """
    name = "BUNDLE" if isinstance(bundle, Bundle) else bundle
    bundle = bundle if isinstance(bundle, Bundle) else Bundle.load(bundle)
    if to not in FORMATS:
        raise ConfigError(f"the format must be one of {', '.join(FORMATS)}; got {to!r}")
    bundle = _with_settings(bundle, decode or {}, to)
    chosen, config = FORMATS[to], bundle.config
    precision = precision or chosen.choose_precision(config)
    if precision not in chosen.precisions:
        raise ConfigError(f"{to} is exported in {' or '.join(chosen.precisions)}; got precision {precision!r}")
    if reason := exportable(config, (bundle.source_tokenizer, bundle.target_tokenizer))[to]:
        raise ExportError(reason)
    unexpressed = unexpressed_settings(bundle.decode, to, bundle.target_tokenizer)
    if to == "html" and unexpressed:
        without = f"allyouneed export {name} {folder} --to html {usual_settings(unexpressed)}"
        raise ExportError(f"the page cannot search with {', '.join(unexpressed)}; export without: {without}")
    if sentences < 1:
        raise ConfigError(f"sentences must be at least 1; got {sentences}")
    if config.max_length < 3:
        raise ExportError(
            f"a model with model.max_length = {config.max_length} reads no text between <sos> and <eos>, "
            "so that its export cannot be compared with it; at least 3 are needed"
        )
    for library in chosen.libraries:
        require_extra(library, f"an export to {to}", to)
    module = import_module(f".{to}", __package__)
    with folder_written_whole(Path(folder)) as partial:
        sources = probe_sources(bundle) + random_sources(bundle, sentences, seed=1)
        getattr(module, f"write_{to}")(bundle, partial, precision)
        converted: ConvertedModel = getattr(module, chosen.folder)(partial, bundle)
        proof = prove(bundle, converted, sources)
        if not (proof.passed if precision == "float32" else proof.close):
            raise ExportError(
                f"{chosen.program} translated {proof.sentences - proof.identical - proof.ties} of {proof.sentences} "
                f"sentences differently from this model; log-probabilities are up to {proof.max_difference:.1e} apart, "
                f"{proof.mean_difference:.1e} on average. Nothing was written"
            )
        if chosen.as_on_cpu and load_library():
            require_same_bits(bundle, converted, sources, cast(NativePrecision, precision))
        proof = replace(proof, precision=precision, unexpressed_settings=unexpressed)
        write_whole(partial / "proof.json", to_json(asdict(proof), indent=2) + "\n")
    return proof


def _with_settings(bundle: Bundle, decode: Mapping[str, object], to: str) -> Bundle:
    """Change settings of the bundle's search. Refuses any settings for a format without a search."""
    if decode and to != "html":
        raise ConfigError(f"only html has a search; the caller of an export to {to} sets decode.{next(iter(decode))}")
    return replace(bundle, decode=bundle.decode.with_changes(decode))


def prove(bundle: Bundle, converted: ConvertedModel, sources: list[list[int]]) -> Proof:
    """Translate `sources` with both models, greedily and with the bundle's beam, and compare.

    Sources are ids with `<sos>` and `<eos>`. Translations are cut off at `PROOF_LENGTH` tokens. Cut-off translations
    are only compared in the greedy search, because with a beam the other program may prefer a cut-off translation that
    is more likely than one that ended.
    """
    tokenizer, banned, engine = bundle.target_tokenizer, banned_ids(bundle), DefinitionEngine(bundle.model, "float32")
    max_length = min(PROOF_LENGTH, bundle.config.max_length - 1)
    limits = SearchLimits(sos_id=tokenizer.sos_id, eos_id=tokenizer.eos_id, max_lengths=[max_length])
    different, tied = set(), set()
    differences: list[float] = []
    beams = tuple(sorted({1, bundle.decode.beam}))
    for beam in beams:
        for number, source in enumerate(sources):
            step = engine.start([source], banned_ids=banned)
            ((best,),) = search(step, DecodeConfig(beam=beam, alpha=0.0), limits)
            target = tokenizer.frame(best.ids) if best.finished else [tokenizer.sos_id, *best.ids]
            expected = _log_probabilities(bundle, source, target, banned)
            gained = converted.log_probabilities(source, target)
            differences += [abs(one - other) for one, other in zip(gained, expected, strict=True)]
            ids = converted.translate(source, beam=beam, max_length=max_length)
            # Programs differ in the order of hypotheses that are cut off at the limit. Some, such as transformers, also
            # put these before a less likely hypothesis that ended.
            if best.ids == ids or (beam > 1 and not best.finished):
                continue
            cut_off = len(ids) >= max_length
            target = [tokenizer.sos_id, *ids] if cut_off else tokenizer.frame(ids)
            score = sum(_log_probabilities(bundle, source, target, banned))
            if beam > 1 and cut_off and score > best.log_probability:
                continue
            different.add(number)
            if abs(score - best.log_probability) <= TIE:
                tied.add(number)
    return Proof(
        sentences=len(sources),
        identical=len(sources) - len(different),
        ties=len(tied),
        tokens=len(differences),
        max_difference=max(differences),
        mean_difference=sum(differences) / len(differences),
        beams=beams,
    )


def require_same_bits(
    bundle: Bundle, converted: ConvertedModel, sources: list[list[int]], precision: NativePrecision
) -> None:
    """Refuse an export whose log-probabilities in greedy search differ from the engine in C by a single bit."""
    engine = NativeEngine(bundle.config, weight_buffers(bundle.model), precision)
    tokenizer, banned = bundle.target_tokenizer, banned_ids(bundle)
    limit = min(PROOF_LENGTH, bundle.config.max_length)
    limits = SearchLimits(sos_id=tokenizer.sos_id, eos_id=tokenizer.eos_id, max_lengths=[limit])
    for source in sources:
        (best,) = greedy_search(engine.start([source], banned_ids=banned), limits)
        target = tokenizer.frame(best.ids) if best.finished else [tokenizer.sos_id, *best.ids]
        (expected,) = score_targets(engine.start([source], banned_ids=banned), [target])
        found = converted.log_probabilities(source, target)
        if found != expected:
            difference = max(abs(one - other) for one, other in zip(found, expected, strict=True))
            raise ExportError(
                f"in {precision} the log-probabilities of the export differ by {difference:.1e} nats from those of the "
                "engine in C, which must be the same to the bit (native/engine.wasm). Nothing was written"
            )


def probe_sources(bundle: Bundle) -> list[list[int]]:
    """Encode the bundle's probes, without those that the vocabulary cannot spell or that are too long for the model."""
    sources = []
    for text in bundle.probes:
        with suppress(InputError):
            sources += bundle.source_tokenizer.encode_all([bundle.normalization(text)])
    return [ids for ids in sources if len(ids) <= bundle.config.max_length]


def random_sources(bundle: Bundle, count: int, *, seed: int) -> list[list[int]]:
    """Draw sentences of 1 to 30 random tokens, as ids with `<sos>` and `<eos>`."""
    rng, tokenizer = random.Random(seed), bundle.source_tokenizer
    excluded = {tokenizer.eos_id, *tokenizer.banned_ids(unknown=True)}
    tokens = [i for i in range(len(tokenizer)) if i not in excluded]
    longest = min(30, bundle.config.max_length - 2)
    return [tokenizer.frame(rng.choices(tokens, k=rng.randint(1, longest))) for _ in range(count)]


def banned_ids(bundle: Bundle) -> tuple[int, ...]:
    """Return the ids that no search may write: padding, the start token, and `<unk>` unless the bundle allows it."""
    decode = bundle.decode
    return bundle.target_tokenizer.banned_ids(unknown=decode.ban_unknown and not decode.replace_unknown)


@torch.inference_mode()
def _log_probabilities(bundle: Bundle, source: list[int], target: list[int], banned: Sequence[int]) -> list[float]:
    model = eval_copy(bundle.model)
    memory = model.encode(torch.tensor([source]))
    return target_log_probabilities(model, torch.tensor([target]), memory, banned_ids=banned)[0].tolist()
