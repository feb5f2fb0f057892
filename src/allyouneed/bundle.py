"""A trained model as one folder; docs/bundle.md describes the format.

    config.json          format version, sizes of the model, defaults of the search, normalization of text, statistics
    weights.safetensors  every learned tensor once, under its name in the model
    tokenizer.json       the vocabulary, in the format of the tokenizers library; if the target has its own vocabulary,
                         that is in tokenizer.target.json, and this file is the source's
    README.md            a model card: what the model was trained on, and how well it translates
    SHA256SUMS           the SHA-256 of each of these files

A bundle contains no code, and loading it runs none.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from .config import DecodeConfig, ModelConfig
from .config.settings import build_parts, build_settings, from_table, require_whole
from .config.suggest import near_path
from .errors import BundleError, ConfigError, DataError, refused
from .machine.checksums import SUMS, Checksums, code_digest, write_with_checksums
from .machine.files import parse_json, read_whole, to_json
from .text.letter_case import CaseStatistics
from .text.normalize import Normalization
from .text.spans import CopyStatistics
from .text.tokenizer import Tokenizer
from .text.vocabulary import Vocabulary

if TYPE_CHECKING:
    import torch

    from .nn import Transformer

ModelBuilder = Callable[[ModelConfig], "Transformer"]
"""A function that builds the model of a config: `build_model` of younger/, or one of your own."""

FORMAT = 2
MOST_POSITIONS = 2**28  # numbers in a table of sines and cosines (1 GiB), whose size the weights do not limit
RETRIES = 3  # how often to read a folder again that is being written
WEIGHTS_FILE = "weights.safetensors"
FILES = ("config.json", WEIGHTS_FILE, "tokenizer.json", "tokenizer.target.json")  # translations depend on these files


@cache
def nn_digest() -> str:
    """Compute a digest of the `nn/` code of this installation."""
    return code_digest(Path(__file__).parent.joinpath("nn").glob("*.py"))


def builder_name(build_model: ModelBuilder | None) -> str:
    """Return the name of a function that builds models, as module:function; "" for None, which means `build_model`."""
    return f"{build_model.__module__}:{build_model.__qualname__}" if build_model else ""


@dataclass(frozen=True, slots=True, repr=False)
class Bundle:
    """A model, its vocabularies, the defaults of its search, and some statistics of its training pairs.

    If both sides share a vocabulary, `target_tokenizer` is the same object as `source_tokenizer`.
    """

    model: Transformer
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    decode: DecodeConfig
    card: str = ""
    # How often the training pairs copied a text that needs no translation.
    copy_statistics: CopyStatistics = field(default_factory=CopyStatistics)
    longest_source: int = 0  # tokens of the longest training source, apart from outliers; 0 if unknown
    longest_repetition: int = 0  # tokens; 99.9 % of the training targets have no longer repetition
    case_statistics: CaseStatistics = field(default_factory=CaseStatistics)
    normalization: Normalization = field(default_factory=Normalization)  # how text was normalized in training
    languages: tuple[str, str] = ("", "")  # source and target, as BCP 47 tags; empty if unknown
    probes: tuple[str, ...] = ()  # some sources of validation pairs, on which exports are compared
    # Digest of the `nn/` that the model was made with; empty if unknown.
    definition: str = field(default_factory=nn_digest)
    # The user's function that built the model, as module:function; empty means younger's `build_model`.
    builder: str = ""

    @property
    def config(self) -> ModelConfig:
        """The sizes of the model."""
        return self.model.config

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every learned tensor, by name. A shared tensor appears once."""
        return {name: tuple(weight.shape) for name, weight in self.model.named_parameters()}

    def weights(self) -> dict[str, memoryview[Any]]:
        """Return every learned tensor in float32, by name. A shared tensor appears once."""
        from .nn.weights import weight_buffers

        return weight_buffers(self.model)

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokenizers of both sides."""
        return Vocabulary(self.source_tokenizer, self.target_tokenizer)

    @property
    def license(self) -> str:
        """The license in the header of the model card, in the form that model hubs read; "" if there is none."""
        return read_license(split_card(self.card)[0])

    def save(self, folder: str | Path) -> None:
        """Write the folder.

        Each file is written completely or not at all, and `config.json` after the files that it needs.

        The weights are written in float32. Refuses weights that are not finite, before anything is written.
        """
        from safetensors.torch import save

        from .nn.weights import weights

        folder = Path(folder)
        tensors = {name: tensor.float() for name, tensor in weights(self.model).items()}
        for name, tensor in tensors.items():
            _require_finite(name, tensor, "save the model as it was before training failed")
        folder.mkdir(parents=True, exist_ok=True)
        config = {
            "format": FORMAT,
            "checksums": SUMS,
            "model": asdict(self.config),
            "decode": asdict(self.decode),
            "normalization": asdict(self.normalization),
            "languages": dict(zip(("source", "target"), self.languages, strict=True)),
            "probes": list(self.probes),
            "definition": self.definition,
            **({"builder": self.builder} if self.builder else {}),
            "learned_from": asdict(
                _LearnedFrom(self.longest_source, self.longest_repetition, self.copy_statistics, self.case_statistics)
            ),
        }
        texts = self.vocabulary.files() | {"README.md": self.card, "config.json": to_json(config, indent=2) + "\n"}
        contents = {name: text.encode() for name, text in texts.items()}
        write_with_checksums(folder, {WEIGHTS_FILE: save(tensors)} | contents)

    def __repr__(self) -> str:
        """Show languages, size and vocabulary in a line. By default, Python would print a page of the model's parts."""
        sizes = {len(self.source_tokenizer): None, len(self.target_tokenizer): None}
        languages = f"{' → '.join(self.languages)}, " if all(self.languages) else ""
        parameters = sum(map(math.prod, self.shapes.values()))
        tokens = " and ".join(f"{size:,}" for size in sizes)
        return f"Bundle({languages}{parameters:,} parameters, {tokens} tokens)"

    @classmethod
    def load(
        cls, folder: str | Path, *, device: torch.device | None = None, build_model: ModelBuilder | None = None
    ) -> Self:
        """Read a folder that `save` wrote, ready to translate. Refuses an incomplete or damaged folder.

        If a function of your own built the model, pass it as `build_model`. Without it such a folder is refused,
        because a function named by a file is never imported.
        """
        for _ in range(RETRIES):
            checksums = Checksums(Path(folder))
            try:
                return cls.read(checksums, device, build_model)
            except BundleError:
                if checksums.is_current():  # otherwise somebody was writing the folder, such as a training run
                    raise
        return cls.read(Checksums(Path(folder)), device, build_model)

    @classmethod
    def read(cls, checksums: Checksums, device: torch.device | None, build_model: ModelBuilder | None) -> Self:
        """Read the folder that has these checksums, once; see `load`."""
        parts = read_parts(checksums)
        require_builder(parts, build_model)
        model = _verified_model(parts, build_model)
        return cls(model.to(device).eval(), **parts.fields)


