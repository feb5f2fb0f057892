"""A document, translated sentence by sentence: tags, reasons for a review, and what was translated already."""

from collections.abc import Iterable, Iterator, Sequence

import pytest

from allyouneed.apps.documents import Document, Mark, TranslationUnit, UnitTranslation, interleave
from allyouneed.apps.documents.document_translation import (
    MOST_TAGS,
    DocumentTranslation,
    finish_document,
    plan_document,
    translate_document,
    translate_plan,
)
from allyouneed.bundle import Bundle
from allyouneed.errors import InputError
from allyouneed.text.sentences import sentence_spans
from allyouneed.translator import Alignment, Translation, Translator
from document_checks import read
from fake_translator import FakeTranslator

BOLD = (Mark(0, 1, "open"), Mark(3, 1, "close"))


def lines(*units: TranslationUnit) -> Document:
    """Make a document whose bytes are the translations, a unit a line; `=` is a unit that stays as it is."""

    def write(translations: Sequence[UnitTranslation | None]) -> bytes:
        return "\n".join("=" if one is None else one.text for one in translations).encode()

    return Document(units, write)


def translate(*units: TranslationUnit, model: FakeTranslator | None = None, **options: object) -> DocumentTranslation:
    return translate_document(lines(*units), model or FakeTranslator(str.upper), **options)  # type: ignore[arg-type]


def unit(text: str, **others: object) -> TranslationUnit:
    return TranslationUnit(text=text, **others)  # type: ignore[arg-type]


def test_sentences_and_lines_are_translated_by_themselves_and_the_blanks_between_them_stay() -> None:
    model = FakeTranslator(str.upper)
    result = translate(unit("  One here.  Two.\nthree\n\n"), model=model)
    assert result.data == b"  ONE HERE.  TWO.\nTHREE\n\n"
    assert model.texts == ["One here.", "Two.", "three"]


@pytest.mark.parametrize(("target", "blank"), [("en", b" "), ("zh", b""), ("ja-JP", b""), ("th", b"")])
def test_blanks_between_sentences_are_those_of_the_target_language(target: str, blank: bytes) -> None:
    for text in ("你好。再见。", "Hello. Goodbye."):
        document = read(text.encode(), "txt", target_language=target)
        assert translate_document(document, FakeTranslator(lambda _: "S.")).data == b"S." + blank + b"S."


def test_sentences_are_cut_by_the_language_of_the_translator() -> None:
    model = FakeTranslator()
    model.languages = ("de", "en")
    translate(unit("Er kommt am 3. Mai. Gut."), model=model)
    assert model.texts == ["Er kommt am 3. Mai.", "Gut."]


def test_no_sentence_ends_inside_an_address() -> None:
    text = "See https://example.org/a.B?c. It is good."
    assert [text[start:end] for start, end in sentence_spans(text)] == ["See https://example.org/a.B?c.", "It is good."]


def test_a_unit_with_more_tags_than_are_placed_is_refused_by_its_key() -> None:
    def tagged(count: int) -> TranslationUnit:
        return unit("a " * count, marks=tuple(Mark(2 * i, i, "point") for i in range(count)), key=f"unit {count}")

    model = FakeTranslator(str.upper)
    result = translate(tagged(MOST_TAGS), tagged(MOST_TAGS + 1), model=model)
    assert result.data == b"A " * MOST_TAGS + b"\n="
    assert (result.translated, result.refused) == (1, 1)
    (item,) = (item for item in result.review if item.text is None)
    assert item.key == f"unit {MOST_TAGS + 1}"
    assert str(MOST_TAGS + 1) in item.reasons[0]


def test_what_has_a_translation_or_nothing_to_translate_is_kept() -> None:
    model = FakeTranslator(str.upper)
    result = translate(unit("a", translation="x"), unit(" "), unit("b"), model=model)
    assert (result.data, result.units, result.translated, result.kept) == (b"=\n=\nB", 3, 1, 2)
    assert model.texts == ["b"]


def test_a_sentence_that_occurs_twice_is_translated_once() -> None:
    model = FakeTranslator(str.upper)
    assert translate(unit("a b"), unit("a b", marks=BOLD), unit("a b"), model=model).data == b"A B\nA B\nA B"
    assert model.texts == ["a b"]


