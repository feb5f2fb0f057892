"""The Transformer in one file: its numbers are those of `nn/`, and it learns."""

import importlib.util
import random
from pathlib import Path
from typing import Any

import pytest
import torch

from allyouneed import ModelConfig
from allyouneed.nn import Transformer
from allyouneed.train.loss import mean_loss

FILE = Path(__file__).parent.parent / "examples" / "micro.py"


@pytest.fixture
def micro() -> Any:
    spec = importlib.util.spec_from_file_location("micro", FILE)
    assert spec
    assert spec.loader
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.LAYERS = 2
    return module


def same_model(micro: Any, model: Any) -> Transformer:
    """Make the model of `nn/` with the same weights, in double precision."""
    size = len(micro.VOCABULARY)
    config = ModelConfig(
        vocab_size=size + 1,
        pad_id=size,  # which no sentence has
        d_model=micro.D_MODEL,
        d_ff=micro.D_FF,
        heads=micro.HEADS,
        encoder_layers=micro.LAYERS,
        decoder_layers=micro.LAYERS,
        dropout=0.0,
    )
    twin = Transformer(config).double()
    twin.target_position.encoding = twin.source_position.encoding = torch.tensor(
        micro.positions(20).rows, dtype=torch.float64
    )
    weights = dict(micro.list_weights(model))
    state = {name: torch.tensor(one.rows, dtype=torch.float64) for name, one in weights.items()}
    named = dict(twin.named_parameters())
    assert named.keys() == weights.keys()
    with torch.no_grad():
        for name, parameter in named.items():
            values = state[name]
            if name == "source_embedding.table":  # and a row of zeros for the padding
                values = torch.cat((values, torch.zeros(1, micro.D_MODEL, dtype=torch.float64)))
            parameter.copy_(values.reshape(parameter.shape))
    return twin


def test_logits_loss_and_gradients_are_those_of_nn(micro: Any) -> None:
    random.seed(3)
    model = micro.new_model(len(micro.VOCABULARY))
    for _, one in micro.list_weights(model):  # gains and biases that are not 1 and 0
        one.rows = [[number + random.gauss(0, 0.1) for number in row] for row in one.rows]
    twin = same_model(micro, model)
    size = len(micro.VOCABULARY)
    source, target = micro.to_ids("28-12"), micro.to_ids("Dec 28")

    logits = micro.decode(model, target[:-1], micro.encode(model, source))
    loss = micro.cross_entropy(logits, target[1:], len(target) - 1)
    micro.backpropagate(loss)
    expected = twin(torch.tensor([source]), torch.tensor([target[:-1]]))[..., :size]
    expected_loss = mean_loss(expected, torch.tensor([target[1:]]), smoothing=micro.SMOOTHING, pad_id=-1)
    expected_loss.backward()  # type: ignore[no-untyped-call]

    torch.testing.assert_close(torch.tensor(logits.rows).double(), expected[0], atol=1e-6, rtol=0, check_dtype=False)
    assert loss.rows[0][0] == pytest.approx(expected_loss.item(), abs=1e-6)
    gradients = {name: parameter.grad for name, parameter in twin.named_parameters()}
    for name, one in micro.list_weights(model):
        gradient = gradients[name]
        assert gradient is not None
        rows = gradient.reshape(-1, gradient.size(-1))[: len(one.rows)]
        torch.testing.assert_close(torch.tensor(one.gradient), rows, atol=1e-6, rtol=0, check_dtype=False)


def test_an_update_is_that_of_adam(micro: Any) -> None:
    one = micro.Numbers([[1.0, -2.0, 3.0]])
    parameter = torch.tensor([[1.0, -2.0, 3.0]], dtype=torch.float64, requires_grad=True)
    adam, expected = micro.Adam([one]), torch.optim.Adam([parameter], betas=(0.9, 0.98), eps=1e-9)
    for step in range(1, 6):
        gradient = [[0.1 * step, -0.2, 0.3]]
        one.gradient = gradient
        parameter.grad = torch.tensor(gradient, dtype=torch.float64)
        expected.param_groups[0]["lr"] = micro.D_MODEL**-0.5 * min(step**-0.5, step * micro.WARMUP**-1.5)
        adam.update(step)
        expected.step()
    assert one.rows[0] == pytest.approx(parameter[0].tolist(), abs=1e-12)


def test_it_learns(micro: Any, capsys: pytest.CaptureFixture[str]) -> None:
    micro.UPDATES = 25
    micro.LAYERS = 1
    micro.main()
    choices = [float(line.split(" characters;")[0].split()[-1]) for line in capsys.readouterr().out.splitlines()[1:-1]]
    assert len(choices) == 1
    assert choices[0] < len(micro.VOCABULARY) * 0.75
