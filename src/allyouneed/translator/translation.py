"""`Translation`: the translation of a text, with its score, flags, alternatives and alignment."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Literal, NamedTuple, get_args

from ..decode import SURE
from .alignment import Alignment, Link

Flag = Literal["copied", "recased", "split", "repeats", "wrong_spans", "unfinished", "long", "unknown", "cancelled"]
"""Warnings about a translation.

    copied      nothing to translate: the source was copied, as such texts were in the training pairs
    recased     the source is in capitals, unlike the training sources: translated in small letters, then capitalized
    split       the source is too long: translated in pieces, which were joined
    repeats     the first output repeated itself and the model was not sure: decoded again with repeated n-grams banned
    wrong_spans the kept spans differ from those of the source, in number or in an order that matters; or a code, a
                number or a run of unusual signs (`«Name»`) of the source is missing
    unfinished  cut off at the length limit, before the model ended the translation
    long        the source is longer than all training sources and could not be cut: trust the translation less
    unknown     the source has characters or words outside the vocabulary, which the model reads as one token, `<unk>`
    cancelled   the caller cancelled the text before the translation was finished; the translation is empty
"""
FLAGS: tuple[Flag, ...] = get_args(Flag)


@dataclass(frozen=True, slots=True)
class Translation:
    """The translation of `source`.

    `log_probability` is the sum over `tokens` tokens, counting the end token, in nats. Both are 0 if nothing was
    decoded. `alternatives` are the next best translations, without alternatives of their own. `alignment` is None
    unless it was requested.
    """

    source: str
    text: str
    log_probability: float = 0.0
    tokens: int = 0
    flags: tuple[Flag, ...] = ()
    alternatives: tuple["Translation", ...] = ()
    alignment: Alignment | None = None

    @property
    def confidence(self) -> float:
        """The mean log-probability of a token, in nats. It is at most 0; closer to 0 means that the model is surer."""
        return self.log_probability / max(self.tokens, 1)

    @property
    def is_sure(self) -> bool:
        """True if the translation was decoded, ended with the end token, and has a confidence of at least `SURE`."""
        return self.tokens > 0 and "unfinished" not in self.flags and self.confidence >= SURE

    def flagged(self, flag: Flag) -> "Translation":
        """Add a flag, unless it is already there."""
        return replace(self, flags=ordered_flags((*self.flags, flag)))


class Scored(NamedTuple):
    """A pair, and the log-probability in nats of each target token; the end token is the last."""

    source: str
    target: str
    pieces: tuple[str, ...]
    log_probabilities: tuple[float, ...]

    @property
    def log_probability(self) -> float:
        """The log-probability of the whole target, in nats."""
        return sum(self.log_probabilities)


def ordered_flags(flags: Collection[str]) -> tuple[Flag, ...]:
    """Return the flags in the order of `Flag`, without duplicates."""
    return tuple(flag for flag in FLAGS if flag in flags)


def join_translations(source: str, parts: Sequence[Translation], blank: str = " ") -> Translation:
    """Join the translations of a text's segments with `blank`. The result of several segments has no alternatives."""
    if len(parts) == 1:
        return replace(parts[0], source=source)
    flags = {flag for part in parts for flag in part.flags} - {"copied"} | ({"split"} if parts else set())
    return Translation(
        source=source,
        text=blank.join(part.text for part in parts),
        log_probability=sum(part.log_probability for part in parts),
        tokens=sum(part.tokens for part in parts),
        flags=ordered_flags(flags),
        alignment=join_alignments(parts),
    )


def join_sentences(source: str, gaps: Sequence[str], parts: Sequence[Translation]) -> Translation:
    """Join the translations of a text's sentences, with `gaps` before, between and after them.

    The n-th alternative joins the n-th alternatives of all sentences; a sentence with fewer alternatives contributes
    its translation. If a sentence was cancelled, the translation of the text is empty and flagged `cancelled`.
    """
    if any("cancelled" in part.flags for part in parts):
        return Translation(source, "", flags=("cancelled",))
    if len(parts) == 1 and not any(gaps):
        return replace(parts[0], source=source)
    best = _joined(source, gaps, parts)
    versions = range(max((len(part.alternatives) for part in parts), default=0))
    others = [
        _joined(source, gaps, [part.alternatives[n] if n < len(part.alternatives) else part for part in parts])
        for n in versions
    ]
    distinct = {other.text: other for other in reversed(others) if other.text != best.text}
    return replace(best, alternatives=tuple(reversed(distinct.values())))


def _joined(source: str, gaps: Sequence[str], parts: Sequence[Translation]) -> Translation:
    flags = {flag for part in parts for flag in part.flags}
    if not all("copied" in part.flags for part in parts):
        flags -= {"copied"}
    texts = [part.text for part in parts]
    return Translation(
        source=source,
        text="".join(one for pair in zip_longest(gaps, texts, fillvalue="") for one in pair),
        log_probability=sum(part.log_probability for part in parts),
        tokens=sum(part.tokens for part in parts),
        flags=ordered_flags(flags),
        alignment=join_alignments(parts),
    )


def join_alignments(parts: Sequence[Translation]) -> Alignment | None:
    """Join the alignments of consecutive parts; None if no part has one."""
    read: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    alignments = [part.alignment for part in parts if part.alignment is not None]
    for part in alignments:
        links += tuple((i + len(read), j + len(written)) for i, j in part.links)
        read = read + part.source
        written = written + part.target
    return Alignment(read, written, links) if alignments else None
