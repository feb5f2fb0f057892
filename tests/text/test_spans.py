import random
import re
import subprocess
import sys

import pytest

from allyouneed.data.tasks import date_pairs
from allyouneed.text import spans
from allyouneed.text.spans import VALUES, CopyStatistics, find_spans, foreign_runs, untranslatable


def test_spans_of_every_kind_are_found_in_their_order() -> None:
    text = "See https://a.b/c?d=1, mail x@y.org: <b>{name}</b> has %s of 3.50."
    assert find_spans(text) == [
        ("urls", "https://a.b/c?d=1"), ("emails", "x@y.org"), ("tags", "<b>"), ("placeholders", "{name}"),
        ("tags", "</b>"), ("placeholders", "%s"), ("numbers", "3.50"),
    ]  # fmt: skip
    assert find_spans(text, ["numbers"]) == [("numbers", "1"), ("numbers", "3.50")]
    assert find_spans(text, []) == []


@pytest.mark.parametrize(
    "spans",
    [
        "%u|%lu|%.2f|%-10s|%%|%(x).2f|%5.1f|%*d|%zu|%hhx|%'d|%#x|%m|%a",
        "%1$s|%2$'05d|%1$*2$d|%@|%1$@|%<PRIu64>|%-5<PRId32>|%<count>d",
        "%1|%L1|%n|%Ln|%99",
        "%(name)s|%(file name)s|{}|{0}|{name}|{name!r:>10}|{x: >10}|{x.y[0]:.2f}|{x:{w}}",
        "${var}|{{var}}|{{ user.name }}|{{{raw}}}|%{name}|#{name}|$name$|{%endif%}|$t(menu.open)",
        "%Y|%m|%d|%H|%M",
        ":min|:attribute|:MAX_size|:D",
        "{ name }|{ $place }|{ -brand-name }|{ items[0].name }|{ NUMBER($n, digits: 2) }|${ a + b }",
        "{0:d MMM yyyy}|{1,-10:N2}|{ 0, number, percent }|{x, list}",
        "{ $n -> [one] a file *[other] { $n } files }",
        "@:menu.title|@.lower:menu.title|@:(menu.title)|@:{'a b'}|$t(key, {\"count\": 1})",
        "%#@files@|%count%|%user.name%|$name|$user->name|$!name|@count|@anna|__name__|[[Page]]",
        "<%= @user.name %>|<?= $x ?>|[% name %]|{# a note #}|{!! $html !!}|:tada:|:+1:",
        "[b]|[/b]|[url=https://a.b]|[gallery ids='1,2' /]|[/gallery]",
        "&brandShortName;|&amp;|&#8217;|&#x2026;|\\u2026|C:\\new\\files|%APPDATA%\\a|\\\\server\\share",
    ],
)
def test_placeholders_of_many_kinds_are_found_whole(spans: str) -> None:
    text = spans.replace("|", " and ")
    assert "|".join(span for _, span in find_spans(text, ["placeholders"])) == spans


@pytest.mark.parametrize(
    "text",
    ["at 12:30 or 9:05", "the ratio a:b, see: this", "a | b", "[sic], [1] and [see below]",
     "100% sure, 50% off",
          "x::y", "it costs $5, or US$ 5", "Tom & Jerry; R&D",
     "mail me @ home", "{a b}, {see there}", "snake_case __ and __",
     "50%of10%"],
)  # fmt: skip
def test_signs_in_a_text_are_no_placeholders(text: str) -> None:
    assert find_spans(text, ["placeholders", "tags", "emoji"]) == []


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("%<total>d of %<whole>s", "placeholders placeholders"),
        ('<a href="%s">%s</a>', "tags placeholders tags"),
        ("{n, plural, one {<b>#</b> file} other {# files}}", "placeholders"),
        ("<00:00:01.000>{\\an8}", "tags tags"),
        ("5\ufe0f\u20e3 and 5", "emoji numbers"),
        ("https://a.b/{id}?x=%s", "urls"),
        ("{ name | upper } [[Page|a label]]", "placeholders placeholders"),
    ],
)
def test_of_spans_that_begin_at_one_place_the_longest_counts(text: str, kinds: str) -> None:
    assert " ".join(kind for kind, _ in find_spans(text)) == kinds


