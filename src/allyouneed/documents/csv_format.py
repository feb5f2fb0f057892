"""Tables with commas or semicolons between cells (.csv)."""

import re

from .encoded_text import decode_text
from .table_column import TableStyle, table_document
from .unit import Document, DocumentOptions


def read_csv_document(data: bytes, options: DocumentOptions) -> Document:
    """One column of a table; see `table_document`.

    Cells are parted by semicolons if the first line has no comma outside of quotation marks.
    """
    encoded = decode_text(data, options.encoding)
    first = re.sub(r'"[^"]*"', "", encoded.text.partition("\n")[0])
    delimiter = ";" if ";" in first and "," not in first else ","
    return table_document(encoded, TableStyle(delimiter, quoted=True), options)
