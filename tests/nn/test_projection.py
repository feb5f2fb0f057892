import torch

from allyouneed.nn import Embedding, Projection


def test_vectors_become_logits() -> None:
    projection = Projection(d_model=4, vocab_size=7)
    x = torch.randn(2, 3, 4)
    torch.testing.assert_close(projection(x), x @ projection.table.T)


def test_a_shared_table_is_one_parameter() -> None:
    embedding = Embedding(vocab_size=7, d_model=4)
    assert Projection(d_model=4, vocab_size=7, table=embedding.table).table is embedding.table