@pytest.mark.parametrize(
    "emoji",
    ["😆", "👩‍👩‍👧‍👦", "🇮🇹", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "👍🏽", "❤️", "5️⃣", "→", "★", "©", "⚠️", "🎉🎉", "✔︎", "🧑🏿‍🚀", "🏳️‍🌈", "#️⃣", "⏰", "™"],
)
def test_an_emoji_is_one_span_however_it_is_joined(emoji: str) -> None:
    assert find_spans(f"so {emoji}, yes", ["emoji"]) == [("emoji", emoji)]


@pytest.mark.parametrize(
    "message",
    [
        "{count, plural, one {# file} other {# files}}",
        "{n, select, a {x {m, plural, one {1} other {2}} y} b {z}}",
        "{0,number,#.##}",
    ],
)
def test_a_message_of_icu_is_one_placeholder_however_nested(message: str) -> None:
    assert find_spans(f"a {message} b", ["placeholders"]) == [("placeholders", message)]


def test_placeholders_may_touch_letters_and_percentages_are_none() -> None:
    assert [span for _, span in find_spans("%dMB, %ds, %ux%u", ["placeholders"])] == ["%d", "%d", "%u", "%u"]
    assert find_spans("100 % sure, 100% sure, 100%ig, eine 10 %ige Lösung, {a b}", ["placeholders"]) == []


LONG = """
import signal
from allyouneed.text.spans import find_spans

UNITS = ("a1", "a.", "a1@", "a@a.", "@", "%", "%0", "%1", "%(", "%<a", "%*", "%1$", "%<PRI", "{", "{}", "{{", "{%",
         "{ ", "{a,plural,", "{a,plural,{}", "{a,plural,x {y ", "{a{}", "{a: <", "$a", "<a", "<1", "1,", "www.", "http://",
         ")", "http://)", " ", "a b", "1")
OTHERS = ("{ a", "{ a |", "{a(", "{a ->", "<%", "{#", "{!!", "[%", "%a", "@", "@a/", "@:a.", "$a.", ":a", ":a-",
          "__a", "__", "[[", "[a b=", "[a=", "&a", "&#", "C:\\\\a", "\\\\", "%a%\\\\", "a:", "a://",
          "\U0001f600\u200d", "1\u20e3", "{\\\\", "<!--", "</", "{0:", "${",
         "`", "``", "`a ", "|a", "|a ", "[a", "[a:", "#a", "~a", "<<a", ":a:`")
for unit in (*UNITS, *OTHERS):
    for before in ("", "{a,plural,", "http://", "<a ") if unit in UNITS else ("",):
        signal.setitimer(signal.ITIMER_VIRTUAL, 1)  # ends the program; of the processor, however busy the machine is
        find_spans((before + unit * 25_000)[:25_000])
"""