@dataclass(frozen=True, slots=True)
class _LearnedFrom:
    """The statistics of the training pairs, as config.json stores them."""

    longest_source: int = 0
    longest_repetition: int = 0
    copies: CopyStatistics = field(default_factory=CopyStatistics)
    letter_case: CaseStatistics = field(default_factory=CaseStatistics)

    def __post_init__(self) -> None:
        require_whole("longest_source", self.longest_source, least=0)
        require_whole("longest_repetition", self.longest_repetition, least=0)


_OPTIONAL = {
    "longest_source",
    "longest_repetition",
    "alone",
    "inside",
    "signs",
    "letter_case",
    "contradicted",
}  # the fields


@dataclass(frozen=True, slots=True)
class BundleParts:
    """The contents of a bundle's folder except the weights: the model's sizes, and the `fields` of a `Bundle`."""

    checksums: Checksums
    sizes: ModelConfig
    vocabulary: Vocabulary
    fields: dict[str, Any]


def read_parts(checksums: Checksums) -> BundleParts:
    """Read all small files of a bundle. Refuses damaged files, and files that do not belong together."""
    folder = checksums.folder
    config = _read_config(folder, checksums)
    if config.get("checksums") and not checksums.present:
        raise _not_whole(folder, f"{SUMS} does not exist")
    # Bundles of earlier versions have no normalization; their training used these defaults.
    settings = build_parts(
        {"model": ModelConfig, "decode": DecodeConfig, "normalization": Normalization},
        {"normalization": {}} | config,
        where=f"{folder}/config.json",
    )
    sizes: ModelConfig = settings["model"]
    learned_from = _config_part(folder, config, "learned_from", _LearnedFrom)
    fields = {
        "decode": settings["decode"],
        "normalization": settings["normalization"],
        "copy_statistics": learned_from.copies,
        "case_statistics": learned_from.letter_case,
        "longest_source": learned_from.longest_source,
        "longest_repetition": learned_from.longest_repetition,
        "languages": _languages(folder, config),
        "probes": _config_part(folder, config, "probes", tuple[str, ...]),
        "definition": str(config.get("definition", "")),
        "builder": str(config.get("builder", "")),
    }
    names = ("tokenizer.json", "tokenizer.target.json")[: 1 if sizes.target_vocab_size is None else 2]
    checksums.require_lines("README.md", WEIGHTS_FILE, *names)
    texts = [_read(folder, name, checksums) for name in names]
    card = _read(folder, "README.md")  # anybody may edit the card
    _read(folder, WEIGHTS_FILE, count=0)  # refuses a missing file before any work
    vocabulary = _parse_vocabulary(folder, dict(zip(names, texts, strict=True)), sizes)
    fields["source_tokenizer"] = vocabulary.source
    fields["target_tokenizer"] = vocabulary.target
    fields["card"] = card.decode(errors="replace")
    return BundleParts(checksums, sizes, vocabulary, fields)


