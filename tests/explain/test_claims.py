"""Claims about heads, on weights that are made so that they are true."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor, nn

from allyouneed.apps.explain import claims
from allyouneed.apps.explain.claims import Claim, describe_claim, sharpest_claims, token_groups
from allyouneed.data.pairs import Pair
from allyouneed.translator import Translator
from messages import numbers_in

CROSS = "decoder.layers.0.cross_attention"
PAIRS = [Pair("abc", "cab"), Pair("bca", "abc"), Pair("cba", "bca"), Pair("abca", "ab")]


def belonging(pieces: list[str], group: str) -> list[int]:
    return token_groups(pieces)[group].nonzero().flatten().tolist()


def test_numbers_and_words_are_runs_of_tokens_without_a_space_between_them() -> None:
    date = ["<sos>", *"1845-01-05", "<eos>"]
    assert belonging(date, "the first number") == [1, 2, 3, 4]
    assert belonging(date, "the second number") == [6, 7]
    assert belonging(date, "the last number") == [9, 10]
    assert belonging(date, "the first word") == []
    assert belonging(["␣un", "fold", "␣it", "."], "the first word") == [0, 1]
    assert belonging(["un", "fold␣", "it␣"], "the last word") == [2]


@contextmanager
def seen_on_first(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Make an attention of two heads, one on the first key, one on all keys alike."""
    seen: dict[str, Tensor] = {}

    def note(_: nn.Module, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        source, target = inputs
        first = torch.nn.functional.one_hot(torch.zeros(target.shape[1], dtype=torch.int64), source.shape[1]).float()
        seen[CROSS] = torch.stack([torch.full_like(first, 1 / source.shape[1]), first])[None]

    hook = model.register_forward_hook(note)
    yield seen
    hook.remove()


def test_what_a_head_does_everywhere_is_claimed_and_even_weights_claim_nothing(
    translator_of_tests: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "recorded_attention", seen_on_first)
    (claim,) = sharpest_claims(translator_of_tests, PAIRS)
    assert (claim.part, claim.head, claim.keys, claim.share, claim.inputs) == (CROSS, 2, "<sos>", 1.0, 2)


def test_a_pair_that_the_vocabulary_cannot_spell_is_not_counted(
    translator_of_tests: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "recorded_attention", seen_on_first)
    (claim,) = sharpest_claims(translator_of_tests, [Pair("äöü", "abc"), *PAIRS, Pair("abc", "äöü")])
    assert claim.inputs == 2


def test_without_pairs_nothing_is_claimed(translator_of_tests: Translator) -> None:
    assert sharpest_claims(translator_of_tests, []) == []


def test_a_claim_is_a_sentence_with_its_share() -> None:
    claim = Claim(CROSS, 1, "the first number", "the last number", 0.917, 0.167, 200)
    described = describe_claim(claim)
    assert re.search("first number.* last number", described)
    assert numbers_in(described) == [92, 200, 17]
