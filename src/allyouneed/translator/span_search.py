"""A second search where the first left spans that the source does not have, or in an order that breaks them."""

from ..decode import Hypothesis, best_first
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
    *,
    prefix: list[int],
) -> list[Hypothesis]:
    """As many hypotheses as were given; those with other spans than `source` replaced by what wider beams find.

    In each try, the signs that placeholders and tags are made of, and one token of every span that was too much, may
    occur only as often as the constraints need them, and spans that have an order keep that of the source. `prefix` is
    what the caller asked for; that of `request` may have more tokens. Those with the right spans come first, then the
    wrong ones for which no try found a better one.
    """
    tokenizer = generator.target_tokenizer

    def is_wrong(hypothesis: Hypothesis) -> bool:
        return constraints.spans_differ(source, tokenizer.decode(hypothesis.ids), prefix=prefix)

    wrong = [hypothesis for hypothesis in hypotheses if is_wrong(hypothesis)]
    right = {tuple(hypothesis.ids): hypothesis for hypothesis in hypotheses if not is_wrong(hypothesis)}
    if not wrong:
        return hypotheses
    markers: dict[int, int] = {}
    extra = ""
    orders = constraints.orders(source)
    worst = wrong[0]
    for number in range(TRIES):
        text = tokenizer.decode(worst.ids)
        spans = constraints.extra_spans(source, text, prefix=prefix)
        new_markers = _markers(tokenizer, worst.ids, spans)
        if number and new_markers <= markers.keys():
            break
        markers |= {i: _needed(request, prefix, i) for i in new_markers}
        extra += " ".join(["", *(text[start:end] for start, end in spans)])
        limits = constraints.sign_limits(source, extra, prefix=prefix)
        limits += [({i: 1}, highest) for i, highest in markers.items()]
        again = generator.search_wider(request._replace(at_most=limits, orders=orders))
        still_wrong = [hypothesis for hypothesis in again if is_wrong(hypothesis)]
        right |= {tuple(hypothesis.ids): hypothesis for hypothesis in again if hypothesis not in still_wrong}
        if len(right) >= len(hypotheses) or not still_wrong:
            break
        worst = still_wrong[0]
    return [*best_first(list(right.values())), *wrong][: len(hypotheses)]


def _markers(tokenizer: Tokenizer, ids: list[int], extra: list[tuple[int, int]]) -> set[int]:
    """For every surplus span, the first of its tokens with a character that is no letter, or its first token."""
    starts = [len(tokenizer.decode(ids[:end])) for end in range(len(ids) + 1)]
    pieces = tokenizer.pieces(ids)
    markers: set[int] = set()
    for start, end in extra:
        inside = [k for k in range(len(ids)) if starts[k] < end and starts[k + 1] > start]
        signs = [k for k in inside if not pieces[k].replace("␣", "").isalpha()]
        markers.update(ids[k] for k in (signs or inside)[:1])
    return markers


def _needed(request: GenerationRequest, prefix: list[int], i: int) -> int:
    """How often an id stands in the prefix and in all phrases that the translation must have."""
    required = sum(
        phrase.times * max(spelling.count(i) for spelling in phrase.spellings) for phrase in request.constraints
    )
    return prefix.count(i) + required
