"""Subtitles: sentences run over lines and cues; their translations are broken where the source was."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allyouneed.apps.documents.document_translation import translate_document
from allyouneed.apps.documents.subtitles import split_like
from allyouneed.errors import DocumentError
from fake_translator import FakeTranslator
from unit_models import answer, identity, read, texts, untouched

SRT = """\
1
00:00:01,000 --> 00:00:03,000
{\\an8}<i>The old lighthouse keeper
never saw the ship</i>

2
00:00:03,100 --> 00:00:05,000
because of the fog.

3
00:00:06,000 --> 00:00:08,000 X1:100 X2:200
- Who is <b>there</b>?
- Me. It is late,

4
00:00:08,500 --> 00:00:09,000
John.

5
00:00:10,000 --> 00:00:11,000
♪ ♪

6
00:00:12,000 --> 00:00:13,000
♪ La, la, la ♪
-5 degrees

99 bottles
"""
VTT = """\
WEBVTT - a title

STYLE
::cue(b) { color: red }

NOTE this is a note, not a text

intro
00:01.000 --> 00:03.000 align:start
<v Ann>Salt &amp; pepper are
on <c.big>the table</c>,

00:00:03.000 --> 00:00:04.000
<v Bob>really.
"""


def test_units_are_sentences_over_lines_and_cues() -> None:
    document = read("srt", SRT)
    assert [(unit.key, unit.text) for unit in document.units] == [
        ("00:00:01,000", "The old lighthouse keeper never saw the ship because of the fog."),
        ("00:00:06,000", "Who is there?"),
        ("00:00:06,000", "Me. It is late, John."),
        ("00:00:12,000", "La, la, la -5 degrees"),
        ("00:00:12,000", "99 bottles"),
    ]
    assert texts(read("vtt", VTT)) == ["Salt & pepper are on the table,", "really."]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_the_identity_gives_every_byte_back(mark: str, newline: str) -> None:
    for kind, text in (("srt", SRT), ("vtt", VTT)):
        data = (mark + text.replace("\n", newline)).encode()
        document = read(kind, data)
        assert len(document.units) > 1
        assert identity(document) == untouched(document) == data


def test_a_translation_is_broken_at_similar_lengths() -> None:
    answers = {
        "The old lighthouse keeper never saw the ship because of the fog.":
            "Der alte Leuchtturmwärter sah das Schiff wegen des dichten Nebels nie.",
        "Who is there?": "Wer ist da?", "Me. It is late, John.": "Ich. Es ist spät, John.",
        "La, la, la -5 degrees": "La, la, la fünf Grad", "99 bottles": "99 Flaschen",
    }  # fmt: skip
    written = answer(read("srt", SRT), answers).decode().split("\n\n")
    assert written[0].endswith("{\\an8}<i>Der alte Leuchtturmwärter sah\ndas Schiff wegen des</i>")
    assert written[1].endswith("5,000\ndichten Nebels nie.")
    assert written[2].endswith("- <b>Wer ist da?</b>\n- Ich. Es ist spät,")
    assert written[3].endswith("\nJohn.")


def test_what_has_fewer_words_than_lines_is_shown_in_every_cue() -> None:
    text = "1\n00:00:01,0 --> 00:00:02,0\n<i>it is\nnot so</i>\n\n2\n00:00:02,0 --> 00:00:03,0\nof course\n"
    assert answer(read("srt", text), lambda _: "Nein").decode() == (
        "1\n00:00:01,0 --> 00:00:02,0\n<i>Nein</i>\n\n2\n00:00:02,0 --> 00:00:03,0\nNein\n"
    )


def test_lines_keep_to_the_limit_or_to_the_longest_of_the_file() -> None:
    timing = "00:00:01.000 --> 00:00:02.000\n"
    written = answer(read("vtt", f"WEBVTT\n\n{timing}short\n"), lambda _: "word " * 19 + "word").decode()
    lines = written.splitlines()[3:]
    assert [len(line) for line in lines] == [34, 29, 34]
    long = f"WEBVTT\n\n{timing}{'x' * 60}\n"
    assert answer(read("vtt", long), lambda _: "word " * 11 + "word").decode().endswith("\n" + "word " * 11 + "word\n")


def test_times_end_the_text_of_a_cue_even_without_a_blank_line() -> None:
    text = "WEBVTT\n\n00:01.000 --> 00:02.000\none.\n00:02.000 --> 00:03.000\ntwo.\n"
    assert texts(read("vtt", text)) == ["one.", "two."]
    assert identity(read("vtt", text)) == text.encode()


def test_a_file_without_cues_has_no_units() -> None:
    for kind, text in (("vtt", "WEBVTT\n\nNOTE nothing\n"), ("srt", " \n")):
        assert identity(read(kind, text)) == text.encode()


def test_signs_of_markup_are_escaped_as_the_file_escapes_them() -> None:
    def written(line: str) -> str:
        document = read("vtt", f"WEBVTT\n\n00:01.000 --> 00:02.000\n{line}\n")
        return answer(document, lambda text: f"{text} & < >").decode().splitlines()[-1]

    assert written("a &lt; b &amp; c") == "a &lt; b &amp; c &amp; &lt; &gt;"
    assert written("&#x3C; &#233;") == "&#x3C; &#233; &amp; &#x3C; &gt;"
    assert written("a &#x; b") == "a &#x; b & &lt; &gt;"
    assert written("Q&A") == "Q&A & &lt; &gt;"


def test_character_references_are_read_as_characters() -> None:
    text = "WEBVTT\n\n00:01.000 --> 00:02.000\ncaf&#233;s &eacute;é &#x1F600; a&rlm; b&nbsp;c &#38; &x; &#10; &#9; &\n"
    document = read("vtt", text)
    assert texts(document) == ["cafés éé \U0001f600 a b c & &x;   &"]
    assert identity(document) == text.encode()


def test_captions_without_punctuation_are_joined_three_at_a_time() -> None:
    cues = "".join(f"00:00:0{i}.000 --> 00:00:0{i}.900\nword{i} and\n\n" for i in range(9))
    assert len(read("vtt", "WEBVTT\n\n" + cues).units) == 3


def test_tags_across_cues_keep_their_sentences_apart() -> None:
    text = "1\n00:00:01,0 --> 00:00:02,0\nthe <i>old</i> man\n\n2\n00:00:02,0 --> 00:00:03,0\nwent home\n"
    assert texts(read("srt", text)) == ["the old man", "went home"]


@pytest.mark.parametrize(
    ("text", "lengths", "parts"),
    [
        ("one two three four", [7, 10], ["one two", "three four"]),
        ("one two three", [3, 3, 5], ["one", "two", "three"]),
        ("a bbbbbbbbbbbbbbbbbbbbb c", [1, 1, 1], ["a", "bbbbbbbbbbbbbbbbbbbbb", "c"]),
        ("日本語の字幕です", [2, 2], ["日本語の", "字幕です"]),
        ("Nein", [3, 3], None),
        ("", [3, 3], None),
    ],
)
def test_worked_cases_of_splitting(text: str, lengths: list[int], parts: list[str] | None) -> None:
    spans = split_like(text, lengths)
    assert (None if spans is None else [text[start:end] for start, end in spans]) == parts


@given(st.lists(st.text("abc", min_size=1, max_size=9), min_size=1, max_size=20), st.data())
def test_splitting_a_text_like_itself_gives_its_lines(words: list[str], data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, len(words)), max_size=4)) | {0, len(words)})
    lines = [" ".join(words[start:end]) for start, end in pairwise(cuts)]
    text = " ".join(words)
    spans = split_like(text, [len(line) for line in lines])
    assert spans
    assert [text[start:end] for start, end in spans] == lines


@given(st.lists(st.sampled_from([*"ab .,-<>i/&\n1", "&amp;", "&#97;", "&lrm;"]), max_size=80).map("".join))
def test_any_text_of_a_cue_comes_back_from_the_identity(text: str) -> None:
    for kind, head in (("srt", "1\n"), ("vtt", "WEBVTT\n\n")):
        data = f"{head}00:00:01.000 --> 00:00:02.000\n{text}\n\n".encode()
        assert identity(read(kind, data)) == data


@pytest.mark.parametrize(
    ("kind", "content", "message"),
    [
        ("srt", b"1\nno times here\n", "not a SubRip"),
        ("vtt", b"1\n00:01.000 --> 00:02.000\nx\n", "WEBVTT"),
        ("srt", "1\n00:00:01,000 --> 00:00:02,000\nFüße\n".encode("latin-1"), "line 3"),
        ("vtt", b"", "WEBVTT"),
    ],
)
def test_what_is_no_subtitle_file_is_refused(kind: str, content: bytes, message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        read(kind, content)


def test_huge_lines_are_read_at_once() -> None:
    for line in ("<i>" * 50_000, "a<" * 50_000, "♪ " * 50_000, "word " * 50_000, "{\\a" * 50_000, ">" * 100_000):
        data = f"1\n00:00:01,000 --> 00:00:02,000\n{line}\n".encode()
        assert untouched(read("srt", data)) == data


def test_the_reading_of_a_word_is_a_text_of_its_own() -> None:
    text = "WEBVTT\n\n00:01.000 --> 00:02.000\nThe <ruby>house<rt>casa</rt></ruby>\nis here\n"
    document = read("vtt", text)
    assert texts(document) == ["The house is here\ncasa"]
    assert identity(document) == text.encode()
    assert translate_document(document, FakeTranslator(str.upper)).data.decode().splitlines()[3:] == [
        "THE <ruby>HOUSE<rt>CASA</rt></ruby>", "IS HERE"
    ]  # fmt: skip


@pytest.mark.parametrize("line", ["one <00:01.500>", "one<00:01.500>", "one {\\k20}", "one &lrm;", "one <c>x </c>"])
def test_a_tag_at_the_end_of_a_line_stays(line: str) -> None:
    document = read("vtt", f"WEBVTT\n\n00:01.000 --> 00:02.000\n{line}\ntwo of them\n")
    written = translate_document(document, FakeTranslator(str.upper)).data.decode()
    assert written.splitlines()[3].replace(" ", "") == line.replace("one", "ONE").replace("x", "X").replace(" ", "")


def test_breaks_with_a_backslash_are_breaks() -> None:
    text = "1\n00:00:01,000 --> 00:00:02,000\nThe house is\\Nlarge\\hand open\n"
    document = read("srt", text)
    assert texts(document) == ["The house is large and open"]
    assert identity(document) == text.encode()


def translated(kind: str, text: str, *, reverse: bool = True, **options: object) -> tuple[list[str], str]:
    """Return the texts that a model reads of subtitles, and the translated file."""
    model = FakeTranslator(str.upper, reverse=reverse)
    written = translate_document(read(kind, text, **options), model).data.decode()
    return model.texts, written


def srt(*cues: str) -> str:
    return "\n".join(f"{i}\n00:00:0{i},000 --> 00:00:0{i},900\n{cue}\n" for i, cue in enumerate(cues, start=1))


ROLLING = """WEBVTT
Kind: captions
Language: en

