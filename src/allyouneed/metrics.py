"""Scores of translations, computed by sacrebleu (Post, 2018)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest, Result

from .errors import ConfigError, DataError


@dataclass(frozen=True, slots=True)
class Score:
    """A number from 0 to 100 and the signature that says how it was computed."""

    name: str
    value: float
    signature: str


@dataclass(frozen=True, slots=True)
class PairedScore:
    """A corpus score of two models on the same sentences, and the p-value of their difference."""

    name: str
    first: float
    second: float
    p_value: float
    signature: str


# One reference for each translation, or several.
References = Sequence[str] | Sequence[Sequence[str]]


def bleu(translations: Sequence[str], references: References, *, tokenize: str = "13a") -> Score:
    """Corpus BLEU (Papineni et al., 2002), cased.

    `tokenize` is one of sacrebleu's: "none" for text that is tokenized already, whose score is not
    comparable with that of plain text.
    """
    return _corpus_score("BLEU", BLEU(tokenize=tokenize, force=tokenize == "none"), translations, references)


def chrf(translations: Sequence[str], references: References) -> Score:
    """Corpus chrF2 (Popović, 2015): characters instead of words."""
    return _corpus_score("chrF2", CHRF(), translations, references)


def exact_match(translations: Sequence[str], references: References) -> Score:
    """The percentage of translations that equal a reference exactly."""
    _refuse_unpaired(translations, references)
    equal = sum(translation in _all(reference) for translation, reference in zip(translations, references, strict=True))
    return Score("exact match", 100 * equal / len(references), f"equal:{equal}|of:{len(references)}")


def sentence_chrf(translations: Sequence[str], references: References) -> list[float]:
    """chrF2 of each sentence, from 0 to 100."""
    _refuse_unpaired(translations, references)
    metric = CHRF()
    pairs = zip(translations, references, strict=True)
    return [metric.sentence_score(translation, _all(reference)).score for translation, reference in pairs]


def paired_bootstrap(first: Sequence[str], second: Sequence[str], references: Sequence[str]) -> list[PairedScore]:
    """BLEU and chrF2 of two models, with sacrebleu's paired bootstrap (Koehn, 2004): 1,000 samples of the sentences."""
    _refuse_unpaired(first, references)
    _refuse_unpaired(second, references)
    metrics = {"BLEU": BLEU(references=[references]), "chrF2": CHRF(references=[references])}
    systems = [("first", first), ("second", second)]
    signatures, scores = PairedTest(systems, metrics, references=None, test_type="bs")()
    return [_paired_score(name, scores[name], str(signature)) for name, signature in signatures.items()]


def _paired_score(name: str, results: Sequence[str | Result], signature: str) -> PairedScore:
    first, second = results
    assert isinstance(first, Result)
    assert isinstance(second, Result)
    p_value = 1.0 if second.p_value is None else float(second.p_value)
    return PairedScore(name, float(first.score), float(second.score), p_value, signature)


def _corpus_score(name: str, metric: BLEU | CHRF, translations: Sequence[str], references: References) -> Score:
    _refuse_unpaired(translations, references)
    # sacrebleu expects all first references, then all second ones; None where a sentence has no more.
    streams = [list(stream) for stream in zip_longest(*map(_all, references))]
    value = metric.corpus_score(list(translations), streams).score
    return Score(name, value, str(metric.get_signature()))


def refuse_unknown_tokenizer(name: str) -> None:
    """Refuse an unknown tokenizer of sacrebleu, with the names it has."""
    if name not in BLEU.TOKENIZERS:
        raise ConfigError(f'sacrebleu has no tokenizer "{name}"; it has {", ".join(sorted(BLEU.TOKENIZERS))}')


def _all(references: str | Sequence[str]) -> Sequence[str]:
    return [references] if isinstance(references, str) else references


def _refuse_unpaired(translations: Sequence[str], references: References) -> None:
    if len(translations) != len(references):
        raise DataError(f"{len(translations)} translations cannot be scored against {len(references)} references")
    if not references:
        raise DataError("there is nothing to score: the reference is empty")
