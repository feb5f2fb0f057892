"""Inline elements of XLIFF ↔ marks of a text.

`<g>`, `<pc>` and `<mrk>` have text inside and are pairs of marks, as are a `<bpt>` and its `<ept>`, a `<bx>` and its
`<ex>`, an `<sc>` and its `<ec>`. All others, and what is not to be translated, are points, whatever is in them. Tags
that are written in the text itself, `&lt;b&gt;`, are marks too, as in other strings with tags. What stands for a line
break has a blank in the text.
"""

from collections.abc import Iterator, Sequence
from copy import deepcopy

from lxml import etree

from .character_references import CharacterReferences
from .inline_markup import LINE_BREAKS, MarkedText, marked_text, read_codes, tag_name
from .pieces import Piece, StandsFor
from .safe_xml import append_text
from .unit import Mark, UnitTranslation

_AROUND = {"g", "pc", "mrk"}
_OPENING = {"bpt": "ept", "bx": "ex", "sc": "ec"}
_CLOSING = {closing: opening for opening, closing in _OPENING.items()}


def write_inline(parent: etree._Element, inline: MarkedText, translation: UnitTranslation) -> None:
    """Give an element a translation of `inline`, with its inline elements and tags, in place of what it has."""
    for child in list(parent):
        parent.remove(child)
    parent.text = None
    stack = [parent]
    new = inline.rewritten(translation)
    for part in new.parts(new.text, new.marks):
        source = part if isinstance(part, str) else new.sources[part.tag, part.kind]
        if source is None:  # the end of an element around text
            stack.pop()
        elif isinstance(source, str):
            append_text(stack[-1], source)
        elif local_name(source) in _AROUND and isinstance(part, Mark) and part.kind == "open":
            stack.append(add_empty_copy(stack[-1], source))
        else:
            stack[-1].append(_alone(source))


def local_name(element: etree._Element) -> str:
    """The name of an element without its namespace; "" of a comment or an instruction."""
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


def add_empty_copy(parent: etree._Element, element: etree._Element) -> etree._Element:
    """A new last child of `parent` with the name and attributes of `element`."""
    copy = etree.SubElement(parent, element.tag)
    for name, value in element.items():
        copy.set(name, value)
    return copy


def read_inline(element: etree._Element) -> MarkedText:
    """The text of a `<source>` or `<target>`, without its inline elements and the tags that are written in it.

    What is written for the end of an element around text is None.
    """
    references = CharacterReferences()
    return marked_text(_parts(element, references), references, lambda codes: dict(_pairs(codes)))


def _is_line_break(element: etree._Element) -> bool:
    """Whether the type of an element, or the code that it stands for, is a line break of HTML."""
    kind = (element.get("ctype") or element.get("subType") or "").lower()
    code = element.get("equiv-text") or element.get("disp") or ("" if local_name(element) in _AROUND else element.text)
    is_break = kind in ("lb", "xlf:lb") or kind.removeprefix("x-").removeprefix("html-") in LINE_BREAKS
    return is_break or tag_name(code or "")[1] in LINE_BREAKS


def _parts(element: etree._Element, references: CharacterReferences) -> Iterator[Piece]:
    yield from _text_parts(element.text or "", references)
    for child in element:
        name = local_name(child)
        stands_for: StandsFor = "break" if _is_line_break(child) else ""
        if name in _AROUND and not _is_protected(child):
            key = f"{name} {id(child)}"
            yield Piece("open", name=key, source=child, stands_for=stands_for)
            yield from _parts(child, references)
            yield Piece("close", name=key)
        elif name in _OPENING:
            key = f"{name} {child.get('rid') or child.get('id') or ''}"
            yield Piece("open", name=key, source=child, stands_for=stands_for)
        elif name in _CLOSING:
            key = f"{_CLOSING[name]} {child.get('startRef') or child.get('rid') or child.get('id') or ''}"
            yield Piece("close", name=key, source=child, stands_for=stands_for)
        else:
            yield Piece("point", source=child, stands_for=stands_for)
        yield from _text_parts(child.tail or "", references)


def _text_parts(text: str, references: CharacterReferences) -> Iterator[Piece]:
    """Text and the tags that are written in it."""
    for piece in read_codes(text, references):
        yield piece if piece.kind == "text" else piece._replace(name=f"tag {piece.name}")


def _is_protected(element: etree._Element) -> bool:
    return element.get("translate") == "no" or element.get("mtype") == "protected"


def _pairs(codes: Sequence[Piece]) -> Iterator[tuple[int, int]]:
    """Which event closes which, both ways. Codes that cross an element, or have one end, have none."""
    opened: list[int] = []
    for number, code in enumerate(codes):
        if code.kind == "open":
            opened.append(number)
        elif code.kind == "close":
            depth = len(opened) - 1
            # Codes may be left open; an element around text is closed by its own end.
            while (
                depth >= 0
                and codes[opened[depth]].name != code.name
                and (code.source is None or codes[opened[depth]].name.partition(" ")[0] not in _AROUND)
            ):
                depth -= 1
            if depth >= 0 and codes[opened[depth]].name == code.name:
                yield opened[depth], number
                yield number, opened[depth]
                del opened[depth:]


def _alone(element: etree._Element) -> etree._Element:
    copy = deepcopy(element)
    copy.tail = None
    return copy