@pytest.mark.slow
def test_the_quick_look_at_a_text_passes_over_no_span(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(1)
    pieces = [*"%{}$<>[]:@&;#~^`|_\\\u20e3*/.-=('\"n0\u0663 ", "www.", "://", "name", "s", "\U0001f600", "\u00a9"]
    texts = ["".join(rng.choices(pieces, k=rng.randint(1, 8))) for _ in range(20_000)]
    quick = [find_spans(text) for text in texts]
    monkeypatch.setattr(spans, "_MARKED", re.compile(""))
    assert quick == [find_spans(text) for text in texts]
    assert sum(map(bool, quick)) > 5_000


def test_no_text_takes_more_than_linear_time() -> None:
    """A text of 25,000 characters takes at most 0.2 seconds; in quadratic time even the quickest takes more than 1."""
    subprocess.run([sys.executable, "-c", LONG], check=True)


@pytest.mark.parametrize(
    ("text", "kind"),
    [("👍", "signs"), ("...", "signs"), ("42 %", "numbers"), ("1845-01-05", "numbers"), ("https://a.b", "urls"),
     ("a@b.org", "emails"), ("see https://a.b", None), ("A1", None), ("", None), (" ", None)],
)  # fmt: skip
def test_what_has_nothing_to_translate(text: str, kind: str | None) -> None:
    assert untranslatable(text) == kind


def test_a_corpus_of_dates_copies_nothing() -> None:
    habits = CopyStatistics.from_pairs(date_pairs("train", count=200))
    assert not habits.is_copied("1845-01-05")
    assert not habits.is_copied("👍")


def test_a_corpus_that_copies_teaches_to_copy() -> None:
    habits = CopyStatistics.from_pairs([("room 101, please", "Zimmer 101 bitte")] * 20)
    assert habits.is_copied("7")
    assert habits.is_copied("👍")  # never seen: judged by all kinds together
    assert not habits.is_copied("please")
    assert not CopyStatistics().is_copied("7")


def test_what_stands_alone_tells_more_than_what_stands_inside() -> None:
    habits = CopyStatistics.from_pairs([("in 1999", "nel 1999")] * 50 + [("7", "sette")] * 20)
    assert not habits.is_copied("8")


def test_what_a_tenth_of_the_pairs_changed_is_left_to_the_model() -> None:
    alone = CopyStatistics.from_pairs([("7", "7")] * 17 + [("-7", "7")] * 2)
    assert not alone.is_copied("8")  # 17 of 19
    assert alone.is_contradicted("8")
    assert not alone.is_contradicted("a@b.org")
    inside = CopyStatistics.from_pairs([("open %s at www.a.de", "{0} www.a.de")] * 20)
    assert [inside.is_copied_inside(kind) for kind in ("placeholders", "urls", "tags")] == [False, True, True]


CODES = [
    "##ticket.title##", "###T01###", "[site:name]", "[<file>]", "<<name>>", "%-<all>8s", "%<PRId64>", "``read_file``",
    ":func:`open`", ":ref:`the list of files <file-list>`", ":py:meth:`~a.b.C.run`", "`cargo build`", "`target`",
    "`the page <https://example.com/page.html>`_", "`name`__", "|product|", "|the product|_", "[1]_", "[#note]_",
    "[CIT2002]_",
]  # fmt: skip


@pytest.mark.parametrize("code", CODES)
def test_a_code_is_one_span_wherever_it_stands(code: str) -> None:
    for text in (code, f"The {code} file", f"({code}),", f"Open {code}. And {code}!"):
        assert {span for _, span in find_spans(text, ("placeholders", "tags", "urls"))} == {code}


@pytest.mark.parametrize(
    "text",
    [
        "use `foo' and `bar' here", "a | b | c", "100% of #1 and #tag", "[see below] and [1]", "~5, x^2", "C# and F#",
        "a ## b",
    ],
)  # fmt: skip
def test_signs_of_sentences_are_no_codes(text: str) -> None:
    assert find_spans(text, ("placeholders", "tags")) == []


def test_runs_with_signs_that_the_training_sources_lack_are_foreign() -> None:
    statistics = CopyStatistics.from_pairs([("The house is big, isn't it?", ""), ("Part 5/B-7 + x", "")])
    text = "Dear «Name», a {b} in **big** “letters” and 5/B+7 (100%)"
    assert foreign_runs(text, statistics.known_signs("en")) == ["«Name»", "**big**"]
    assert foreign_runs(text, CopyStatistics().known_signs(None)) == []  # strings, of no language


def test_a_sign_in_fewer_than_one_of_a_thousand_sources_is_foreign() -> None:
    pairs = [("word.", "")] * 1_999
    for more, runs in (([("a~b", "")], ["c~d"]), ([("a~b", ""), ("a~c", "")], [])):
        statistics = CopyStatistics.from_pairs([*pairs[len(more) - 1 :], *more])
        assert foreign_runs("c~d", statistics.known_signs(None)) == runs


@pytest.mark.parametrize(
    ("language", "text", "runs"),
    [
        ("en", "the §name§ of 【name】 and ⟦name⟧", ["§name§", "【name】", "⟦name⟧"]),
        ("en", "Dear «First Name», ¶ a + b \ue000x\ue001", ["«First", "Name»", "¶", "+", "\ue000x\ue001"]),
        ("", "a «word» and „another“", ["«word»", "„another“"]),
        ("fr", "un «mot» et €nom€ pour 5 €", ["€nom€"]),
        ("de-AT", "„Ja“, Nr. 5 §", ["§"]),
        ("zh", "他说：【你好】。", []),
        ("ar", "مرحبا، كيف؟", []),
        ("en", "It is $5, 5/6 (50%)! “Yes” – and/or & … %s {§} Hi\U0001f606", []),
    ],
)
def test_signs_that_nobody_counted_are_those_of_the_language(language: str, text: str, runs: list[str]) -> None:
    assert foreign_runs(text, CopyStatistics().known_signs(language)) == runs


def test_pairs_that_write_numbers_otherwise_speak_against_checking_them() -> None:
    kept = [(f"It costs {n},50 euros.", f"Costa {n}.50 euro.") for n in range(20)]
    rewritten = [(f"M{n}x1,25 bolt", f"BLT-M{n:03}-125") for n in range(20)]
    assert CopyStatistics.from_pairs(kept).is_copied_inside(VALUES)
    assert not CopyStatistics.from_pairs(rewritten).is_copied_inside(VALUES)
