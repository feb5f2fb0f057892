"""Pairs in a gettext catalogue, a .po file."""

from pathlib import Path

from ..errors import DataError
from ..po_catalogue import read_catalogue
from .lines import MAX_IN_MEMORY, decode_lines, opened
from .pair import Pair, Rows


def read_po(path: Path) -> Rows:
    """The messages of a catalogue and their translations; of plurals, the first form and the last.

    A fuzzy message counts as not translated (an empty target), and obsolete ones are left out. Refuses,
    by its line, a catalogue that does not follow the format.
    """
    with opened(path) as stream:
        content = stream.read(MAX_IN_MEMORY + 1)
    if len(content) > MAX_IN_MEMORY:
        raise DataError(f"{path} is too large to be read into memory: more than {MAX_IN_MEMORY >> 20:,} MiB")
    lines = decode_lines(content, name=str(path))
    try:
        catalogue = read_catalogue("\n".join(lines))
    except ValueError as error:
        raise DataError(f"{path} is no gettext catalogue: {error}") from error
    for entry in catalogue:
        if entry.obsolete:
            continue
        forms = entry.msgstr_plural
        singular, plural = (forms[min(forms)], forms[max(forms)]) if forms else (entry.msgstr, "")
        yield Pair(entry.msgid, "" if entry.fuzzy else singular)
        if entry.msgid_plural:
            yield Pair(entry.msgid_plural, "" if entry.fuzzy else plural)
