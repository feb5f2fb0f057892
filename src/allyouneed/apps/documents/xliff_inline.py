"""Inline elements of XLIFF ↔ marks of a text.

`<g>`, `<pc>` and `<mrk>` have text inside and are pairs of marks, as are a `<bpt>` and its `<ept>`, a `<bx>` and its
`<ex>`, an `<sc>` and its `<ec>`. All others, and what is not to be translated, are points, whatever is in them. Tags
that are written in the text itself, `&lt;b&gt;`, are marks too, as in other strings with tags. What stands for a line
break has a blank in the text.
"""

import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from lxml import etree

from .inline_markup import TAG, tag_name
from .line_breaks import LINE_BREAKS, End, with_blanks, without_blanks
from .safe_xml import append_text
from .unit import Mark, interleave, tag_mark

_AROUND = {"g", "pc", "mrk"}
_OPENING = {"bpt": "ept", "bx": "ex", "sc": "ec"}
_CLOSING = {closing: opening for opening, closing in _OPENING.items()}


@dataclass
class InlineText:
    """The text of an element, the marks of its inline elements and tags, and what stands at each mark.

    `blanks` are the marks where the text has a blank instead of a line break.
    """

    text: str = ""
    marks: Sequence[Mark] = ()
    blanks: frozenset[End] = frozenset()
    elements: dict[End, etree._Element | str] = field(default_factory=dict)

    def write(self, parent: etree._Element, text: str, marks: Sequence[Mark]) -> None:
        """Give an element this text with the inline elements at these marks, in place of what it has."""
        for child in list(parent):
            parent.remove(child)
        parent.text = None
        stack = [parent]
        for part in interleave(*without_blanks(text, marks, self.blanks)):
            if isinstance(part, str):
                append_text(stack[-1], part)
                continue
            element = self.elements.get((part.tag, part.kind))
            if element is None:  # the end of an element around text
                stack.pop()
            elif isinstance(element, str):
                append_text(stack[-1], element)
            elif local_name(element) in _AROUND and part.kind == "open":
                stack.append(add_empty_copy(stack[-1], element))
            else:
                stack[-1].append(_alone(element))


def local_name(element: etree._Element) -> str:
    """The name of an element without its namespace; "" of a comment or an instruction."""
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


class _Event(NamedTuple):
    """An inline element or tag. Ends of elements around text have none; what belongs together has one key."""

    element: etree._Element | str | None
    role: Literal["open", "close", "point"]
    key: tuple[str, str]


def add_empty_copy(parent: etree._Element, element: etree._Element) -> etree._Element:
    """A new last child of `parent` with the name and attributes of `element`."""
    copy = etree.SubElement(parent, element.tag)
    for name, value in element.items():
        copy.set(name, value)
    return copy


def read_inline(element: etree._Element) -> InlineText:
    """The text of a `<source>` or `<target>` and its inline elements."""
    inline = InlineText()
    events: list[tuple[int, _Event]] = []
    for part in _parts(element):
        if isinstance(part, str):
            inline.text += part
        else:
            events.append((len(inline.text), part))
    partners = dict(_pairs([event for _, event in events]))
    marks: list[Mark] = []
    for number, (at, event) in enumerate(events):
        mark = tag_mark(at, number, partners.get(number))
        marks.append(mark)
        if event.element is not None:
            inline.elements[mark.tag, mark.kind] = event.element
    breaks = {end for end, element in inline.elements.items() if _is_line_break(element)}
    inline.text, inline.marks, inline.blanks = with_blanks(inline.text, marks, breaks)
    return inline


def _is_line_break(element: etree._Element | str) -> bool:
    """Whether a tag, the type of an element or the code that it stands for is a line break of HTML."""
    if isinstance(element, str):
        return tag_name(element)[1] in LINE_BREAKS
    kind = (element.get("ctype") or element.get("subType") or "").lower()
    code = element.get("equiv-text") or element.get("disp") or ("" if local_name(element) in _AROUND else element.text)
    is_break = kind in ("lb", "xlf:lb") or kind.removeprefix("x-").removeprefix("html-") in LINE_BREAKS
    return is_break or tag_name(code or "")[1] in LINE_BREAKS


def _parts(element: etree._Element) -> Iterator[str | _Event]:
    yield from _text_parts(element.text or "")
    for child in element:
        name = local_name(child)
        if name in _AROUND and not _is_protected(child):
            key = (name, str(id(child)))
            yield _Event(child, "open", key)
            yield from _parts(child)
            yield _Event(None, "close", key)
        elif name in _OPENING:
            yield _Event(child, "open", (name, child.get("rid") or child.get("id") or ""))
        elif name in _CLOSING:
            partner = child.get("startRef") or child.get("rid") or child.get("id") or ""
            yield _Event(child, "close", (_CLOSING[name], partner))
        else:
            yield _Event(child, "point", ("", ""))
        yield from _text_parts(child.tail or "")


def _text_parts(text: str) -> Iterator[str | _Event]:
    """Text and the tags that are written in it."""
    for part in filter(None, re.split(f"({TAG})", text)):
        if re.fullmatch(TAG, part):
            closes, name = tag_name(part)
            yield _Event(part, "close" if closes else "open", ("tag", name))
        else:
            yield part


def _is_protected(element: etree._Element) -> bool:
    return element.get("translate") == "no" or element.get("mtype") == "protected"


def _pairs(events: Sequence[_Event]) -> Iterator[tuple[int, int]]:
    """Which event closes which, both ways. Codes that cross an element, or have one end, have none."""
    open_events: list[int] = []
    for number, event in enumerate(events):
        if event.role == "open":
            open_events.append(number)
        elif event.role == "close":
            depth = len(open_events) - 1
            # Codes may be left open; an element around text is closed by its own end.
            while (
                depth >= 0
                and events[open_events[depth]].key != event.key
                and (event.element is None or events[open_events[depth]].key[0] not in _AROUND)
            ):
                depth -= 1
            if depth >= 0 and events[open_events[depth]].key == event.key:
                yield open_events[depth], number
                yield number, open_events[depth]
                del open_events[depth:]


def _alone(element: etree._Element) -> etree._Element:
    copy = deepcopy(element)
    copy.tail = None
    return copy