def test_tags_follow_their_words_across_sentences() -> None:
    text = "A dog. The red fox runs."
    marks = (Mark(11, 1, "open"), Mark(14, 1, "close"))
    got: list[UnitTranslation | None] = []
    document = Document((unit(text, marks=marks),), lambda translations: got.extend(translations) or b"")  # type: ignore[func-returns-value]
    translate_document(document, FakeTranslator(reverse=True))
    assert got[0] is not None
    assert got[0].text == "dog. A runs. fox red The"
    start, end = (mark.at for mark in got[0].marks)
    assert got[0].text[start:end] == "red"


def test_low_confidence_is_to_be_reviewed() -> None:
    sure, unsure = FakeTranslator(log_probability=-0.4), FakeTranslator(log_probability=-1.4)
    assert translate(unit("a"), model=sure).review == ()
    (item,) = translate(unit("a", key="line 7"), model=unsure).review
    assert (item.key, item.source, item.text, item.reasons) == ("line 7", "a", "a", ("low confidence (-1.40)",))
    assert translate(unit("a"), model=unsure, min_confidence=-2.0).review == ()


def test_an_empty_translation_and_a_tag_without_text_are_to_be_reviewed() -> None:
    (item,) = translate(unit("abc", marks=BOLD), model=FakeTranslator(lambda _: "")).review
    assert ["empty" in item.reasons[0], "tag" in item.reasons[1]] == [True, True]


def test_a_unit_that_is_refused_stays_or_stops_the_work() -> None:
    with pytest.raises(InputError, match="line 2: '☠'"):
        translate(unit("a", key="line 1"), unit("a. ☠ b", key="line 2"))
    result = translate(unit("a"), unit("☠", key="line 2"), skip_refused=True)
    assert (result.data, result.translated, result.refused) == (b"A\n=", 1, 1)
    assert [(item.key, item.text) for item in result.review] == [("line 2", None)]


@pytest.mark.parametrize("checks_codes", [True, False])
def test_codes_are_checked_if_the_model_copies_them(checks_codes: bool) -> None:
    model = FakeTranslator(lambda word: word.replace("7", "seven"), checks_codes=checks_codes)
    review = translate(unit("washer 7"), model=model).review
    assert len(review) == checks_codes


def test_progress_counts_sentences() -> None:
    plan = plan_document(lines(unit("One. Two."), unit("abc", marks=BOLD)))
    seen: list[int] = []
    translate_plan(plan, FakeTranslator(), on_progress=seen.append)
    assert sum(seen) == len(plan.plain) + len(plan.aligned) == 3


def test_the_work_can_be_done_in_two_steps() -> None:
    plan = plan_document(lines(unit("a"), unit("abc", marks=BOLD)))
    assert (plan.plain, plan.aligned) == (("a",), ("abc",))
    answers = {one.source: one for one in FakeTranslator(str.upper).translations([*plan.plain, *plan.aligned])}
    assert finish_document(plan, answers).data == b"A\nABC"


def test_a_translator_translates_documents(bundle: Bundle) -> None:
    result = translate_document(lines(unit("abc", marks=BOLD), unit("abdce")), Translator(bundle))
    assert result.translated == 2


def always(target: str) -> FakeTranslator:
    class Careless(FakeTranslator):
        def translations(self, texts: Iterable[str], **options: object) -> Iterator[Translation]:
            return (Translation(text, target) for text in texts)

    return Careless()


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("open %s now", "apri"),
        ("%s of %d", "%d di %s"),
        ("all", "100% d"),
        ("{n} of {m}", "{n} di {n}"),
        ("see https://a.b/c", "vedi https://a.b"),
    ],
)
def test_a_lost_placeholder_or_address_is_to_be_reviewed_by_whatever_translator(source: str, target: str) -> None:
    (item,) = translate(unit(source), model=always(target)).review
    (reason,) = item.reasons
    assert "sign differs" in reason


def test_a_placeholder_that_touches_words_more_often_than_in_the_source_is_to_be_reviewed() -> None:
    (item,) = translate(unit("%ss and %s"), model=always("%ss e %ss")).review
    (reason,) = item.reasons
    assert "placeholder touches" in reason


