import pytest

from allyouneed.config import CleanConfig
from allyouneed.corpus.clean import DataReport, RuleCount, broken_rule, dedup_key, normalize_text, skip_malformed
from allyouneed.corpus.pair import Fault, Pair
from allyouneed.errors import DataError

USUAL = CleanConfig()


def test_a_text_is_mended() -> None:
    mended = {"unicode": 0, "control": 0}
    assert normalize_text("  plain  text ", USUAL, mended) == "plain  text"
    assert mended == {"unicode": 0, "control": 0}
    assert normalize_text("e\u0301 \x00zero\ttab\u2028line\u00ad", USUAL, mended) == "é zero tab line\u00ad"
    assert mended == {"unicode": 1, "control": 1}
    assert normalize_text("ﬁ\x00", CleanConfig(unicode="none", strip_control=False), mended) == "ﬁ\x00"
    assert normalize_text("ﬁ", CleanConfig(unicode="NFKC"), mended) == "fi"


@pytest.mark.parametrize(
    ("source", "target", "rule"),
    [
        ("2024-01-05", "January 5, 2024", ""),
        ("A1", "Hydraulic pump assembly, 24 V", ""),  # a part's number may stand for many words
        ("A1", "Hydraulic pump assembly, 24 V, with a filter, two hoses, a tank, four bolts and a manual", ""),
        ("no", "x" * 91, "ratio"),
        ("x" * 5_001, "x" * 5_000, "longest"),
        ("M6 x 20", "M6 x 20", ""),  # a name or a number rightly stays what it is
        ("This was never translated.", "This was never translated.", "copies"),
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
    found = RuleCount()
    assert len(list(skip_malformed(iter(rows), name="a.tsv", malformed=0.02, found=found))) == 98
    assert (found.count, found.examples) == (2, ["a.tsv, line 99 is odd", "a.tsv, line 100 is odder"])
    with pytest.raises(
        DataError, match=r"a.tsv has 2 malformed of 100 lines, more than data.max_malformed=0.01 allows:\n.*99"
    ):
        list(skip_malformed(iter(rows), name="a.tsv", malformed=0.01, found=RuleCount()))


def test_lines_that_are_lost_are_counted_not_rows() -> None:
    rows: list[Pair | Fault] = [*[Pair("a", "b")] * 90, Fault(91, "is long", lines=10)]
    found = RuleCount()
    list(skip_malformed(iter(rows), name="a.csv", malformed=0.1, found=found))
    assert found.count == 10
    with pytest.raises(DataError, match="a.csv has 10 malformed of 100 lines"):
        list(skip_malformed(iter(rows), name="a.csv", malformed=0.09, found=RuleCount()))


def test_a_report_survives_being_written_and_reads_well() -> None:
    report = DataReport(read=3, train=2, skipped_rules={"copies": 0.9})
    report.dropped["empty"].add("a → ")
    assert DataReport.from_table(report.table()) == report
    assert (report.excluded(), report.sentence()) == (1, "1 with an empty side")
    assert report.text().splitlines() == [
        "3 read: 2 to train on, 0 to validate, 0 to test",
        "  1 dropped: with an empty side",
        "      a → ",
        "  kept the 90% long copies of the source: more than clean.max_dropped",
    ]
