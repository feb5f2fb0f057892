"""What a translation imports, and what it says of an engine that computes otherwise."""

import subprocess
import sys
from pathlib import Path

import pytest

from allyouneed.errors import SlowerEngineWarning
from allyouneed.nn.feedforward import FeedForward
from untrained import spaced

PROGRAM = """
import math, sys
from types import SimpleNamespace
import allyouneed.decode
import allyouneed.translator.translator as room
from tables import Table
assert "torch" not in sys.modules

def make_engine(bundles, precision, **_):
    config = bundles[0].config
    table = Table(config.effective_target_vocab_size, 1)
    start = lambda sources, **_: table.start(*range(len(sources)))
    return SimpleNamespace(config=config, precision="float32", workers=2, start=start)

room.make_engine = make_engine
translator = room.Translator.load(sys.argv[1], device="cpu", copy_untranslatable=False)
assert all(translator.translate(["ab", "cde"] * 20)), "a translation"
for setting in ({"beam": 1}, {"sample": True}, {"beam": 3, "nbest": 2}, {"glossary": {"ab": "cd"}}):
    assert translator.using(**setting)("abc")
assert list(translator.score([("ab", "cd")])) and translator.alternatives("ab", count=2)
assert "torch" not in sys.modules, "PyTorch was imported"
"""


def test_translating_by_an_engine_without_torch_imports_no_torch(saved: Path) -> None:
    tests = Path(__file__).parents[1]
    subprocess.run([sys.executable, "-c", PROGRAM, str(saved)], check=True, cwd=tests)


def test_after_an_edit_the_same_is_said_of_every_model_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python shows a warning once for each text, and a run makes an engine at every validation."""
    forward = FeedForward.forward
    monkeypatch.setattr(FeedForward, "forward", lambda self, x: 2 * forward(self, x))
    with pytest.warns(SlowerEngineWarning) as said:
        translators = [spaced() for _ in range(2)]
    assert len(said) == len(translators)
    assert len({str(one.message) for one in said}) == 1
