"""How good a model that is being trained is: the judge that `fit` is given."""

from collections.abc import Sequence

from .bundle import Bundle
from .config import DecodeConfig
from .corpus.readers import Pair
from .metrics import bleu, chrf, exact_match, sentence_chrf
from .run import Evaluation, Sample
from .translator import Translator


def evaluate_bundle(bundle: Bundle, pairs: Sequence[Pair]) -> Evaluation:
    """BLEU, chrF and exact match of greedy translations, and each of these with its own chrF."""
    greedy = DecodeConfig(
        beam=1, extra_length=bundle.decode.extra_length, batch_size=max(128, bundle.decode.batch_size)
    )
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    translations = Translator(bundle, decode=greedy).translate(sources)
    scores = {
        "bleu": bleu(translations, references).value,
        "chrf": chrf(translations, references).value,
        "exact": exact_match(translations, references).value,
    }
    each = sentence_chrf(translations, references)
    return Evaluation(scores, [Sample(*row) for row in zip(sources, references, translations, each, strict=True)])
