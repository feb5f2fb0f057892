"""Tables with commas or semicolons between cells (.csv)."""

import re

from .encoded_text import decode_text
from .table_column import TableStyle, table_document
from .unit import Document, DocumentOptions

_DECLARED = re.compile(r'"?sep=([,;:|\t])"?(?:\r\n?|\n)', re.IGNORECASE)


def read_csv_document(data: bytes, options: DocumentOptions) -> Document:
    """One column of a table; see `table_document`.

    Cells are parted by what a first line `sep=;` says, as Excel reads it, else by semicolons if the first line has no
    comma outside of quotation marks.
    """
    encoded = decode_text(data, options.encoding)
    if declared := _DECLARED.match(encoded.text):
        return table_document(encoded, TableStyle(declared[1], quoted=True, start=declared.end()), options)
    first = re.sub(r'"[^"]*"', "", encoded.text.partition("\n")[0])
    delimiter = ";" if ";" in first and "," not in first else ","
    return table_document(encoded, TableStyle(delimiter, quoted=True), options)
