import math

import pytest
import torch

from allyouneed.errors import ConfigError, InputError
from allyouneed.nn import Embedding


def test_ids_become_vectors() -> None:
    embedding = Embedding(vocab_size=10_000, d_model=512)
    assert embedding(torch.tensor([[1, 2, 3, 4, 5], [9_999, 0, 7, 7, 1]])).shape == (2, 5, 512)


def test_a_row_is_looked_up_and_scaled() -> None:
    embedding = Embedding(vocab_size=7, d_model=4)
    torch.testing.assert_close(embedding(torch.tensor([[3]]))[0, 0], embedding.table[3] * 2)


def test_scaled_vectors_start_with_unit_variance() -> None:
    embedding = Embedding(vocab_size=2_000, d_model=128)
    vectors = embedding(torch.arange(2_000)[None])
    assert math.isclose(vectors.var().item(), 1.0, rel_tol=0.02)
    assert abs(vectors.mean().item()) < 0.01


@pytest.mark.parametrize("stranger", [-1, 7])
def test_an_id_outside_the_vocabulary_is_refused(stranger: int) -> None:
    with pytest.raises(InputError, match=rf"id {stranger} .*7 \(0 to 6\)"):
        Embedding(vocab_size=7, d_model=4)(torch.tensor([[0, stranger]]))


def test_ids_that_are_no_whole_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="whole numbers"):
        Embedding(vocab_size=7, d_model=4)(torch.tensor([[0.0]]))


@pytest.mark.parametrize("vocab_size", [1e4, 0, -3, True])
def test_a_size_that_is_no_whole_number_is_refused(vocab_size: int) -> None:
    with pytest.raises(ConfigError, match="vocab_size must be"):
        Embedding(vocab_size=vocab_size, d_model=4)


def test_no_ids_give_no_vectors() -> None:
    assert Embedding(vocab_size=7, d_model=4)(torch.empty(2, 0, dtype=torch.int64)).shape == (2, 0, 4)