def _parse_vocabulary(folder: Path, texts: dict[str, bytes], sizes: ModelConfig) -> Vocabulary:
    """Return the tokenizers of both sides. Refuses tokenizers that do not fit a model of these sizes."""
    tokenizers = []
    for name, content in texts.items():
        try:
            tokenizers.append(Tokenizer.from_json(content.decode()))
        except (UnicodeDecodeError, DataError) as error:
            raise _not_whole(folder, f"{folder}/{name} is not a tokenizer: {error}") from error
    vocabulary = Vocabulary(tokenizers[0], tokenizers[-1])
    for name, tokenizer, size, pad_id in (
        ("tokenizer.json", vocabulary.source, sizes.vocab_size, sizes.pad_id),
        (
            "tokenizer.target.json",
            vocabulary.target,
            sizes.effective_target_vocab_size,
            sizes.effective_target_pad_id,
        ),
    ):
        if len(tokenizer) != size:
            raise BundleError(
                f"{folder}/{name} has {len(tokenizer)} ids but the model was made for {size}; "
                "the two files belong to different models"
            )
        is_source = name == "tokenizer.json" and not vocabulary.joint
        _require_framing(tokenizer, pad_id, f"{folder}/{name}", is_source=is_source)
    return vocabulary


def _require_framing(tokenizer: Tokenizer, pad_id: int, path: str, *, is_source: bool) -> None:
    """Refuse a tokenizer that does not put `<sos>` and `<eos>` around a text, or that has another padding id.

    Only a tokenizer of sources may omit `<sos>`.
    """
    ids = tokenizer.encode("")
    framed = [tokenizer.sos_id, tokenizer.eos_id]
    if [*ids[:1], *ids[1:][-1:]] != framed and not (is_source and ids == framed[1:]):
        raise BundleError(
            f"{path} must put {framed} (<sos>, <eos>) around a text; it makes {ids} of an empty one. "
            "Its post_processor is missing or wrong"
        )
    if tokenizer.pad_id != pad_id:
        raise BundleError(f"{path} has <pad> as id {tokenizer.pad_id} but the model was made for pad_id={pad_id}")


def _verified_model(parts: BundleParts, build_model: ModelBuilder | None) -> Transformer:
    """Build the model with the weights in the file, and verify the file. Refuses a file with another checksum."""
    from safetensors import SafetensorError

    folder = parts.checksums.folder
    with ThreadPoolExecutor(1) as thread:  # hashing takes as long as building the model
        verified = thread.submit(parts.checksums.verify, WEIGHTS_FILE)
        try:
            model = _read_model(folder, parts.sizes, build_model)
        except (SafetensorError, ConfigError) as error:
            verified.result()  # a damaged file explains the error
            raise not_its_weights(folder, error) from error
        verified.result()
    return model


