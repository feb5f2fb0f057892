"""The bundle of a run, and its card."""

from math import ceil
from pathlib import Path

from ..bundle import Bundle
from ..config import Recipe
from ..data.pairs import Side, stride
from ..data.prepared import PreparedData
from ..decode import longest_repetition
from ..files import parse_json, read_whole
from ..nn import Transformer
from ..text.normalize import Normalization
from .callback import Validation
from .model_card import model_card

DISTILLATION_FILE = "distillation.json"  # beside the translations of a teacher (transfer/distillation.py)
PROBES = 20  # sources of validation pairs that a bundle keeps
USUAL = 0.999  # share of the training pairs; the others may be faulty
FAR_LONGER = 1.5  # times as long as these: an outlier
MOST_TARGETS = 5_000  # searched for repetitions, evenly spaced


def make_bundle(
    recipe: Recipe, data: PreparedData, model: Transformer, languages: tuple[str, str], card: str = ""
) -> Bundle:
    """The model with the vocabulary, the settings and the facts of its data that translating needs."""
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
    )


def usual_length(sources: Side) -> int:
    """The tokens of the longest training source; if that is an outlier, of the longest but for a thousandth of them."""
    longest, usual = sources.length_quantile(1), sources.length_quantile(USUAL)
    return longest if longest <= FAR_LONGER * usual else usual


def usual_repetition(targets: Side) -> int:
    """The tokens of the longest repetition in training targets, but for a thousandth of them."""
    some = range(0, len(targets), stride(len(targets), MOST_TARGETS))
    lengths = sorted(longest_repetition(targets[i]).length for i in some)
    return lengths[ceil(USUAL * len(lengths)) - 1]


def make_card(
    name: str,
    recipe: Recipe,
    data: PreparedData,
    model: Transformer,
    validation: Validation,
    languages: tuple[str, str],
) -> str:
    """The README of a bundle, with the scores of a validation."""
    return model_card(
        name,
        model,
        validation,
        pairs=len(data.train),
        languages=languages,
        license=recipe.data.license,
        data=[corpus_name(corpus.train) for corpus in recipe.data.corpora() if corpus.train],
        init_from=recipe.train.init_from,
    )


def corpus_name(train: str | tuple[str, ...]) -> str:
    """The files of a corpus without their folders, or the name of a task; of a teacher's translations what they are."""
    files = [Path(file) for file in ([train] if isinstance(train, str) else train)]
    manifest = files[0].parent / DISTILLATION_FILE
    described = parse_json(read_whole(manifest))["corpora"] if manifest.is_file() else {}
    return " and ".join(described.get(file.name, file.name) for file in files)
