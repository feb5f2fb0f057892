import torch

from allyouneed.decode import BeamOptions, SearchLimits, beam_search, greedy_search, make_step
from allyouneed.nn import Transformer


def test_a_model_gives_log_probabilities(model: Transformer, source: torch.Tensor) -> None:
    log_probabilities, _ = make_step(model)(torch.tensor([1, 1]), model.start(source))
    torch.testing.assert_close(log_probabilities.exp().sum(-1), torch.ones(2))


def test_what_may_never_be_said_has_no_chance(model: Transformer, source: torch.Tensor) -> None:
    log_probabilities, _ = make_step(model, banned_ids=(0, 1))(torch.tensor([1, 1]), model.start(source))
    assert log_probabilities[:, :2].isneginf().all()
    torch.testing.assert_close(log_probabilities.exp().sum(-1), torch.ones(2))


def test_a_beam_of_one_over_a_model_is_greedy(model: Transformer, source: torch.Tensor) -> None:
    step = make_step(model, banned_ids=(0, 1))
    limits = SearchLimits(sos_id=1, eos_id=2, max_lengths=torch.tensor([12, 9]))
    with torch.inference_mode():
        greedy = greedy_search(step, model.start(source), limits)
        beam = beam_search(step, model.start(source), limits, BeamOptions(beam=1, alpha=0.6))
    assert [hypothesis.ids for hypothesis in greedy] == [best.ids for (best,) in beam]


def test_a_search_over_a_model_says_true_log_probabilities(model: Transformer, source: torch.Tensor) -> None:
    """What the beam claims of its sentence is what the full pass says of it."""
    with torch.inference_mode():
        result = beam_search(
            make_step(model),
            model.start(source),
            SearchLimits(sos_id=1, eos_id=2, max_lengths=torch.tensor([6, 6])),
            BeamOptions(beam=4, alpha=0.6),
        )
        for row, (hypothesis,) in zip(source, result, strict=True):
            tokens = [*hypothesis.ids, 2][:6]
            target = torch.tensor([[1, *tokens]])
            log_probabilities = model(row[None], target[:, :-1]).log_softmax(-1)
            expected = log_probabilities.gather(-1, target[:, 1:, None]).sum()
            torch.testing.assert_close(torch.tensor(hypothesis.log_probability), expected)
