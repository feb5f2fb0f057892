import pytest

from allyouneed.text.sentences import cut


def sentences(text: str) -> list[str]:
    return cut(text, lambda part: True)


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
