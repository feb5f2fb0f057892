import torch

from allyouneed.data.batch import Batch, pad


def test_short_rows_are_filled_up() -> None:
    assert pad([[1, 2, 3], [4]], pad_id=9).tolist() == [[1, 2, 3], [4, 9, 9]]


def test_no_rows_are_a_batch_of_none() -> None:
    assert pad([], pad_id=9).shape == (0, 1)


def test_the_decoder_is_given_what_came_before_what_it_should_say() -> None:
    batch = Batch(source=torch.tensor([[1, 2]]), target=torch.tensor([[65, 4, 5, 66]]))
    assert batch.target_in.tolist() == [[65, 4, 5]]
    assert batch.target_out.tolist() == [[4, 5, 66]]
