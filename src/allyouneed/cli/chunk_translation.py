"""The translation of chunks of lines as rows of the output, in this process or in others."""

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import partial
from typing import cast

from ..cluster import cluster_map
from ..errors import InputError
from ..translator import Translator
from .flow import Chunk
from .rows import as_json, as_text


@dataclass(frozen=True, slots=True)
class RowOptions:
    """What a row has, as the options of `translate` say."""

    prefix: str
    alternatives: int
    align: str | None
    json: bool
    skip_refused: bool

    def rows(self, translator: Translator, chunk: Chunk) -> Iterator[str]:
        """A row for each line of a chunk; with `skip_refused` the chunk records lines that are refused.

        Otherwise such a line ends the rows with its error, after those of the lines before it.
        """
        written = 0
        try:
            for row in self._rows(translator, chunk, chunk.lines):
                yield row
                written += 1
        except InputError as error:
            if error.line and not written:  # the line was found before any was translated
                yield from self._rows(translator, chunk, chunk.lines[: error.line - chunk.first])
            raise

    def _rows(self, translator: Translator, chunk: Chunk, lines: list[str]) -> Iterator[str]:
        def refuse(error: InputError) -> None:
            chunk.refused[cast(int, error.line)] = str(error)

        translations = translator.translations(
            lines, prefix=self.prefix, alternatives=self.alternatives, align=self.align, first_line=chunk.first,
            on_refused=refuse if self.skip_refused else None,
        )  # fmt: skip
        for number, one in enumerate(translations, start=chunk.first):
            yield f"{as_json(one, error=chunk.refused.get(number)) if self.json else as_text(one)}\n"


@dataclass(frozen=True, slots=True)
class TranslatedRows:
    """The rows of a chunk, the lines that were refused, and the error that ended it, if one did."""

    rows: list[str]
    refused: dict[int, str]
    error: InputError | None

    def __iter__(self) -> Iterator[str]:
        yield from self.rows
        if self.error:
            raise self.error


def row_maker(load: Callable[[], Translator], options: RowOptions) -> Callable[[Chunk], TranslatedRows]:
    """A function that translates chunks with the translator that `load` returns."""
    translator = load()

    def make_rows(chunk: Chunk) -> TranslatedRows:
        rows: list[str] = []
        try:
            rows.extend(options.rows(translator, chunk))
        except InputError as error:
            return TranslatedRows(rows, chunk.refused, error)
        return TranslatedRows(rows, chunk.refused, None)

    return make_rows


ChunkRows = Callable[[Iterator[Chunk]], Iterator[tuple[Chunk, Iterable[str]]]]


@contextmanager
def rows_on_cluster(address: str, load: Callable[[], Translator], options: RowOptions) -> Iterator[ChunkRows]:
    """A function that gives the rows of chunks, in order, from the processes of the Ray cluster at `address`.

    `load` is called in each of them, so the files that it reads must be there under the same path. Ray prints that
    a process has ended on `sys.stdout`, which is standard error until the block ends.
    """
    with redirect_stdout(sys.stderr), cluster_map(partial(row_maker, load, options), address) as in_order:

        def with_rows(chunks: Iterator[Chunk]) -> Iterator[tuple[Chunk, Iterable[str]]]:
            sent: deque[Chunk] = deque()

            def noted() -> Iterator[Chunk]:
                for chunk in chunks:
                    sent.append(chunk)
                    yield chunk

            for rows in in_order(noted()):
                chunk = sent.popleft()
                chunk.refused.update(rows.refused)
                yield chunk, rows

        yield with_rows
