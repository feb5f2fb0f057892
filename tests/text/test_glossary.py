from pathlib import Path

import pytest

from allyouneed.errors import DataError
from allyouneed.text.glossary import Glossary


def test_terms_are_found_whole_the_longest_first_in_their_order() -> None:
    glossary = Glossary({"dog": "Hund", "hot dog": ("Hotdog", "Würstchen"), "US": "USA"})
    assert list(glossary.find("A hot  dog, dogs, a Dog of the US; trust us.")) == [
        ("hot dog", ("Hotdog", "Würstchen")), ("dog", ("Hund",)), ("US", ("USA",)),
    ]  # fmt: skip
    assert list(Glossary({}).find("dog")) == []


@pytest.mark.parametrize(
    ("term", "text", "count"),
    [
        ("猫", "黑猫坐在垫子上。", 1),  # no blanks between words
        ("แมว", "แมวดำ", 1),
        ("PC", "新PC版", 1),
        ("हिन्द", "हिन्दी भाषा", 0),  # a vowel sign belongs to the word
        ("हिन्दी", "हिन्दी भाषा", 1),
        ("cat", "my_cat cats", 0),
        ("iş", "İş bitti.", 1),  # the small letter of İ is two characters
        ("ılık", "Ilık su", 1),
        ("C++", "C++ x++ C++x", 2),
    ],
)
def test_a_term_matches_whole_words_of_every_script(term: str, text: str, count: int) -> None:
    glossary = Glossary({term: "x"})
    assert [match for match, _ in glossary.find(text)] == [term] * count
    assert len(glossary.spans(text)) == count


def test_a_term_with_a_capital_goes_before_the_same_without() -> None:
    assert list(Glossary({"us": "wir", "US": "USA"}).find("the US and us")) == [("US", ("USA",)), ("us", ("wir",))]


def test_a_capital_that_begins_a_sentence_may_be_carried_over() -> None:
    glossary = Glossary({"dog": "cane", "Hund": "cane", "hot dog": ("il panino", "Panino")})
    assert list(glossary.find("Dog, dog. “Dog!” A Dog.")) == [
        ("dog", ("cane", "Cane")), ("dog", ("cane",)), ("dog", ("cane", "Cane")), ("dog", ("cane", "Cane")),
    ]  # fmt: skip
    assert list(glossary.find("Hund? Hund und Hund")) == [
        ("Hund", ("cane", "Cane")), ("Hund", ("cane", "Cane")), ("Hund", ("cane",)),
    ]  # fmt: skip
    assert list(glossary.find("Hot dog")) == [("hot dog", ("il panino", "Panino", "Il panino"))]


def test_a_file_may_give_a_term_several_translations(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text("# animals\ndog\tHund\n\ndog\tHunde\ncat\tKatze\n")
    glossary = Glossary.read(path)
    assert len(glossary) == 2
    assert list(glossary.find("dog")) == [("dog", ("Hund", "Hunde"))]


def test_a_line_that_is_no_term_is_refused_by_number(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text("dog\tHund\ncat Katze\n")
    with pytest.raises(DataError, match=r"terms\.tsv, line 2 "):
        Glossary.read(path)
