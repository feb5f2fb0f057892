"""Tables with tabs between cells (.tsv). A quotation mark is a character like any other."""

from .encoded_text import decode_text
from .table_column import TableStyle, table_document
from .unit import Document, DocumentOptions


def read_tsv_document(data: bytes, options: DocumentOptions) -> Document:
    """One column of a table; see `table_document`. Tabs and line ends in a translation become blanks."""
    return table_document(decode_text(data, options.encoding), TableStyle("\t", quoted=False), options)
