import pytest

from allyouneed.translator.agreement import code_signs_differ, extra_spans, numbers_are_lost, spans_differ


@pytest.mark.parametrize(
    ("source", "target", "differ"),
    [
        ("%s has %d dogs", "%s ha %d cani", False),
        ("%s has %d dogs", "%d cani di %s", True),  # by their place: the order has a meaning
        ("%1$s has %2$d dogs", "%2$d cani di %1$s", False),
        ("%(a)s has %(b)d dogs", "%(b)d cani di %(a)s", False),
        ("{} has {:d}", "{:d}: {}", True),
        ("{a} has {b}", "{b}: {a}", False),
        ("%1 of %2", "%2: %1", False),  # Qt's are numbered
        ("100 %% of %s", "%s: 100 %%", False),
        ("%name% of %#@files@", "%#@files@: %name%", False),
        ("%<PRIu64> of %s", "%s: %<PRIu64>", True),
        ("%s", "%s %s", True),
        ("%s %s", "%s", True),
        ("%s", "%d", True),
        ("a dog", "%s un cane", True),
        ("%s dogs", "%s % cani", True),  # C reads "% c" as an argument
        ("%s dogs, 5 %", "5 %, %s cani", False),
        ("5 per cent", "5 %", False),
        ("{a} dogs", "{a} } cani", True),
        ("<b>a</b> <i>dog</i>", "<i>cane</i> <b>un</b>", False),
        ("<b>a <i>dog</i></b>", "<b>un <i>cane</b></i>", True),
        ("<b>a</b> dog", "</b>un<b> cane", True),
        ("a<br>b<br/><hr>", "<hr>a<br/>b<br>", False),
        ("a</b> dog <i>", "un<i> cane </b>", True),  # not paired in the source: the order stays
        ("a</b> dog <i>", "un</b> cane <i>", False),
    ],
)
def test_spans_agree_if_each_comes_as_often_and_in_an_order_that_works(source: str, target: str, differ: bool) -> None:
    assert spans_differ(source, target, ("tags", "placeholders")) == differ


def test_only_the_kinds_that_are_kept_count_and_what_is_brought_along_may_come_besides() -> None:
    assert not spans_differ("7 dogs", "8 %s", ())
    assert spans_differ("7 dogs", "8 cani", ("numbers",))
    assert spans_differ("a player", "un MP3", ("numbers",))
    assert not spans_differ("a player", "un MP3", ("numbers",), also=["lettore MP3"])


def test_what_is_too_much_is_told_by_its_place() -> None:
    assert extra_spans("%s a", "%s b %s %d", ("placeholders",)) == [(5, 7), (8, 10)]


@pytest.mark.parametrize(
    ("source", "target", "lost"),
    [
        ("1,234.50 euros", "1.234,50 euro", False),
        ("1,234.50 euros", "1 234,50 euro", False),
        ("1,234.50 euros", "1234,50 euro", False),
        ("12/31/2020 at 10:30", "31.12.2020, 10.30", False),
        ("2 of 2 dogs", "2 cani su 2", False),
        ("in 1999", "\u0641\u064a \u0661\u0669\u0669\u0669", False),
        ("two dogs", "2 cani", False),
        ("see https://a.b/7 and %2$s", "vedi", False),  # of other spans
        ("2 dogs", "due cani", True),
        ("2 of 2 dogs", "2 cani", True),
        ("in 1999", "nel 1998", True),
        ("1,234.50 euros", "1.234 euro", True),
        ("v2 and MP3", "v2 e MP", True),
    ],
)
def test_a_number_comes_back_however_its_parts_are_written(source: str, target: str, lost: bool) -> None:
    assert numbers_are_lost(source, target) == lost


@pytest.mark.parametrize("source", ["$1 files", "##name_x## [left]", "<<name>> of ^1", "a|b", "~x@ y = z"])
def test_signs_of_codes_that_are_not_known_come_back(source: str) -> None:
    assert not code_signs_differ(source, source[::-1])
    assert code_signs_differ(source, "".join(one for one in source if one.isalnum()))
    assert code_signs_differ("a", source)
