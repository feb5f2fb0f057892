import subprocess
import sys
from pathlib import Path

import torch

from allyouneed.config import ModelConfig
from allyouneed.fast.uninitialized import UninitializedWeights
from allyouneed.nn import Transformer


def test_no_random_number_is_drawn(config: ModelConfig) -> None:
    before = torch.get_rng_state()
    with UninitializedWeights():
        model = Transformer(config)
    assert torch.equal(torch.get_rng_state(), before)
    drawn = Transformer(config)
    assert not torch.equal(torch.get_rng_state(), before)
    assert [(name, part.shape) for name, part in model.named_parameters()] == [
        (name, part.shape) for name, part in drawn.named_parameters()
    ]


def test_loading_a_bundle_does_not_load_the_compiler_of_pytorch(saved: Path) -> None:
    code = "import sys; from allyouneed import Translator; Translator.load(sys.argv[1], device='cpu').model; "
    subprocess.run([sys.executable, "-c", code + "assert 'torch._dynamo' not in sys.modules", saved], check=True)
