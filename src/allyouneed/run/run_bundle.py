"""The bundle of a run and its model card; and bundles that average the weights of several runs."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from math import ceil
from pathlib import Path

from ..bundle import Bundle, require_one_vocabulary, split_card
from ..config import Recipe
from ..config.language_tags import language_name
from ..data.pairs import Side, stride
from ..data.prepared import PreparedData
from ..errors import ConfigError
from ..fast.uninitialized import UninitializedWeights
from ..machine.files import folder_written_whole, parse_json, read_whole
from ..machine.interpreter import versions
from ..nn import Transformer
from ..nn.weights import set_weights, weights
from ..text.normalize import Normalization
from ..train.averaging import average_weights
from ..translator.repetition import longest_repetition
from ..younger import build_model
from .callback import Validation, telling_scores
from .log import choices
from .state import MIN_UPDATES

CARD_USAGE = ("from allyouneed import Translator", 'Translator.load("this/folder")("…")')  # shown in every card


def describe_model(model: Transformer) -> str:
    """Describe the sizes of a model in one line."""
    config = model.config
    return (
        f"{config.encoder_layers}+{config.decoder_layers} layers, d_model {config.d_model}, d_ff {config.d_ff}, "
        f"{config.heads} heads: {model.parameter_count():,} parameters"
    )


def write_card(name: str, lines: Sequence[str], *, tags: Iterable[str], license_name: str) -> str:
    """Write the README.md of a bundle, with its languages and license in the header, which model hubs read."""
    metadata = ["language:", *(f"- {tag}" for tag in dict.fromkeys(tags))] if any(tags) else []
    metadata += [f"license: {license_name}"] if license_name else []
    head = ["---", *metadata, "---", ""] if metadata else []
    return "\n".join([*head, f"# {name}", "", *lines, "", *(f"    {line}" for line in CARD_USAGE), ""])


def model_card(
    name: str, recipe: Recipe, pairs: int, model: Transformer, validation: Validation, languages: tuple[str, str]
) -> str:
    """Write the README.md of a run's bundle, with its number of training pairs and the scores of a validation."""
    init_from = recipe.train.init_from
    data = [corpus_name(corpus.train) for corpus in recipe.data.corpora() if corpus.train]
    origin = f", starting from {init_from}" if init_from else ""
    lines = [
        f"A Transformer (Vaswani et al., 2017) with {describe_model(model)}.",
        f"Trained on {pairs:,} pairs for {validation.step:,} updates{origin}.",
    ]
    if validation.step < MIN_UPDATES and not init_from:
        lines.append(
            f"Untrained: a model learns little in fewer than {MIN_UPDATES} updates; give it more minutes or more steps."
        )
    if all(languages):
        source, target = (f"{language_name(tag)} ({tag})" for tag in languages)
        lines.append(f"Translates {source} into {target}.")
    if data:
        lines.append(f"Training data: {', '.join(data)}.")
    if recipe.data.license:
        lines.append(f"License: {recipe.data.license}.")
    if validation.averaged > 1:
        lines.append(f"The weights are the average of the last {validation.averaged} checkpoints.")
    if validation.valid_loss is not None:
        lines.append(
            f"Validation loss {validation.valid_loss:.4f} nats per token "
            f"(it chooses among {choices(validation.valid_loss):,.3f} tokens), "
            f"{validation.accuracy:.2f} % of tokens correct."
        )
    lines += [
        f"Validation {score}: {value:.2f}."
        for score, value in telling_scores(validation.scores).items()
        if value is not None
    ]
    lines.append(f"Trained with {versions()}.")
    tags = languages if all(languages) else ()
    return write_card(name, lines, tags=tags, license_name=recipe.data.license)


DISTILLATION_FILE = "distillation.json"  # next to a teacher's translations (transfer/distillation.py)
PROBES = 20  # sources of validation pairs that a bundle keeps
USUAL = 0.999  # share of the training pairs; the rest may be faulty
FAR_LONGER = 1.5  # a longer text is an outlier if it is this many times as long
MOST_TARGETS = 5_000  # evenly spaced targets that are searched for repetitions


