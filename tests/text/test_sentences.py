import pytest

from allyouneed.text.sentences import cut, gap_between


def sentences(text: str, language: str = "en") -> list[str]:
    return cut(text, lambda part: True, language=language)


def test_sentences_end_where_a_reader_would_say() -> None:
    assert sentences("Dr. Smith left. Why? He knew.") == ["Dr. Smith left.", "Why?", "He knew."]


def test_what_does_not_fit_is_cut_at_clauses_then_at_words() -> None:
    def fits(text: str) -> bool:
        return len(text) <= 12

    assert cut("One, two, three four five six. Seven.", fits) == ["One, two,", "three four", "five six.", "Seven."]
    assert cut("aaaaaaaaaaaaaaaa", fits) == ["aaaaaaaaaaaaaaaa"]


def test_spans_stay_whole_also_where_they_overlap() -> None:
    text = "aa bb cc dd ee ff"
    assert cut(text, lambda part: len(part) <= 5, whole=[(9, 14), (3, 8), (6, 11)]) == ["aa", "bb cc dd ee", "ff"]


@pytest.mark.parametrize("blank", "\u00a0\u202f\u2009\u3000\u2028")
@pytest.mark.parametrize("text", ["Plan B@.", "Point A@. Next", "x A@."])
def test_a_blank_beyond_ascii_before_a_full_stop_is_one(text: str, blank: str) -> None:
    assert "".join(sentences(text.replace("@", blank))).replace(" ", "") == text.replace("@", blank).replace(" ", "")


def test_cutting_looks_at_each_place_a_few_times_however_long_the_text_is() -> None:
    """Counted in the characters that `fits` is shown, not in seconds."""

    def characters_read(words: int) -> int:
        read = 0

        def fits(part: str) -> bool:
            nonlocal read
            read += len(part)
            return len(part) <= 20

        cut("1845-01-05 " * words, fits)
        return read

    assert characters_read(4_000) / characters_read(2_000) < 2.1


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("language", "text", "count"),
    [
        ("de", "Wir treffen uns am 3. Mai. Siehe Nr. 5 und Abs. 2 auf dieser Seite.", 2),
        ("it", "Il Sig. Bianchi abita qui. Vedi pag. 3 del libro.", 2),
        ("es-MX", "El Sr. Ruiz y la Sra. Gil viven en la Av. Central.", 1),
        ("fr", "M. Dupont habite ici. Voir p. 3.", 2),
        ("pt_BR", "O Sr. Silva mora na Av. Brasil. Ver pág. 3.", 2),
        ("cs", "Přijde 3. května. Viz str. 5.", 2),
        ("zh-Hans", "你好。今天天气很好。我们去公园吗？", 3),
        ("hi", "यह घर है। वह जाता है।", 2),
    ],
)
def test_sentences_end_by_the_rules_of_their_language_and_mostly_so_where_it_is_unknown(
    language: str, text: str, count: int, known: bool
) -> None:
    assert len(sentences(text, language if known else "")) == count


def test_the_language_decides() -> None:
    text = "Er kommt am 3. Mai."
    assert (len(sentences(text, "de")), len(sentences(text, "en"))) == (1, 2)


def test_a_blank_parts_sentences_where_the_target_language_has_one() -> None:
    assert [gap_between(gap, "en") for gap in ("", " ", "\u3000", "\n", "\t")] == [" ", " ", " ", "\n", "\t"]
    assert [gap_between(gap, "zh-Hant") for gap in ("", " ", "\u3000", "\n", "\t")] == ["", "", "", "\n", "\t"]
    assert gap_between(" ", "") == " "


def test_an_end_beyond_what_the_library_reads_at_once_is_found() -> None:
    text = "This is sentence number one. " * 100 + "word " * 300 + "end. And one more."
    assert len(sentences(text)) == 102
