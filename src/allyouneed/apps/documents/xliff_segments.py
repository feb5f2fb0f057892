"""The segments of XLIFF 1.2 and 2.0: source, target and state, and how a translation is written there."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass

from lxml import etree

from ...errors import DocumentError
from .unit import UnitTranslation
from .xliff_inline import add_empty_copy, local_name, read_inline, write_inline

_UNTRANSLATED = {"new", "needs-translation", "initial"}  # states of a target that may be a copy of the source
_MAX_SEGMENTS = 1000  # of one unit; each is looked up among them all
_DONE = {"final", "signed-off", "reviewed"}


@dataclass(frozen=True, slots=True)
class XliffSegment:
    """A source, and `holder`, the element whose child is its target: a `<trans-unit>` (1.2) or a `<segment>` (2.0).

    `mid` is the number of its `<mrk>` where a `<trans-unit>` has several segments, else "".
    """

    source: etree._Element
    holder: etree._Element
    mid: str = ""

    @property
    def key(self) -> str:
        """Its unit."""
        unit = self.holder if _is_old(self.holder) else self.holder.getparent()
        return "" if unit is None else f"unit {unit.get('id', '')}"

    @property
    def existing(self) -> str | None:
        """The translation that is kept; None if there is none, or only a copy of the source that is marked as new."""
        target, state = self._target(), self._state()
        text = "" if target is None else read_inline(target).text
        if self.holder.get("approved") == "yes" or state in _DONE:
            return text
        is_copy = state in _UNTRANSLATED and text.strip() == read_inline(self.source).text.strip()
        return None if is_copy or not text.strip() else text

    def fill_in(self, translation: UnitTranslation) -> None:
        """Write the target and its state."""
        whole = self.holder.find("{*}target")
        if whole is None:
            whole = self._add_target()
        target = self._target()
        if target is None:  # the unit has more segments than its target
            target = add_empty_copy(whole, self.source)
        write_inline(target, read_inline(self.source), translation)
        if not _is_old(self.holder):
            self.holder.set("state", "initial" if translation.reasons else "translated")
        elif translation.reasons or not (self.mid and whole.get("state") == "needs-review-translation"):
            whole.set("state", "needs-review-translation" if translation.reasons else "translated")
            whole.set("state-qualifier", "mt-suggestion")

    def _target(self) -> etree._Element | None:
        target = self.holder.find("{*}target")
        if target is None or not self.mid:
            return target
        return next((mark for mark in target.iter("{*}mrk") if mark.get("mid") == self.mid), None)

    def _state(self) -> str | None:
        target = self.holder.find("{*}target")
        if _is_old(self.holder):
            return None if target is None else target.get("state")
        return self.holder.get("state", "initial")  # the default of the specification

    def _add_target(self) -> etree._Element:
        """A new target after the source; of several segments, with what is between them."""
        previous = self.holder.find("{*}seg-source")
        previous = self.holder.find("{*}source") if previous is None else previous
        assert previous is not None
        target = deepcopy(previous) if self.mid else etree.Element("target")
        namespace = etree.QName(previous).namespace
        target.tag = f"{{{namespace}}}target" if namespace else "target"
        for mark in target.iter("{*}mrk"):
            if mark.get("mtype") == "seg":
                for child in list(mark):
                    mark.remove(child)
                mark.text = None
        end = previous.tail
        previous.addnext(target)
        previous.tail, target.tail = self.holder.text, end  # indented as the first child is
        return target


def find_segments(root: etree._Element) -> Iterator[XliffSegment]:
    """The segments that may be translated: the nearest attribute `translate`, of the unit or around it, is not "no"."""
    for holder in root.iter("{*}trans-unit", "{*}segment"):
        source = holder.find("{*}source")
        if source is None or not _is_translatable(holder):
            continue
        segmented = holder.find("{*}seg-source")
        marks = [] if segmented is None else [m for m in segmented.iter("{*}mrk") if m.get("mtype") == "seg"]
        if len(marks) > _MAX_SEGMENTS:
            raise DocumentError(f"has a unit of {len(marks):,} segments; at most {_MAX_SEGMENTS:,} are read")
        if marks:
            yield from (XliffSegment(mark, holder, mark.get("mid", "")) for mark in marks)
        else:
            yield XliffSegment(source, holder)


def _is_translatable(element: etree._Element) -> bool:
    around = (one.get("translate") for one in (element, *element.iterancestors()))
    return next((answer for answer in around if answer), "yes") != "no"


def _is_old(holder: etree._Element) -> bool:
    return local_name(holder) == "trans-unit"
