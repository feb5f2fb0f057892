import pytest
import torch

from allyouneed.bundle import Bundle
from allyouneed.errors import InputError
from allyouneed.explain.draw import to_svg
from allyouneed.paper.attention_patterns import _anaphora, _Head, _long_range, _structure, find_patterns
from allyouneed.translator import Translator

PIECES = ["<sos>", "␣the", "␣dog", "␣saw", "␣the", "␣man", "␣and", "␣his", "␣hat", ".", "<eos>"]


def head(number: int, weights: torch.Tensor) -> _Head:
    return _Head(PIECES, 1, number, weights)


def looking(place: int, other: int) -> torch.Tensor:
    weights = torch.eye(len(PIECES))
    weights[place] = 0
    weights[place, other] = 1
    return weights


def test_the_look_that_reaches_farthest_is_figure_3() -> None:
    found = _long_range([head(1, looking(4, 2)), head(2, looking(8, 1))])
    assert "head 2, “hat” gives “the”, 7 tokens away, a weight of 1.00" in found.words
    assert "ten tokens or farther with 0.3 or more in 0 of 1 sentences" in found.words
    assert found.figure is not None


def test_signs_and_faint_looks_do_not_count() -> None:
    even = torch.full((len(PIECES), len(PIECES)), 1 / len(PIECES))
    even[8] = 0
    even[8, 0] = 1
    found = _long_range([head(1, even)])
    assert found.words == "No head gives another word a weight of 0.3 or more."
    assert found.figure is None


def test_the_pronoun_that_looks_back_is_figure_4() -> None:
    found = _anaphora([head(1, looking(7, 5)), head(2, looking(7, 6))])
    assert "head 1, “his” looks back at “man” with a weight of 1.00" in found.words
    assert "Over all 1 pronouns, this head's strongest look back has a weight of 1.00 (median)" in found.words


def test_without_a_pronoun_figure_4_says_so() -> None:
    one = _Head(["<sos>", "␣a", "␣dog", "<eos>"], 1, 1, torch.eye(4))
    assert _anaphora([one]).figure is None


def test_the_heads_that_agree_least_are_figure_5() -> None:
    same, other = torch.eye(len(PIECES)), torch.eye(len(PIECES)).roll(1, 0)
    found = _structure([head(1, same), head(2, same), head(3, other)])
    assert "heads 1 and 3 put 100 %" in found.words
    assert "Of all pairs of heads of a layer that is 100 % (median)" in found.words


def test_a_real_model_gives_three_findings(bundle: Bundle) -> None:
    found = find_patterns(Translator(bundle), ["abcdefghij", "", "cab"])
    assert [one.name for one in found] == ["figure-3", "figure-4", "figure-5"]
    assert found[2].figure is not None
    assert to_svg(found[2].figure).startswith("<svg")


def test_no_sentence_is_refused(bundle: Bundle) -> None:
    with pytest.raises(InputError, match="need a sentence"):
        find_patterns(Translator(bundle), ["", " "])