def _read_model(folder: Path, sizes: ModelConfig, build_model: ModelBuilder | None = None) -> Transformer:
    """Build the model with the weights in the file. Compares the file's header before allocating memory."""
    import torch
    from safetensors import safe_open

    from .fast.uninitialized import UninitializedWeights
    from .nn.weights import require_shapes, set_weights
    from .younger import build_model as build_known_model

    build_model = build_model or build_known_model
    with safe_open(folder / WEIGHTS_FILE, framework="pt") as file:
        parts = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118  no mapping
        for stack, layers in (("encoder", sizes.encoder_layers), ("decoder", sizes.decoder_layers)):
            stored = {name.split(".")[2] for name in parts if name.startswith(f"{stack}.layers.")}
            if len(stored) != layers:
                raise ConfigError(f"the {stack} must have {layers} layers; got {len(stored)}")
        if sizes.positions != "learned" and sizes.max_length * sizes.d_model > MOST_POSITIONS:
            raise ConfigError(
                f"max_length times d_model must be at most {MOST_POSITIONS}; "
                f"got max_length={sizes.max_length}, d_model={sizes.d_model}"
            )
        with torch.device("meta"), UninitializedWeights():
            require_shapes(build_model(sizes), {name: part.get_shape() for name, part in parts.items()})
        for name, part in parts.items():
            if part.get_dtype() != "F32":
                raise ConfigError(f"{name} must be float32 (F32); got {part.get_dtype()}; convert it and save again")
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    for name, tensor in tensors.items():
        _require_finite(name, tensor, "load a bundle from before training failed")
    with UninitializedWeights():
        model = build_model(sizes)
    set_weights(model, tensors)
    return model


def not_its_weights(folder: Path, why: object) -> BundleError:
    """Make the error for weights that do not belong to the model."""
    return BundleError(f"{folder}/{WEIGHTS_FILE} does not hold this model's weights: {why}")


def _require_finite(name: str, tensor: torch.Tensor, what_to_do: str) -> None:
    if not tensor.isfinite().all():
        raise ConfigError(f"{name} has numbers that are not finite; {what_to_do}")


def _read_config(folder: Path, checksums: Checksums | None = None) -> dict[str, Any]:
    content = _read(folder, "config.json", checksums)
    try:
        read = parse_json(content)
    except ValueError as error:
        raise BundleError(f"{folder}/config.json {error}") from error
    config: dict[str, Any] = read if isinstance(read, dict) else {}
    if (version := config.get("format")) != FORMAT:
        newer = isinstance(version, int) and version > FORMAT
        raise BundleError(
            f"{folder}/config.json has format {version!r:.40}; this version of allyouneed reads format {FORMAT}"
            + ("; a newer version wrote it: upgrade allyouneed" if newer else "")
        )
    return config


def _languages(folder: Path, config: dict[str, Any]) -> tuple[str, str]:
    table = _config_part(folder, config, "languages", dict[str, str])
    source = table.get("source", "")
    target = table.get("target", "")
    # Languages of imported bundles may not be valid tags ("de_DE"), but must not contain signs that terminals act on.
    if not re.fullmatch(r"[\w-]*", source) or not re.fullmatch(r"[\w-]*", target):
        raise BundleError(f"{folder}/config.json, languages, must be tags of letters, digits and -; got {table!r:.80}")
    return source, target


def _config_part(folder: Path, config: dict[str, Any], name: str, kind: Any) -> Any:
    """Read a part of config.json as an object of `kind`, with default values if an earlier version lacks the part."""
    what = f"{folder}/config.json, {name}, is not what `allyouneed train` writes"
    with refused(BundleError, what, AttributeError, KeyError, TypeError, ConfigError):
        return from_table(kind, config[name], _OPTIONAL) if name in config else kind()


def require_builder(parts: BundleParts, build_model: ModelBuilder | None) -> None:
    """Refuse a folder whose model was built by a user's function, unless `build_model` is that function."""
    builder = parts.fields["builder"]
    if builder and build_model is None:
        raise BundleError(
            f"{parts.checksums.folder} has a model of {builder!r:.80}, which is not part of allyouneed; import that "
            "function and load the model in Python: Translator.load(folder, build_model=…)"
        )


def _read(folder: Path, name: str, checksums: Checksums | None = None, *, count: int = -1) -> bytes:
    """Read a file, or its first `count` bytes. With `checksums`, refuse a file whose SHA-256 is not listed there."""
    if not folder.is_dir():
        in_runs = Path("runs", folder.name)
        meant = f"; did you mean {in_runs}?" if in_runs.is_dir() else near_path(folder) or near_path(in_runs)
        raise BundleError(f"{folder} is not a folder; expected a bundle, as `allyouneed train` leaves it{meant}")
    try:
        return checksums.read(name) if checksums else read_whole(folder / name, count)
    except OSError as error:
        raise _not_whole(folder, f"{name}: {error.strerror or error}") from error


