"""Whether a translation copies the spans of its source: each as often, no others, and in a valid order."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from ..text.spans import find_spans, iter_spans

# An argument is bound by its index in the message unless it has a name or a number.
_BY_PLACE = re.compile(r"%(?![%({]|<(?!PRI)|L?\d+\Z|\d+\$|\w+%|#@)|\{[}:!]")
_OF_SIGNS = ("tags", "placeholders")
SIGNS = frozenset("%{}<>")
# What a placeholder of a kind that is not known is made of, and hardly a sentence.
_CODE_SIGNS = "%{}<>$@\\|^=_[]"
_TAG_NAME = re.compile(r"</?\s*([^\s/>]+)")
_UNPAIRED = {"br", "hr", "img", "input", "link", "meta", "wbr"}


def spans_differ(source: str, target: str, kinds: Iterable[str], *, also: Iterable[str] = ()) -> bool:
    """Whether the spans of these kinds in `target` are other ones than in `source`, or in an order that breaks them.

    Each span must stand there as often as in `source`; those of the texts `also` may stand there besides.
    Arguments without a name or a number (`%s … %d`, `{}`) keep their order. Tags that are paired and nested
    in `source` are so in `target`, in any order; where they are not, they keep their order.
    """
    kinds = tuple(kinds)
    there, here = find_spans(source, kinds), find_spans(target, kinds)
    missing = Counter(there) - Counter(here)
    extra = extra_spans(source, target, kinds, also=also)
    if missing or extra:
        return True
    (arguments, tags), (arguments_here, tags_here) = ordered_spans(source, kinds), ordered_spans(target, kinds)
    wrong_tags = not _is_nested(tags_here) if _is_nested(tags) else tags != tags_here
    return arguments != arguments_here or wrong_tags


def numbers_are_lost(source: str, target: str) -> bool:
    """Whether a number of `source` is not in `target`, however it is written there: 1,234.5 as 1.234,5 or 1 234,5."""
    numbers, target_numbers = _numbers(source), _numbers(target)
    joined, target_joined = (Counter("".join(number) for number in some) for some in (numbers, target_numbers))
    parts, target_parts = (Counter(part for number in some for part in number) for some in (numbers, target_numbers))
    return bool(joined - target_joined) and bool(parts - target_parts)


def _numbers(text: str) -> list[list[str]]:
    """The numbers outside of other spans, in figures of ASCII, in the parts between their signs."""
    numbers = [span for kind, span in find_spans(text) if kind == "numbers"]
    return [["".join(str(int(figure)) for figure in part) for part in re.findall(r"\d+", one)] for one in numbers]


def code_signs_differ(source: str, target: str) -> bool:
    """Whether a sign that codes are made of, and hardly a sentence, is in `target` more or less often."""
    return any(source.count(sign) != target.count(sign) for sign in _CODE_SIGNS)


def extra_spans(source: str, target: str, kinds: Iterable[str], *, also: Iterable[str] = ()) -> list[tuple[int, int]]:
    """Where in `target` stand spans that `source`, with the texts `also`, has not, or not as often: (start, end).

    A sign that spans of `source` are made of, such as the `%` of `%s`, counts alone too: whoever reads `% s`
    after `%s` takes both for arguments.
    """
    kinds = tuple(kinds)
    left = Counter[str]()
    for text in (source, *also):
        left.update(span.text for span in iter_spans(text, kinds))
        left.update(sign for _, sign in stray_signs(text, kinds))
    signs = span_signs(source, kinds)
    stray = [(index, index + 1) for index, sign in stray_signs(target, kinds) if sign in signs]
    extra = []
    for start, end in [*(span.bounds for span in iter_spans(target, kinds)), *stray]:
        left[target[start:end]] -= 1
        if left[target[start:end]] < 0:
            extra.append((start, end))
    return extra


def span_signs(text: str, kinds: Iterable[str]) -> set[str]:
    """The marker characters (`%{}<>`) that the placeholders and tags of a text are made of."""
    return {sign for kind, span in find_spans(text, kinds) if kind in _OF_SIGNS for sign in span} & SIGNS


def stray_signs(text: str, kinds: Iterable[str]) -> list[tuple[int, str]]:
    """The marker characters outside of all spans, with their indices."""
    inside = {index for span in iter_spans(text, kinds) for index in range(*span.bounds)}
    return [(index, sign) for index, sign in enumerate(text) if sign in SIGNS and index not in inside]


def ordered_spans(text: str, kinds: Iterable[str]) -> tuple[list[str], list[str]]:
    """The spans whose order has a meaning: arguments without a name or a number, and tags."""
    spans = find_spans(text, kinds)
    arguments = [span for kind, span in spans if kind == "placeholders" and _BY_PLACE.match(span)]
    return arguments, [span for kind, span in spans if kind == "tags"]


def _is_nested(tags: Sequence[str]) -> bool:
    open_tags: list[str] = []
    for tag in tags:
        match = _TAG_NAME.match(tag)
        name = match.group(1) if match else ""
        if tag.startswith("</"):
            if not open_tags or open_tags.pop() != name:
                return False
        elif not tag.endswith("/>") and name.lower() not in _UNPAIRED:
            open_tags.append(name)
    return not open_tags