def test_a_unit_may_bring_a_reason_to_review_it() -> None:
    (item,) = translate(unit("a", reasons=("a plural form",))).review
    assert item.reasons == ("a plural form",)


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("in <HTML> format", "in formato HTML.", "in formato <HTML>."),
        ("use <%s> now", "ora usa %s", "ora usa <%s>"),
        ("say <come> now", "come ora", "come <ora>"),  # the same letters, and another word
    ],
)
def test_names_and_placeholders_keep_their_tags_whatever_the_model_attended_to(
    source: str, target: str, expected: str
) -> None:
    start, end = source.index("<"), source.index(">") - 1
    marks = (Mark(start, 1, "open"), Mark(end, 1, "close"))
    got: list[UnitTranslation | None] = []
    text = source.replace("<", "").replace(">", "")
    document = Document((unit(text, marks=marks),), lambda translations: got.extend(translations) or b"")  # type: ignore[func-returns-value]

    class Absent(FakeTranslator):
        def translations(self, texts: Iterable[str], **options: object) -> Iterator[Translation]:
            for one in texts:  # it looks at the tagged word, number 1, for each word but the one that equals it
                words = target.split()
                links = tuple((1, j) for j, word in enumerate(words) if word.strip(".,") != text.split()[1])
                yield Translation(one, target, alignment=Alignment(tuple(one.split()), tuple(words), links))

    translate_document(document, Absent())
    assert got[0] is not None
    signs = {"open": "<", "close": ">"}
    parts = interleave(got[0].text, got[0].marks)
    assert "".join(signs[part.kind] if isinstance(part, Mark) else part for part in parts) == expected


LOST = [
    ("json", '{"a": "Yes \U0001f606, they are here."}', "\U0001f606,"),
    ("json", '{"a": "The family \U0001f1ee\U0001f1f9 here"}', "\U0001f1ee\U0001f1f9"),
    ("json", '{"a": "Terms &amp; conditions"}', "&"),
    ("json", '{"a": "to the top &rarr; now"}', "\N{RIGHTWARDS ARROW}"),
    ("json", '{"a": "at least :min signs"}', ":min"),
    ("json", '{"a": "hello { $name } there"}', "$name"),
    ("json", '{"a": "there are 12 files"}', "12"),
    ("json", '{"a": "delete $1 now"}', "$1"),
    ("json", '{"a": "see @:menu.title there"}', "@:menu.title"),
    ("po", 'msgid "about %<total>d files"\nmsgstr ""\n', "%<total>d"),
    ("po", 'msgid "of &brandShortName; here"\nmsgstr ""\n', "&brandShortName;"),
    ("html", "<p>page 7 of it", "7"),
    ("md", "page 7 of it \U0001f606", "\U0001f606"),
    ("srt", "1\n00:00:01,0 --> 00:00:02,0\nhe left in 1999 then\n", "1999"),
    ("csv", "text\nabout 5 dogs\n", "5"),
    ("txt", "about 5 dogs\n", "5"),
]


@pytest.mark.parametrize(("kind", "data", "word"), LOST)
def test_a_unit_that_loses_a_placeholder_an_emoji_a_number_or_a_reference_is_to_be_reviewed(
    kind: str, data: str, word: str
) -> None:
    document = read(data.encode(), kind, **({"column": "text"} if kind == "csv" else {}))
    assert translate_document(document, FakeTranslator()).review == ()
    (item,) = translate_document(document, FakeTranslator(lambda one: "" if one == word else one)).review
    assert "sign differs" in item.reasons[0]


def test_numbers_and_placeholders_of_code_in_a_sentence_come_back_whatever_the_model_makes_of_them() -> None:
    document = read(b"<p>Call <code>f(%s, 7)</code> twice", "html")
    result = translate_document(document, FakeTranslator(lambda word: "x" if "%" in word or "7" in word else word))
    assert result.data == b"<p>Call <code>f(%s, 7)</code> twice"
    assert result.review == ()


def test_no_tag_comes_to_stand_inside_a_placeholder() -> None:
    text = "by Sphinx %(version)s now"
    marks = (Mark(3, 1, "open"), Mark(9, 1, "close"), Mark(21, 2, "point"))
    got: list[UnitTranslation | None] = []
    document = Document((unit(text, marks=marks),), lambda translations: got.extend(translations) or b"")  # type: ignore[func-returns-value]

    class Shuffled(FakeTranslator):
        def translations(self, texts: Iterable[str], **options: object) -> Iterator[Translation]:
            for source in texts:
                links = ((0, 0), (1, 0), (2, 1), (3, 0))
                yield Translation(source, "a%(version)sb c", alignment=Alignment((), (), links))

    translate_document(document, Shuffled())
    assert got[0] is not None
    assert not [mark for mark in got[0].marks if 1 < mark.at < 12]
