import torch

from allyouneed.decode import sample_search
from allyouneed.decode.sample import keep_top_k, keep_top_p, sample_tokens
from tables import Table, limits

LIKELY = torch.tensor([[0.5, 0.3, 0.15, 0.05]]).log()


def test_the_same_seed_draws_the_same() -> None:
    def drawn(seed: int) -> list[list[int]]:
        table, rng = Table(9, 4), [torch.Generator().manual_seed(seed + sentence) for sentence in range(6)]
        result = sample_search(table, table.start(6), limits(*[8] * 6), generators=rng)
        return [hypothesis.ids for hypothesis in result]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_top_k_and_top_p_leave_out_the_unlikely() -> None:
    assert keep_top_k(LIKELY, 2).isfinite().tolist() == [[True, True, False, False]]
    assert keep_top_p(LIKELY, 0.79).isfinite().tolist() == [[True, True, False, False]]
    assert keep_top_p(LIKELY, 0.81).isfinite().tolist() == [[True, True, True, False]]
    assert keep_top_p(LIKELY, 0.1).isfinite().tolist() == [[True, False, False, False]]
    assert keep_top_k(LIKELY, 0) is LIKELY
    assert keep_top_p(LIKELY, 1.0) is LIKELY


def test_what_the_model_gives_no_chance_is_never_drawn() -> None:
    rng = torch.Generator().manual_seed(1)
    likely = torch.tensor([[-torch.inf, -0.7, -torch.inf, -0.7, -torch.inf]]).repeat(5_000, 1)
    _, words = sample_tokens(likely, [0] * 5_000, generators=[rng], temperature=1.0, top_k=0, top_p=1.0)
    assert set(words.tolist()) == {1, 3}


def test_words_are_drawn_as_often_as_they_are_likely_and_their_log_probability_is_the_models() -> None:
    rng = torch.Generator().manual_seed(1)
    gains, words = sample_tokens(
        LIKELY.repeat(20_000, 1), [0] * 20_000, generators=[rng], temperature=1.0, top_k=0, top_p=1.0
    )
    torch.testing.assert_close(words.bincount(minlength=4) / 20_000, LIKELY[0].exp(), atol=0.02, rtol=0)
    torch.testing.assert_close(gains, LIKELY[0][words])
    _, careful = sample_tokens(
        LIKELY.repeat(20_000, 1), [0] * 20_000, generators=[rng], temperature=0.1, top_k=0, top_p=1.0
    )
    assert (careful == 0).float().mean() > 0.98