00:00.000 --> 00:02.000 align:start
~
the<00:00.500><c> house</c><00:01.000><c> is</c>

00:02.000 --> 00:02.010 align:start
the house is
~

00:02.010 --> 00:04.000 align:start
the house is
open<00:02.500><c> to</c><00:03.000><c> all</c>

00:04.000 --> 00:04.010 align:start
open to all
~
""".replace("~", " ")


def test_a_line_that_rolls_up_is_read_once_and_shown_again() -> None:
    read_texts, written = translated("vtt", ROLLING, reverse=False, target_language="it")
    assert read_texts == ["the house is open to all"]
    cues = [cue.split("\n", 1)[1].split("\n") for cue in written.strip("\n").split("\n\n")[1:]]
    assert [[line.strip() for line in cue if line.strip()] for cue in cues] == [
        ["THE HOUSE IS"], ["THE HOUSE IS"], ["THE HOUSE IS", "OPEN TO ALL"], ["OPEN TO ALL"]
    ]  # fmt: skip
    assert written.startswith("WEBVTT\nKind: captions\nLanguage: it\n\n00:00.000 --> 00:02.000 align:start\n")
    assert identity(read("vtt", ROLLING, target_language="it")) == ROLLING.encode()
    assert "Language: en" in translated("vtt", ROLLING)[1]


def test_lines_that_roll_with_tags_or_with_fewer_words_than_lines() -> None:
    text = srt("One house.\n<i>Two houses.</i>", "<i>Two houses.</i>\nA man.", "A man.")
    read_texts, written = translated("srt", text)
    assert read_texts == ["One house.", "Two houses.", "A man."]
    assert written == srt("HOUSE. ONE\n<i>HOUSES. TWO</i>", "<i>HOUSES. TWO</i>\nMAN. A", "MAN. A")
    short = answer(read("srt", srt("it is\nnot", "not\nso")), lambda _: "Nein").decode()
    assert short == srt("Nein", "Nein\nNein")


@pytest.mark.parametrize(
    ("cue", "read_texts", "written"),
    [
        ("TOM: Where is the file?\nANN: In the house", ["Where is the file?", "In the house"],
         "TOM: FILE? THE IS WHERE\nANN: HOUSE THE IN"),
        ("Tom: Where is it\nAnn Lee: In the house", ["Tom:", "Where is it", "Ann Lee:", "In the house"],
         "TOM: IT IS WHERE\nLEE: ANN HOUSE THE IN"),
        ("[TOM] Where is it\n(laughs) Here", ["Where is it", "(laughs)", "Here"], "[TOM] IT IS WHERE\n(LAUGHS) HERE"),
        ("- Where is it\n- In the house", ["Where is it", "In the house"], "- IT IS WHERE\n- HOUSE THE IN"),
        ("<b>MAN 1:</b> Where\nis it?", ["Where is it?"], "<b>MAN 1:</b> IT? IS\nWHERE"),
        ('<font color="#ff0">The file</font>\n<font color="#0ff">The house</font>', ["The file", "The house"],
         '<font color="#ff0">FILE THE</font>\n<font color="#0ff">HOUSE THE</font>'),
        ('<font color="red">a file</font> <font color="blue">a house</font>', ["a file", "a house"],
         '<font color="red">FILE A</font> <font color="blue">HOUSE A</font>'),
        ("<i>the fox</i>\n<i>is open</i>", ["the fox is open"], "<i>OPEN IS</i>\n<i>FOX THE</i>"),
        ("the time is 5:30\nand it is late", ["the time is 5:30 and it is late"], "LATE IS IT AND\n5:30 IS TIME THE"),
    ],
)  # fmt: skip
def test_words_stay_with_their_speaker_and_colour(cue: str, read_texts: list[str], written: str) -> None:
    assert translated("srt", srt(cue)) == (read_texts, srt(written))
    assert identity(read("srt", srt(cue))) == srt(cue).encode()


@pytest.mark.parametrize(
    ("cue", "read_texts"),
    [
        ("<v Tom>Where is it</v>\n<v Ann>in the house</v>", ["Where is it", "in the house"]),
        ("<v Tom>Where is it\n<v Ann>in the house", ["Where is it", "in the house"]),
        ("<v Tom>Where is it</v> <v Ann>in the house</v>", ["Where is it", "in the house"]),
        ("<v Tom>Where is it\nin the house", ["Where is it in the house"]),
        ("<c.red>a file</c>\n<c.blue>a house</c>", ["a file", "a house"]),
        ("<c.red>a file</c> <c.blue>a house</c>", ["a file", "a house"]),
        ("the <c.red>fox</c> is\nopen", ["the fox is open"]),
    ],
)
def test_voices_and_classes_keep_their_words(cue: str, read_texts: list[str]) -> None:
    text = f"WEBVTT\n\n00:01.000 --> 00:02.000\n{cue}\n"
    seen, written = translated("vtt", text)
    assert seen == read_texts
    for words in read_texts if len(read_texts) > 1 else ():
        assert ">" + " ".join(words.upper().split()[::-1]) in written
    assert identity(read("vtt", text)) == text.encode()
