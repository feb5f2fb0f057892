from allyouneed.text.sentences import cut, sentences


def test_sentences_end_where_a_reader_would_say() -> None:
    assert sentences("Dr. Smith left. Why? He knew.") == ["Dr. Smith left.", "Why?", "He knew."]


def test_what_does_not_fit_is_cut_at_clauses_then_at_words() -> None:
    def fits(text: str) -> bool:
        return len(text) <= 12

    assert cut("One, two, three four five six. Seven.", fits) == ["One, two,", "three four", "five six.", "Seven."]
    assert cut("aaaaaaaaaaaaaaaa", fits) == ["aaaaaaaaaaaaaaaa"]
