"""Pairs in an XLIFF file (OASIS, versions 1.2 and 2.x), whose targets are translated already."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .lines import opened
from .pair import Fault, Pair, Rows
from .xml_stream import element_text, free, iterate_elements

_FINISHED = {"translated", "reviewed", "signed-off", "final"}


def read_xliff(path: Path) -> Rows:
    """The segments that may be translated, and their targets.

    A target counts as missing (an empty one) unless it is approved, its state is translated, reviewed, signed-off or
    final, or no state is given. The content of inline codes becomes part of the text. Refuses malformed XML by its
    line, and expands no entities.
    """
    with opened(path) as stream:
        for unit in iterate_elements(stream, path, "trans-unit", "unit"):
            if _is_translatable(unit):
                for segment in [unit] if unit.find("{*}source") is not None else unit.iter("{*}segment"):
                    try:
                        yield from _pair(segment)
                    except ValueError as error:
                        yield Fault(segment.sourceline, str(error))
            free(unit)


def _pair(segment: Any) -> Iterator[Pair]:
    source, target = segment.find("{*}source"), segment.find("{*}target")
    if source is not None:
        is_finished = target is not None and _is_finished(segment, target)
        yield Pair(element_text(source), element_text(target) if is_finished else "")


def _is_finished(segment: Any, target: Any) -> bool:
    """By the attributes of the unit and its target (1.2), or those of the segment (2.x)."""
    state, approved = segment.get("state") or target.get("state"), segment.get("approved")
    return approved == "yes" or (state in _FINISHED if state else approved != "no")


def _is_translatable(unit: Any) -> bool:
    around = (one.get("translate") for one in (unit, *unit.iterancestors()))
    return next((answer for answer in around if answer), "yes") != "no"
