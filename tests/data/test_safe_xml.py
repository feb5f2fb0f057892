"""XML that would grow, read files or exhaust the stack is refused in one line."""

import pytest

from allyouneed.apps.documents import read_document
from allyouneed.data.safe_xml import parse_xml
from allyouneed.errors import DocumentError

LAUGHS = '<!DOCTYPE a [<!ENTITY b "ha"><!ENTITY c "&b;&b;&b;&b;">]><a>&c;</a>'
OUTSIDE = '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/hostname">]><a>&b;</a>'


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (LAUGHS, "document type"),
        (OUTSIDE, "document type"),
        ('<!DOCTYPE a SYSTEM "a.dtd"><a/>', "document type"),
        ("<a>" * 10_000 + "</a>" * 10_000, "XML: line 1: Excessive"),
        ("<a><b></a>", "not XML: line 1"),
        ("", "not XML"),
        ("\x00", "not XML"),
    ],
)
def test_hostile_xml_is_refused(data: str, reason: str) -> None:
    with pytest.raises(DocumentError, match=reason) as error:
        parse_xml(data.encode())
    assert "\n" not in str(error.value)


def test_other_xml_is_read() -> None:
    assert parse_xml('<?xml version="1.0"?><a>ä</a>'.encode()).text == "ä"


def test_many_tags_are_refused_before_they_are_a_tree() -> None:
    many = b"<a>" + b"<b/>" * 2**20 + b"</a>"
    with pytest.raises(DocumentError, match="1,048,578 .*1,048,576"):
        parse_xml(many)
    with pytest.raises(DocumentError, match="1,048,576"):
        read_document(b"<xliff>" + many + b"</xliff>", "xliff")