def _not_whole(folder: Path, why: str) -> BundleError:
    return BundleError(
        f"{folder} is not a complete bundle ({why}); a run that was stopped before its first checkpoint leaves none"
    )


def read_builder(folder: Path) -> str:
    """Return the name of the user's function that built a bundle's model, or "". Loads no weights."""
    return str(_read_config(folder).get("builder", ""))


def read_languages(folder: str | Path) -> tuple[str, str]:
    """Read the source and target language of a bundle as BCP 47 tags; empty if it names none. Loads no weights."""
    return _languages(Path(folder), _read_config(Path(folder)))


def read_sizes(folder: str | Path) -> ModelConfig:
    """Read the sizes of a bundle's model. Loads no weights."""
    return _sizes(Path(folder), _read_config(Path(folder)))


def read_vocabulary(folder: str | Path) -> Vocabulary:
    """Read the tokenizers of both sides of a bundle. Loads no weights."""
    return read_parts(Checksums(Path(folder))).vocabulary


def read_decode(folder: str | Path) -> DecodeConfig:
    """Read the settings of the search in a bundle. Loads no weights."""
    return _decode(Path(folder), _read_config(Path(folder)))


def _decode(folder: Path, config: dict[str, Any]) -> DecodeConfig:
    return build_settings(DecodeConfig, config.get("decode"), where=f"{folder}/config.json, decode,")


def _sizes(folder: Path, config: dict[str, Any]) -> ModelConfig:
    return build_settings(ModelConfig, config.get("model"), where=f"{folder}/config.json, model,")


def list_bundles(folder: str | Path = "runs") -> list[Path]:
    """List the bundles among the folders in `folder`, the newest first."""
    known = [config for config in Path(folder).glob("*/config.json") if (config.parent / WEIGHTS_FILE).exists()]
    return [config.parent for config in sorted(known, key=lambda config: config.stat().st_mtime, reverse=True)]


class OtherDefinitionWarning(UserWarning):
    """Warns that a model was made with an `nn/` that differs from this installation's."""


def warn_of_another_definition(bundles: Sequence[Bundle]) -> None:
    """Warn once if any of the bundles was made with an `nn/` that differs from this installation's."""
    if any(bundle.definition not in ("", nn_digest()) for bundle in bundles):
        text = "this model was made with another `nn/` than the one here, so it may translate otherwise than before"
        warnings.warn(text, OtherDefinitionWarning, stacklevel=1)


def split_card(card: str) -> tuple[str, str]:
    """Split a model card into its header, which model hubs read between two `---` lines, and the rest.

    The header is "" if there is none.
    """
    head = re.match(r"---\r?\n(.*?\n)---\s+", card, re.DOTALL)
    return (head[1], card[head.end() :]) if head else ("", card)


def read_license(head: str) -> str:
    """Return the license that the header of a model card names, or ""."""
    from .config.data_config import LICENSE_NAME

    named = re.search(rf"^license:\s*['\"]?({LICENSE_NAME})['\"]?\s*$", head, re.MULTILINE)
    return named[1] if named else ""


def require_one_vocabulary(bundles: Sequence[Bundle], names: Sequence[str]) -> None:
    """Refuse bundles that cannot be combined, because their vocabularies or languages differ from the first one's."""
    for bundle, name in zip(bundles[1:], names[1:], strict=True):
        if difference := bundles[0].vocabulary.first_difference(bundle.vocabulary):
            raise ConfigError(
                f"{names[0]} and {name} have different vocabularies: {difference}; "
                "only models of one vocabulary can be combined"
            )
        if all(bundle.languages) and all(bundles[0].languages) and bundle.languages != bundles[0].languages:
            first, second = (" → ".join(one.languages) for one in (bundles[0], bundle))
            raise ConfigError(f"{names[0]} translates {first}, but {name} {second}; they cannot be combined")


def model_files(folder: Path) -> list[Path]:
    """List the files of a bundle that its translations depend on."""
    return [folder / name for name in FILES if (folder / name).is_file()]
