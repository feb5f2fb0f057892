"""Blanks and signs beside placeholders."""

import pytest

from allyouneed.translator.placeholders import separate_placeholders, signed_runs


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("the file %s is open", "il file%s è aperto", "il file %s è aperto"),
        ("the file %s is open", "è aperto %sfile", "è aperto %s file"),
        ("{a} of {b}", "x{a}di{b}", "x {a} di {b}"),
        ("the file %s is open", "l'%s-file", "l'%s-file"),
        ("the file %s is open", "文件%s已打开", "文件%s已打开"),
        ("%dx%d", "%dx%d", "%dx%d"),
        ("all %(n)ss now", "ora%(n)ss", "ora %(n)ss"),
        ("all %ss now", "%s ora", "%s ora"),
        ("see :ref:`a <b>` now", "ora.:ref:`a <b>`", "ora. :ref:`a <b>`"),
        ("{a} and {b}", "{b}{a}", "{b} {a}"),
        ("hello :name and $user!", "ciao:name e$userdel", "ciao :name e $user del"),
        ("the name is $name", "名字是$name的", "名字是 $name 的"),
        ("@a and @ab", "@ab ed@a", "@ab ed @a"),
        ("x $a, $a", "$a $ax", "$a $a x"),
        ("{a}{b}:{c}", "{a}{b}:{c}", "{a}{b}:{c}"),
    ],
)
def test_a_placeholder_touches_a_word_only_where_it_does_so_in_the_source(
    source: str, target: str, expected: str
) -> None:
    assert separate_placeholders(source, target) == expected
    assert separate_placeholders(source, expected) == expected


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("the file (%name%) is open", ["(%name%)"]),
        ("at {h}:{m}, +%d or [[x]]/%s.", ["{h}:{m}", "+%d", "[[x]]/%s"]),
        ("see (%s files) or (https://a.b/c)!", ["(https://a.b/c)"]),
        ("«%s», “{a}”, '%d': {n}…", []),
        ("l'(%s) %d-day {a}'s %s", []),
        ("文件(%s)已打开", ["(%s)"]),
        ("a (b) + c", []),
        ("({n, plural, one {# a} other {# b}})", ["({n, plural, one {# a} other {# b}})"]),
    ],
)
def test_copied_spans_and_signs_without_a_word_are_a_run(text: str, runs: list[str]) -> None:
    assert list(signed_runs(text)) == runs


def test_a_placeholder_that_the_source_lacks_is_not_set_apart() -> None:
    assert separate_placeholders("hello", "tom@name %sure") == "tom@name %sure"
    assert separate_placeholders("hello @a", "@a tom@a") == "@a tom@a"


def test_runs_are_found_in_linear_time() -> None:
    for text in ("(" * 100_000 + "%s", "%s-" * 30_000, "((%s " * 20_000):
        assert sum(map(len, signed_runs(text))) <= len(text)
