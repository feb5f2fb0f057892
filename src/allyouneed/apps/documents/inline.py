"""Place the inline tags of a text on its translation, by an alignment of the words of both.

Words are separated by blanks, as in an alignment. Here they are cut further into atoms, so that no mark is inside an
atom: the signs around a word are separate ("(" and "):" of "(word):"), and a word that also occurs in the translation
is cut wherever the source has a mark. A tag is put around the longest run of atoms that come from its content. Such
runs cannot cross, so the tags of the translation are nested as in the source.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate, islice, pairwise, product
from typing import NamedTuple

from .unit import Mark, Marks

ROLES = ("before", "core", "after")
WordLink = tuple[int, int]  # (i, j): word i of the source corresponds to word j of the translation, both counted from 0


class Atom(NamedTuple):
    """The characters from `start` to `end` of a text: signs "before" or "after" a word, or (a part of) its "core"."""

    start: int
    end: int
    role: str


class TagNode(NamedTuple):
    """A tag with the tags inside it. A tag with `is_point` has no content."""

    tag: int
    start: int
    end: int
    is_point: bool
    children: "list[TagNode]"


class Placed(NamedTuple):
    """The place of a tag: characters `start` to `end` of the translation, and its atoms from `first` up to `last`."""

    start: int
    end: int
    order: int
    node: TagNode
    first: int
    last: int


def place_marks(
    source: str,
    marks: Sequence[Mark],
    target: str,
    links: Iterable[WordLink],
    opaque: Collection[int] = (),
) -> Marks:
    """Place the marks of `source` on its translation `target`: each tag once, nested as in the source.

    `links` aligns the words of both texts; without links, words at the same relative position correspond. If `target`
    equals `source` and each word is linked to itself, the marks do not move. The content of `opaque` tags will not be
    shown, so these tags only get words that come from their own content.
    """
    if not marks:
        return ()
    return tuple(_Placement(source, marks, target, links, opaque).arrange(tag_tree(marks), 0, len(target), None))


def place_sentence_marks(
    source: str,
    marks: Sequence[Mark],
    target: str,
    links: Iterable[WordLink],
    opaque: Collection[int] = (),
) -> Sequence[Mark]:
    """Place the marks of a sentence within a text, where tags may begin before the sentence or end after it."""
    opened = [mark.tag for mark in marks if mark.kind == "open"]
    closed = [mark.tag for mark in marks if mark.kind == "close"]
    begun, unfinished = set(closed) - set(opened), set(opened) - set(closed)
    if not begun and not unfinished:
        return place_marks(source, marks, target, links, opaque)
    starts = [Mark(0, tag, "open") for tag in reversed(closed) if tag in begun]
    ends = [Mark(len(source), tag, "close") for tag in reversed(opened) if tag in unfinished]
    added = {(mark.tag, mark.kind) for mark in (*starts, *ends)}
    placed = place_marks(source, [*starts, *marks, *ends], target, links, opaque)
    kept = [mark for mark in placed if (mark.tag, mark.kind) not in added]
    # Tags from before the sentence must end before tags begin that end after it, whatever the word order.
    last = max((number for number, mark in enumerate(kept) if mark.tag in begun), default=-1)
    late = [mark._replace(at=kept[last].at) for mark in kept[: last + 1] if mark.tag in unfinished]
    return [*(mark for mark in kept[: last + 1] if mark.tag not in unfinished), *late, *kept[last + 1 :]]


def tag_tree(marks: Sequence[Mark]) -> list[TagNode]:
    """Arrange the tags as a tree. The marks must be nested (`nesting_problem`)."""
    roots: list[TagNode] = []
    levels = [roots]
    ends = {mark.tag: mark.at for mark in marks if mark.kind == "close"}
    for mark in marks:
        if mark.kind == "close":
            levels.pop()
            continue
        node = TagNode(mark.tag, mark.at, ends.get(mark.tag, mark.at), mark.kind == "point", [])
        levels[-1].append(node)
        if mark.kind == "open":
            levels.append(node.children)
    return roots


class _Placement:
    def __init__(
        self,
        source: str,
        marks: Sequence[Mark],
        target: str,
        links: Iterable[WordLink],
        opaque: Collection[int],
    ) -> None:
        self.source, self.target, self.opaque = source, target, opaque
        words, target_words = _words(source), _words(target)
        in_range = sorted({(i, j) for i, j in links if 0 <= i < len(words) and 0 <= j < len(target_words)})
        count = len(target_words)
        diagonal = [(j * len(words) // count, j) for j in range(count)] if words else []
        part_links = [
            link
            for i, j in in_range or diagonal
            for role in ROLES
            for link in self._part_links(words[i][role], target_words[j][role])
        ]
        cuts, target_cuts = sorted({mark.at for mark in marks}), set[int]()
        for part, target_part in part_links:
            if self._is_same(part, target_part):
                target_cuts |= {cut - part.start + target_part.start for cut in _within(cuts, part)}
        by_part, target_by_part = _atoms(words, cuts), _atoms(target_words, sorted(target_cuts))
        self.atoms = [atom for atoms in by_part.values() for atom in atoms]
        self.target_atoms = [atom for atoms in target_by_part.values() for atom in atoms]
        self.starts = [atom.start for atom in self.atoms]
        number = {atom: index for index, atom in enumerate(self.atoms)}
        target_number = {atom: index for index, atom in enumerate(self.target_atoms)}
        # For each target atom, the atoms that it comes from.
        self.sources: list[set[int]] = [set() for _ in self.target_atoms]
        for part, target_part in part_links:
            is_same, shift = self._is_same(part, target_part), target_part.start - part.start
            for one in by_part[part]:
                for other in target_by_part[target_part]:
                    if not is_same or (one.start + shift < other.end and other.start < one.end + shift):
                        self.sources[target_number[other]].add(number[one])
        self._link_leftover_signs(self.sources)

    def _is_same(self, part: Atom, target_part: Atom) -> bool:
        return self.source[part.start : part.end] == self.target[target_part.start : target_part.end]

    def _part_links(self, parts: Sequence[Atom], target_parts: Sequence[Atom]) -> Iterator[tuple[Atom, Atom]]:
        """Link the parts of two words: one to one if the numbers are equal; otherwise equal signs, or else all."""
        if len(parts) == len(target_parts):
            yield from zip(parts, target_parts, strict=True)
        elif parts and parts[0].role == "core":
            yield from product(parts, target_parts)
        else:
            rest = iter(target_parts)
            for part in parts:
                yield from ((part, other) for other in islice((one for one in rest if self._is_same(part, one)), 1))

    def _link_leftover_signs(self, sources: list[set[int]]) -> None:
        """Link signs to equal signs if their words have other links: the final full stop, after another last word."""
        linked = {a for some in sources for a in some}
        free = defaultdict(list)
        for a, atom in reversed(list(enumerate(self.atoms))):
            if atom.role != "core" and a not in linked:
                free[self.source[atom.start : atom.end]].append(a)
        for b, atom in enumerate(self.target_atoms):
            if atom.role != "core" and not sources[b]:
                same = free[self.target[atom.start : atom.end]]
                if same:
                    sources[b].add(same.pop())

    def arrange(self, nodes: Sequence[TagNode], low: int, high: int, inside: Placed | None) -> Iterator[Mark]:
        """Yield the marks of these tags and of the tags inside them, between two characters of the translation."""
        if not nodes:
            return
        first, last = (inside.first, inside.last) if inside else (0, len(self.target_atoms))
        runs = self._runs(nodes, first, last)
        placed = sorted(self._span(node, order, runs[order], first, last) for order, node in enumerate(nodes))
        for one in placed:
            start = min(max(one.start, low), high)
            end = min(max(one.end, start), high)
            low = end
            if one.node.is_point:
                yield Mark(start, one.node.tag, "point")
            else:
                yield Mark(start, one.node.tag, "open")
                yield from self.arrange(one.node.children, start, end, one._replace(start=start, end=end))
                yield Mark(end, one.node.tag, "close")

    def _runs(self, nodes: Sequence[TagNode], first: int, last: int) -> list[tuple[int, int] | None]:
        """Find, for each tag, a longest run of translation atoms from `first` to `last` that come from its content."""
        labels = [self._label(nodes, b) for b in range(first, last)]
        labelled = set(labels)
        for order, node in enumerate(nodes):
            if order not in labelled and node.tag not in self.opaque and self._contents(node):
                boundary = self._boundary(node.start, first, last) - first
                for b in (boundary, boundary - 1):  # a link without any text would be invisible
                    is_core = 0 <= b < len(labels) and self.target_atoms[first + b].role == "core"
                    if is_core and labels[b] in (_OUTSIDE, _UNLINKED):
                        labels[b] = order
                        break
        runs: list[tuple[int, int] | None] = [None] * len(nodes)
        current: tuple[int, int, int] | None = None  # order, first and last atom
        for b, label in enumerate(labels, start=first):
            in_opaque = current and current[0] >= 0 and nodes[current[0]].tag in self.opaque
            if label == _UNLINKED and not in_opaque:
                continue
            begin = current[1] if current and current[0] == label else b
            current = (label, begin, b + 1)
            if label >= 0:
                best = runs[label]
                if best is None or self._size(current[1:]) > self._size(best):
                    runs[label] = current[1:]
        return runs

    def _label(self, nodes: Sequence[TagNode], b: int) -> int:
        """Return the index of the tag from which most of an atom's sources come, or `_OUTSIDE`, or `_UNLINKED`."""
        if not self.sources[b]:
            return _UNLINKED
        sizes = Counter[int]()
        for a in self.sources[b]:
            atom = self.atoms[a]
            # The last tag that begins before the atom.
            last = bisect_right(nodes, atom.start, key=lambda node: node.start) - 1
            sizes[last if last >= 0 and atom.end <= nodes[last].end else _OUTSIDE] += atom.end - atom.start
        return max(sizes, key=lambda order: (sizes[order], order != _OUTSIDE, -order))

    def _span(self, node: TagNode, order: int, run: tuple[int, int] | None, first: int, last: int) -> Placed:
        contents = self._contents(node)
        if run and contents:
            start, end = self.target_atoms[run[0]].start, self.target_atoms[run[1] - 1].end
            start -= min(contents[0].start - node.start, start - len(self.target[:start].rstrip()))
            end += min(node.end - contents[-1].end, self._blanks_after(end))
            return Placed(start, end, order, node, *run)
        boundary = self._boundary(node.start, first, last)
        start = end = self._character(node.start, boundary)
        if not contents:  # the content is blank or empty
            end += min(node.end - node.start, self._blanks_after(start))
        return Placed(start, end, order, node, boundary, boundary)

    def _boundary(self, at: int, first: int, last: int) -> int:
        """Choose the atom before which a point belongs, so that few words move from one side of it to the other."""
        before = (sum(1 if self.atoms[a].end <= at else -1 for a in some) for some in self.sources[first:last])
        scores = list(accumulate(before, initial=0))
        highest = max(scores)
        best = [number for number, score in enumerate(scores) if score == highest]
        touches_left = at > 0 and not self.source[at - 1].isspace()
        return first + (best[0] if touches_left else best[-1])

    def _character(self, at: int, boundary: int) -> int:
        """Choose the position of a point in the translation: as far from the atoms next to it as in the source."""
        left = self.target_atoms[boundary - 1].end if boundary > 0 else 0
        right = self.target_atoms[boundary].start if boundary < len(self.target_atoms) else len(self.target)
        next_atom = bisect_left(self.starts, at)
        previous_end = self.atoms[next_atom - 1].end if next_atom else 0
        if next_atom < len(self.atoms) and self.atoms[next_atom].start == at and at > previous_end:
            return right
        return min(left + max(0, at - previous_end), right)

    def _contents(self, node: TagNode) -> list[Atom]:
        return self.atoms[bisect_left(self.starts, node.start) : bisect_left(self.starts, node.end)]

    def _size(self, run: tuple[int, ...]) -> int:
        return self.target_atoms[run[1] - 1].end - self.target_atoms[run[0]].start

    def _blanks_after(self, at: int) -> int:
        return len(self.target) - at - len(self.target[at:].lstrip())


