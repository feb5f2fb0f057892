"""A second search where the first left spans that the source does not have, or in an order that breaks them."""

from ..decode import Hypothesis
from ..text.tokenizer import Tokenizer
from .constraints import ConstraintBuilder
from .generation import GenerationRequest, TranslationGenerator

TRIES = 4


def search_for_spans(
    generator: TranslationGenerator,
    constraints: ConstraintBuilder,
    source: str,
    request: GenerationRequest,
    hypotheses: list[Hypothesis],
) -> list[Hypothesis]:
    """`found`, or if its best has other spans than `source`, what a wider beam finds that has the right ones.

    Each try forbids one token of every span that was too much, beyond as often as the demands need it, and says
    what has an order in that of the source. If all tries fail, `found` as it was.
    """
    tokenizer = generator.target_tokenizer

    def is_wrong(hypothesis: Hypothesis) -> bool:
        return constraints.spans_differ(source, tokenizer.decode(hypothesis.ids), prefix=request.prefix)

    if not is_wrong(hypotheses[0]):
        return hypotheses
    at_most: dict[int, int] = {}
    orders = constraints.orders(source)
    best = hypotheses[0]
    for number in range(TRIES):
        extra = constraints.extra_spans(source, tokenizer.decode(best.ids), prefix=request.prefix)
        markers = _markers(tokenizer, best.ids, extra)
        if number and markers <= at_most.keys():
            break
        at_most |= {i: _needed(request, i) for i in markers}
        again = generator.search_wider(request._replace(at_most=at_most, orders=orders))
        again.sort(key=is_wrong)  # the best of the right ones first
        if not again or not is_wrong(again[0]):
            return again[: len(hypotheses)] or hypotheses
        best = again[0]
    return hypotheses


def _markers(tokenizer: Tokenizer, ids: list[int], extra: list[tuple[int, int]]) -> set[int]:
    """For every span that is too much, the first of its ids with a sign in it (`%`, `<`, a digit), or its first."""
    starts = [len(tokenizer.decode(ids[:end])) for end in range(len(ids) + 1)]
    pieces = tokenizer.pieces(ids)
    markers: set[int] = set()
    for start, end in extra:
        inside = [k for k in range(len(ids)) if starts[k] < end and starts[k + 1] > start]
        signs = [k for k in inside if not pieces[k].replace("␣", "").isalpha()]
        markers.update(ids[k] for k in (signs or inside)[:1])
    return markers


def _needed(request: GenerationRequest, i: int) -> int:
    """How often an id stands in the prefix and in all that must be said."""
    required = sum(
        phrase.times * max(spelling.count(i) for spelling in phrase.spellings) for phrase in request.constraints
    )
    return request.prefix.count(i) + required
