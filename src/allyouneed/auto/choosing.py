"""From a draft to one that has what its pairs decide: statistics first."""

from .corpus_sample import read_corpus_sample
from .draft import Draft
from .statistics import measure_pairs


def choose_from_pairs(draft: Draft) -> Draft:
    """The draft with the statistics of its pairs, and a vocabulary that suits them.

    A run that starts from a model stays as it is: it has that model's vocabulary and sizes.
    """
    plan = draft.preliminary
    if draft.model or not any(corpus.train for corpus in plan.data.corpora()):
        return draft
    sample = read_corpus_sample(plan.data, plan.clean)
    return draft.with_statistics(measure_pairs(sample.train)) if sample.train else draft
