import re

import pytest

from allyouneed.config import CleanConfig
from allyouneed.config.settings import from_table
from allyouneed.data.clean import broken_rule, clean_pairs, dedup_key, normalize_text, skip_malformed
from allyouneed.data.pairs import Fault, Pair
from allyouneed.data.report import DataReport, PartReport, RuleCount
from allyouneed.errors import DataError
from allyouneed.text.normalize import Normalization

USUAL = CleanConfig()


def test_a_text_is_normalized_and_counted() -> None:
    counts = {"unicode": 0, "strip_control": 0}
    assert normalize_text("  plain  text ", Normalization(), counts) == "plain  text"
    assert counts == {"unicode": 0, "strip_control": 0}
    assert normalize_text("e\u0301 \x00zero\ttab\u2028line\u00ad", Normalization(), counts) == "é zero tab line"
    assert counts == {"unicode": 1, "strip_control": 1}
    assert normalize_text("ﬁ\x00", Normalization(unicode="none", strip_control=False), counts) == "ﬁ\x00"
    controls = "".join(map(chr, [*range(0x7F, 0x85), *range(0x86, 0xA0)]))
    assert normalize_text(f"a{controls}b\x85c", Normalization(), counts) == "ab c"
    assert normalize_text("ﬁ", Normalization(unicode="NFKC"), counts) == "fi"


@pytest.mark.parametrize(
    ("source", "target", "rule"),
    [
        ("2024-01-05", "January 5, 2024", ""),
        ("A1", "Hydraulic pump assembly, 24 V", ""),  # a part's number may stand for many words
        ("A1", "Hydraulic pump assembly, 24 V, with a filter, two hoses, a tank, four bolts and a manual", ""),
        ("no", "x" * 91, "max_length_ratio"),
        ("x" * 5_001, "x" * 5_000, "max_chars"),
        ("M6 x 20", "M6 x 20", ""),  # a name or a number rightly stays what it is
        ("This was never translated.", "This was never translated.", "drop_copies"),
    ],
)
def test_rules_that_see_one_pair(source: str, target: str, rule: str) -> None:
    assert broken_rule(Pair(source, target), USUAL) == rule
    off = CleanConfig(max_chars=0, max_length_ratio=0, drop_copies=0)
    assert broken_rule(Pair(source, target), off) == ""


def test_case_and_blanks_do_not_make_another_text() -> None:
    assert dedup_key("A  dog") == dedup_key("a dog ") != dedup_key("a-dog")


def test_faults_are_skipped_up_to_a_share_and_then_refused_with_lines() -> None:
    rows: list[Pair | Fault] = [*[Pair("a", "b")] * 98, Fault(99, "is odd"), Fault(100, "is odder")]
    malformed = RuleCount()
    assert len(list(skip_malformed(iter(rows), malformed, name="a.tsv", max_malformed=0.02))) == 98
    assert (malformed.count, malformed.examples) == (2, ["a.tsv, line 99 is odd", "a.tsv, line 100 is odder"])
    with pytest.raises(DataError, match=r"2 .*100 .*a\.tsv, line 99 .*a\.tsv, line 100 "):
        list(skip_malformed(iter(rows), RuleCount(), name="a.tsv", max_malformed=0.01))


def test_lines_that_are_lost_are_counted_not_rows() -> None:
    rows: list[Pair | Fault] = [*[Pair("a", "b")] * 90, Fault(91, "is long", lines=10)]
    malformed = RuleCount()
    list(skip_malformed(iter(rows), malformed, name="a.csv", max_malformed=0.1))
    assert malformed.count == 10
    with pytest.raises(DataError, match=r"a\.csv .*10 .*100 "):
        list(skip_malformed(iter(rows), RuleCount(), name="a.csv", max_malformed=0.09))


def test_reports_on_blocks_add_up_to_the_report_on_all_pairs() -> None:
    pairs = [Pair("e\u0301" * i, "x" if i % 3 else " \x07") for i in range(20)]
    whole, parts = PartReport(), PartReport()
    list(clean_pairs(pairs, USUAL, whole))
    for begin in range(0, 20, 7):
        block = PartReport()
        list(clean_pairs(pairs[begin : begin + 7], USUAL, block))
        parts.merge(block)
    assert whole == parts
    assert whole.read == 20
    assert whole.dropped["empty"].count == 7
    assert len(whole.dropped["empty"].examples) == 3
    assert whole.normalized["strip_control"] == 7


def test_a_report_survives_being_written_and_reads_well() -> None:
    train, valid = PartReport(read=3, used=2, normalized={"unicode": 1, "strip_control": 0}), PartReport(read=2, used=1)
    report = DataReport(train, valid, skipped_rules={"drop_copies": 0.9})
    train.dropped["empty"].add("a → ")
    valid.dropped["malformed"].add("valid.tsv, line 3 is odd")
    assert from_table(DataReport, report.table()) == report
    of_train, of_valid = report.left_out()
    assert re.fullmatch("1 .*data.train: 1 .*empty.* .*data-report.json.*", of_train)
    assert re.fullmatch("1 .*data.valid: 1 malformed .*data-report.json.*", of_valid)
    lines = report.text().splitlines()
    assert [line for line in lines if line not in (lines[2], lines[-1])] == [
        "train: 3 read, 2 used",
        "  1 texts normalized: unicode",
        "      a → ",
        "valid: 2 read, 1 used",
        "  1 dropped: malformed lines",
        "      valid.tsv, line 3 is odd",
    ]
    assert re.match("  1 dropped: .*empty", lines[2])
    assert re.search(" 90% .*clean.max_dropped", lines[-1])
