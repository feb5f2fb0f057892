"""How good translations are; sacrebleu does the counting (Post, 2018)."""

from collections.abc import Sequence
from dataclasses import dataclass

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from .errors import DataError


@dataclass(frozen=True, slots=True)
class Score:
    """A number from 0 to 100 and the signature that says how it was counted."""

    name: str
    value: float
    signature: str


def bleu(translations: Sequence[str], references: Sequence[str]) -> Score:
    """Corpus BLEU (Papineni et al., 2002), cased, sacrebleu's own tokenizer 13a."""
    return _corpus_score("BLEU", BLEU(), translations, references)


def chrf(translations: Sequence[str], references: Sequence[str]) -> Score:
    """Corpus chrF2 (Popović, 2015): characters instead of words."""
    return _corpus_score("chrF2", CHRF(), translations, references)


def exact_match(translations: Sequence[str], references: Sequence[str]) -> Score:
    """How many translations equal their reference to the letter, in percent."""
    _refuse_unpaired(translations, references)
    equal = sum(ours == theirs for ours, theirs in zip(translations, references, strict=True))
    return Score("exact match", 100 * equal / len(references), f"equal:{equal}|of:{len(references)}")


def sentence_chrf(translations: Sequence[str], references: Sequence[str]) -> list[float]:
    """chrF2 of each sentence by itself, from 0 to 100: to tell good ones from bad ones."""
    _refuse_unpaired(translations, references)
    metric = CHRF()
    pairs = zip(translations, references, strict=True)
    return [metric.sentence_score(translation, [reference]).score for translation, reference in pairs]


def _corpus_score(name: str, metric: BLEU | CHRF, translations: Sequence[str], references: Sequence[str]) -> Score:
    _refuse_unpaired(translations, references)
    value = metric.corpus_score(list(translations), [list(references)]).score
    return Score(name, value, str(metric.get_signature()))


def _refuse_unpaired(translations: Sequence[str], references: Sequence[str]) -> None:
    if len(translations) != len(references):
        raise DataError(f"{len(translations)} translations cannot be scored against {len(references)} references")
    if not references:
        raise DataError("there is nothing to score: the reference is empty")
