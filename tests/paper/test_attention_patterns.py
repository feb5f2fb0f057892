import re

import pytest
import torch

from allyouneed.apps.explain.draw import to_svg
from allyouneed.apps.paper.attention_patterns import _anaphora, _Head, _long_range, _structure, find_patterns
from allyouneed.bundle import Bundle
from allyouneed.errors import InputError
from allyouneed.translator import Translator
from messages import numbers_in

PIECES = ["<sos>", "␣the", "␣dog", "␣saw", "␣the", "␣man", "␣and", "␣his", "␣hat", ".", "<eos>"]


def head(number: int, weights: torch.Tensor) -> _Head:
    return _Head(PIECES, 1, number, weights)


def attending(query: int, key: int) -> torch.Tensor:
    weights = torch.eye(len(PIECES))
    weights[query] = 0
    weights[query, key] = 1
    return weights


def test_the_longest_distance_is_figure_3() -> None:
    pattern = _long_range([head(1, attending(4, 2)), head(2, attending(8, 1))])
    assert re.search("head 2, “hat” .*“the”, 7 tokens .*1\\.00", pattern.text)
    assert "in 0 of 1 sentences" in pattern.text
    assert pattern.figure is not None


def test_special_tokens_and_small_weights_do_not_count() -> None:
    even = torch.full((len(PIECES), len(PIECES)), 1 / len(PIECES))
    even[8] = 0
    even[8, 0] = 1
    pattern = _long_range([head(1, even)])
    assert numbers_in(pattern.text) == [0.3]
    assert pattern.figure is None


def test_the_strongest_weight_of_a_pronoun_is_figure_4() -> None:
    pattern = _anaphora([head(1, attending(7, 5)), head(2, attending(7, 6))])
    assert re.search("head 1, “his” .*“man” .*1\\.00", pattern.text)
    assert re.search("1 pronouns, .*1\\.00 \\(median", pattern.text)


def test_without_a_pronoun_figure_4_says_so() -> None:
    one = _Head(["<sos>", "␣a", "␣dog", "<eos>"], 1, 1, torch.eye(4))
    assert _anaphora([one]).figure is None


def test_the_heads_that_differ_most_are_figure_5() -> None:
    same, other = torch.eye(len(PIECES)), torch.eye(len(PIECES)).roll(1, 0)
    pattern = _structure([head(1, same), head(2, same), head(3, other)])
    assert "heads 1 and 3 put 100 %" in pattern.text
    assert "median is 100 %" in pattern.text


def test_a_real_model_gives_three_figures(bundle: Bundle) -> None:
    patterns = find_patterns(Translator(bundle), ["abcdefghij", "", "cab"])
    assert [pattern.name for pattern in patterns] == ["figure-3", "figure-4", "figure-5"]
    assert patterns[2].figure is not None
    assert to_svg(patterns[2].figure).startswith("<svg")


def test_no_sentence_is_refused(bundle: Bundle) -> None:
    with pytest.raises(InputError, match="need a sentence"):
        find_patterns(Translator(bundle), ["", " "])
