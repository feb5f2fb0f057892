"""Cut texts into segments, the units of translation, with their tokens and constraints; and batch the segments."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ..errors import InputError
from ..text.sentences import cut
from ..text.tokenizer import Tokenizer
from .constrained import beam_width
from .constraints import ConstraintBuilder
from .generation import GenerationRequest


class Segment(NamedTuple):
    """A unit of translation: a whole text or a part of one. `number` is the index of the text.

    `constraints` checks the glossary terms and kept spans of the translation, or is None if there are none. If a text
    is copied or recased before translation, a second segment, with `as_is`, translates the unchanged text.
    `language_tag` is the tag at the start of the text, if the model uses tags.
    """

    number: int
    text: str
    request: GenerationRequest
    constraints: ConstraintBuilder | None = None
    as_is: bool = False
    language_tag: str = ""


class Segmenter:
    """Encodes texts, and cuts a text of more than `longest_source` tokens at the ends of sentences.

    A segment that cannot be cut may have at most `max_length` tokens.
    """

    def __init__(self, tokenizer: Tokenizer, *, longest_source: int, max_length: int, language: str = "") -> None:
        self._tokenizer = tokenizer
        self._language = language
        self.longest_source = longest_source
        self._max_length = max_length

    def split(
        self,
        texts: Sequence[str],
        prefixes: Sequence[list[int]],
        first: int,
        constraints: ConstraintBuilder | None = None,
        on_refused: Callable[[InputError], None] | None = None,
    ) -> list[Segment]:
        """Cut texts into segments. An empty text has none. The first segment of each text gets the text's prefix.

        Refuses a text that cannot be encoded or cut, and names its line, counting from `first`. With `on_refused` the
        error is passed to that function instead, and the text gets no segments.
        """
        segments: list[Segment] = []
        try:
            encoded = encode_texts(self._tokenizer, texts, first)
            for number, (text, ids, prefix) in enumerate(zip(texts, encoded, prefixes, strict=True)):
                if text:
                    segments += self._split_one(text, ids, prefix, number, first + number, constraints)
        except InputError as error:
            if on_refused is None:
                raise
            if len(texts) == 1:
                on_refused(error)
                return []
            alone = (
                (number, self.split([text], [prefix], first + number, constraints, on_refused))
                for number, (text, prefix) in enumerate(zip(texts, prefixes, strict=True))
            )
            return [one._replace(number=number) for number, some in alone for one in some]
        return segments

    def _split_one(
        self,
        text: str,
        ids: list[int],
        prefix: list[int],
        number: int,
        line: int,
        constraints: ConstraintBuilder | None,
    ) -> list[Segment]:
        parts = [text]
        encoded = [ids]
        tag = self._tokenizer.language_tag(text)  # each part is translated by itself, so each needs the tag
        if len(ids) > self.longest_source:
            uncut = constraints.spans(text) if constraints else []
            longest = self.longest_source - (len(self._tokenizer.encode(tag)) if tag else 0)
            parts = cut(
                text,
                lambda part: len(self._tokenizer.encode(part)) <= longest,
                language=self._language,
                whole=uncut,
            )
            parts = [f"{tag} {part}" if number and tag else part for number, part in enumerate(parts)]
            encoded = self._tokenizer.encode_all(parts)
        for part, part_ids in zip(parts, encoded, strict=True):
            if len(part_ids) > self._max_length:
                raise InputError(
                    f"{part[:30]!r}… has {len(part_ids)} tokens and no place to cut it; "
                    f"this model reads at most {self._max_length}",
                    line=line,
                )
        try:
            phrases_by_part = [constraints.build(part) if constraints else [] for part in parts]
            fewer_by_part = [
                constraints.build(part, terms_only=True)
                if constraints and phrases and not constraints.is_required
                else None
                for part, phrases in zip(parts, phrases_by_part, strict=True)
            ]
        except InputError as error:
            raise InputError(str(error), line=line) from error
        return [
            Segment(
                number,
                part,
                GenerationRequest(part_ids, [] if index else prefix, phrases, fewer),
                constraints,
                language_tag=tag,
            )
            for index, (part, part_ids, phrases, fewer) in enumerate(
                zip(parts, encoded, phrases_by_part, fewer_by_part, strict=True)
            )
        ]


def encode_texts(tokenizer: Tokenizer, texts: Sequence[str], first: int) -> list[list[int]]:
    """Encode texts. Refuses a text that the vocabulary cannot spell, and names its line, counting from `first`."""
    try:
        return tokenizer.encode_all(texts)
    except InputError as error:
        raise InputError(str(error), line=error.line and error.line + first - 1) from error


def batch_segments(
    segments: Sequence[Segment], *, batch_size: int, beam: int, alternatives: int
) -> Iterator[list[int]]:
    """Group the indices of segments into batches of similar length. Segments with constraints get separate batches.

    Constraints widen beams, so such a batch has fewer segments, but not more hypotheses than `batch_size` segments
    without constraints.
    """
    room = batch_size * beam
    for constrained in (False, True):
        batch: list[int] = []
        taken = 0
        for i in sorted(range(len(segments)), key=lambda i: len(segments[i].request.source)):
            constraints = segments[i].request.constraints
            if bool(constraints) == constrained:
                width = beam_width(beam, constraints) * max(1, alternatives)
                if batch and taken + width > room:
                    yield batch
                    batch = []
                    taken = 0
                batch.append(i)
                taken += width
        if batch:
            yield batch
