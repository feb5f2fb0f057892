import torch

from allyouneed.nn import causal_mask, padding_mask


def test_everyone_may_look_at_words_and_nobody_at_padding() -> None:
    mask = padding_mask(torch.tensor([[5, 3, 9], [4, 9, 9]]), pad_id=9)
    assert mask.shape == (2, 1, 1, 3)
    assert mask.squeeze().tolist() == [[True, True, False], [True, False, False]]


def test_a_word_may_look_at_itself_and_back() -> None:
    assert causal_mask(3).tolist() == [[True, False, False], [True, True, False], [True, True, True]]