def make_bundle(
    recipe: Recipe,
    data: PreparedData,
    model: Transformer,
    languages: tuple[str, str],
    card: str = "",
    builder: str = "",
) -> Bundle:
    """Return the bundle: the model, its vocabulary, and the settings and statistics that translation needs."""
    vocabulary = data.vocabulary
    return Bundle(
        model,
        vocabulary.source,
        vocabulary.target,
        recipe.decode,
        card=card,
        copy_statistics=data.copy_statistics,
        case_statistics=data.case_statistics,
        longest_source=usual_length(data.train.source),
        longest_repetition=usual_repetition(data.train.target),
        normalization=Normalization.from_config(recipe.clean),
        languages=languages,
        probes=tuple(pair.source for pair in data.validation_samples(PROBES)),
        builder=builder,
    )


def usual_length(sources: Side) -> int:
    """Return the length of the longest training source in tokens.

    Outliers, a thousandth of the sources, are ignored.
    """
    longest = sources.length_quantile(1)
    usual = sources.length_quantile(USUAL)
    return longest if longest <= FAR_LONGER * usual else usual


def usual_repetition(targets: Side) -> int:
    """Return the length of the longest repetition in the training targets in tokens, ignoring a thousandth of them."""
    some = range(0, len(targets), stride(len(targets), MOST_TARGETS))
    lengths = sorted(longest_repetition(targets[i]).length for i in some)
    return lengths[ceil(USUAL * len(lengths)) - 1]


def corpus_name(train: str | tuple[str, ...]) -> str:
    """Name a corpus by its files without folders, or by its task. Translations by a teacher get the original name."""
    files = [Path(file) for file in ([train] if isinstance(train, str) else train)]
    manifest = files[0].parent / DISTILLATION_FILE
    described = parse_json(read_whole(manifest))["corpora"] if manifest.is_file() else {}
    return " and ".join(described.get(file.name, file.name) for file in files)


def average_bundles(folders: Sequence[str | Path], output: str | Path) -> Bundle:
    """Write a bundle with the mean weights of two or more bundles to the new folder `output`.

    Everything except the weights and the card comes from the first bundle. Refuses bundles whose vocabularies,
    languages or sizes differ from the first one's.
    """
    names = [str(folders)] if isinstance(folders, str | Path) else [str(folder) for folder in folders]
    if len(names) < 2:
        raise ConfigError(f"an average needs at least two bundles; got {', '.join(names) or 'none'}")
    with folder_written_whole(Path(output)) as partial:
        bundles = [Bundle.load(name) for name in names]
        require_one_vocabulary(bundles, names)
        _require_one_config(bundles, names)
        with UninitializedWeights():
            model = build_model(bundles[0].model.config)
        set_weights(model, average_weights(weights(bundle.model) for bundle in bundles))
        average = replace(bundles[0], model=model.eval(), card=_card(Path(output).name, bundles, names))
        average.save(partial)
    return average


def _require_one_config(bundles: Sequence[Bundle], names: Sequence[str]) -> None:
    first = asdict(bundles[0].model.config)
    for bundle, name in zip(bundles, names, strict=True):
        for key, value in asdict(bundle.model.config).items():
            if value != first[key] and key not in ("dropout", "attention_dropout"):  # both matter only in training
                raise ConfigError(
                    f"{names[0]} has model.{key}={first[key]!r}, but {name} has {value!r}; only weights of models of "
                    "one kind and size have a mean"
                )


def _card(name: str, bundles: Sequence[Bundle], names: Sequence[str]) -> str:
    """Write a card that says what was averaged, followed by the cards of all bundles."""
    head = split_card(bundles[0].card)[0]
    cards = [split_card(bundle.card)[1].strip() for bundle in bundles]
    parts = [
        (f"---\n{head}---\n\n" if head else "") + f"# {name}",
        f"A Transformer (Vaswani et al., 2017) with {describe_model(bundles[0].model)}.\n"
        f"The weights are the mean of {len(names)} models, whose cards follow: {', '.join(names)}.",
        *cards,
    ]
    return "\n\n".join(filter(None, parts)) + "\n"
