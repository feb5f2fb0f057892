import math

import pytest
import torch

from allyouneed.apps.explain import Trace
from allyouneed.apps.explain.heads import Head, describe_finding, describe_head, describe_heads
from messages import numbers_in

LETTERS = list("abcdefgh")


def head(weights: torch.Tensor, part: str = "encoder.layers.0.attention", keys: list[str] = LETTERS) -> Head:
    return describe_head(part, 1, weights, queries=LETTERS[: len(weights)], keys=keys)


def on_key(key: int) -> torch.Tensor:
    """Make weights with which every query attends to one key."""
    return torch.nn.functional.one_hot(torch.full((8,), key), 8).float()


def test_every_head_is_described(trace: Trace) -> None:
    heads = describe_heads(trace)
    assert len(heads) == 5 * 3
    assert all(0 <= head.entropy <= math.log2(16) for head in heads)
    assert all(describe_finding(head) for head in heads)


@pytest.mark.parametrize(
    ("weights", "keys", "role", "entropy"),
    [
        (torch.eye(8), LETTERS, "same position", 0.0),
        (torch.eye(8).roll(1, 0), LETTERS, "previous position", 0.0),
        (torch.eye(8).roll(-1, 0), LETTERS, "next position", 0.0),
        (torch.full((8, 8), 1 / 8), LETTERS, "spread evenly", 3.0),
        (on_key(7), [*"abcdefg", "<eos>"], "<eos>", 0.0),
        (on_key(3), [*"abc", "␣,", *"efgh"], "punctuation", 0.0),
        (on_key(3), LETTERS, "one token", 0.0),
        (torch.eye(8).flip(0), [*"hgfedcba"], "equal token", 0.0),
    ],
)
def test_what_a_head_does_is_named(weights: torch.Tensor, keys: list[str], role: str, entropy: float) -> None:
    described = head(weights, keys=keys)
    assert described.role == role
    assert described.entropy == pytest.approx(entropy, abs=1e-5)


def test_where_nothing_stands_out_no_pattern_is_named() -> None:
    generator = torch.Generator().manual_seed(0)
    scattered = torch.eye(8)[torch.randperm(8, generator=generator)] * 0.3 + torch.eye(8).roll(4, 0) * 0.7
    described = head(scattered)
    assert described.role.startswith("no ")
    assert described.role in describe_finding(described)


def test_a_finding_is_measured_against_even_weights() -> None:
    described = head(0.6 * torch.eye(8).roll(1, 0) + 0.4 / 8)
    assert described.share == pytest.approx((0.6 * 7 + 0.05 * 7) / 8)
    assert described.even == pytest.approx(7 / 64)
    assert describe_finding(described).startswith("previous position: ")
    assert numbers_in(describe_finding(described)) == [57, 11]


def test_in_a_decoder_even_weights_are_those_of_the_tokens_it_sees() -> None:
    even = torch.ones(8, 8).tril()
    assert head(even / even.sum(-1, keepdim=True), "decoder.layers.0.self_attention").role == "spread evenly"


def test_in_cross_attention_the_same_position_is_that_of_the_written_token() -> None:
    weights = torch.eye(8).roll(1, 1)  # position t, which writes token t + 1, attends to token t + 1
    keys = [*"hijklmno"]
    assert head(weights, "decoder.layers.0.cross_attention", keys).role == "same position"