_OUTSIDE, _UNLINKED = -1, -2


def _words(text: str) -> list[dict[str, list[Atom]]]:
    """Cut a text into the parts of each word, by role: letters and digits alternate with signs."""
    words = []
    for match in re.finditer(r"\S+", text):
        parts = [part.span() for part in re.compile(r"\w+|[^\w\s]").finditer(text, *match.span())]
        is_letters = [text[start].isalnum() or text[start] == "_" for start, _ in parts]
        first = is_letters.index(True) if True in is_letters else 0
        last = len(parts) - is_letters[::-1].index(True) if True in is_letters else len(parts)
        bounds = zip(ROLES, (parts[:first], parts[first:last], parts[last:]), strict=True)
        words.append({role: [Atom(*part, role) for part in some] for role, some in bounds})
    return words


def _atoms(words: Iterable[dict[str, list[Atom]]], cuts: Sequence[int]) -> dict[Atom, list[Atom]]:
    """Cut each part of the words into atoms, in the order of the text."""
    return {
        part: [Atom(*bounds, part.role) for bounds in pairwise([part.start, *_within(cuts, part), part.end])]
        for word in words
        for parts in word.values()
        for part in parts
    }


def _within(cuts: Sequence[int], part: Atom) -> Sequence[int]:
    return cuts[bisect_right(cuts, part.start) : bisect_left(cuts, part.end)]
