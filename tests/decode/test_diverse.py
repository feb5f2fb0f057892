import torch

from allyouneed.decode import diverse_beam_search
from tables import EOS, SOS, Table


def first_words(diversity: float) -> int:
    different = 0
    for seed in range(20):
        table = Table(vocabulary=9, seed=seed)
        (found,) = diverse_beam_search(
            table, table.start(1), sos_id=SOS, eos_id=EOS, max_lengths=torch.tensor([6]),
            beam=3, alpha=0.6, groups=3, diversity=diversity, nbest=3,
        )  # fmt: skip
        assert len({tuple(hypothesis.ids) for hypothesis in found}) == len(found)
        different += len({tuple(hypothesis.ids[:1]) for hypothesis in found})
    return different


def test_more_diversity_makes_more_different_sentences() -> None:
    assert first_words(0.0) < first_words(1.0) < first_words(10.0)
