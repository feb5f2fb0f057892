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

from .bundle_parts import FORMAT, WEIGHTS_FILE, BundleParts, LearnedFrom, read_parts
from .config import DecodeConfig, ModelConfig
from .config.train_config import MOST_MODELS
from .errors import BundleError, ConfigError, refused
from .machine.checksums import SUMS, Checksums, code_digest, write_with_checksums
from .machine.files import parse_json, read_whole, to_json, write_whole
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

MOST_POSITIONS = 2**28  # numbers in a table of sines and cosines (1 GiB), whose size the weights do not limit
RETRIES = 3  # how often to read a folder again that is being written
ENSEMBLE_FILE = "ensemble.json"  # written when all models of an ensemble are trained
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
                LearnedFrom(self.longest_source, self.longest_repetition, self.copy_statistics, self.case_statistics)
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
        return cls(load_model(parts, build_model).to(device).eval(), **parts.fields())


def load_model(parts: BundleParts, build_model: ModelBuilder | None) -> Transformer:
    """Build the model with the weights in the file, and verify the file. Refuses a file with another checksum."""
    from safetensors import SafetensorError

    require_builder(parts, build_model)
    folder = parts.checksums.folder
    with ThreadPoolExecutor(1) as thread:  # hashing takes as long as building the model
        verified = thread.submit(parts.checksums.verify, WEIGHTS_FILE)
        try:
            model = _read_model(folder, parts.config.model, build_model)
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


def require_builder(parts: BundleParts, build_model: ModelBuilder | None) -> None:
    """Refuse a folder whose model was built by a user's function, unless `build_model` is that function."""
    builder = parts.config.builder
    if builder and build_model is None:
        raise BundleError(
            f"{parts.checksums.folder} has a model of {builder!r:.80}, which is not part of allyouneed; import that "
            "function and load the model in Python: Translator.load(folder, build_model=…)"
        )


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
        difference = bundles[0].vocabulary.first_difference(bundle.vocabulary)
        if difference:
            raise ConfigError(
                f"{names[0]} and {name} have different vocabularies: {difference}; "
                "only models of one vocabulary can be combined"
            )
        if all(bundle.languages) and all(bundles[0].languages) and bundle.languages != bundles[0].languages:
            first, second = (" → ".join(one.languages) for one in (bundles[0], bundle))
            raise ConfigError(f"{names[0]} translates {first}, but {name} {second}; they cannot be combined")


def folder_of_model(folder: Path, number: int) -> Path:
    """Return the folder of a model of the ensemble in `folder`. Model number 1 is in `folder` itself."""
    return folder if number == 1 else folder / "models" / str(number)


def mark_ensemble(folder: Path, models: int) -> None:
    """Note that a folder holds an ensemble, whose models are all trained."""
    write_whole(folder / ENSEMBLE_FILE, to_json({"models": models}) + "\n")


def folders_of_models(folder: str | Path) -> list[Path]:
    """List the folders of all models of the ensemble in `folder`; without an ensemble, only `folder`."""
    folder = Path(folder)
    note = folder / ENSEMBLE_FILE
    if not note.is_file():
        return [folder]
    with refused(BundleError, f"{note} is damaged", TypeError, KeyError, ValueError, remedy="remove it"):
        models = parse_json(read_whole(note))["models"]
        if models not in range(2, MOST_MODELS + 1):
            raise ValueError(f"models must be a whole number from 2 to {MOST_MODELS}; got {models!r:.40}")
        return [folder_of_model(folder, number) for number in range(1, models + 1)]


def model_files(folder: Path) -> list[Path]:
    """List the files that the translations of a bundle, or of an ensemble, depend on."""
    paths = [path / name for path in folders_of_models(folder) for name in FILES]
    return [path for path in [*paths, folder / ENSEMBLE_FILE] if path.is_file()]
