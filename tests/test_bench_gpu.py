"""The benchmark of training on a GPU: its table, and what it says without a GPU."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from allyouneed import ModelConfig

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    for name in ("gpu", "train_worker"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return __import__("gpu")


def test_the_table_has_speed_share_and_hours(gpu: ModuleType) -> None:
    row = gpu.Row("base", "ours", tokens=1_000_000, flops=4e15, updates=100, seconds=10.0)
    line = gpu.table([row], peak=gpu.peak_flops("NVIDIA H100 80GB HBM3", 0.0)).splitlines()[-1]
    # 4e14 a second of 9.89e14; 0.1 s an update, 100,000 times
    assert line == "| base | ours | 100,000 | 400.0 | 40% | 2.8 |"
    assert gpu.peak_flops("NVIDIA H100 PCIe", 0.0) == 756e12
    assert "unknown" in gpu.table([row], peak=gpu.peak_flops("a card of tomorrow", 0.0))


def test_a_tiny_model_is_measured_on_a_cpu(gpu: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("allyouneed.device.configure_process", lambda threads: None)  # it is for a whole process
    config = ModelConfig(vocab_size=50, d_model=8, d_ff=8, heads=2, encoder_layers=1, decoder_layers=1)
    row = gpu.measure("tiny", "ours", config, batch_tokens=200, updates=2)
    assert row.updates == 2
    assert min(row.tokens, row.flops, row.seconds) > 0
    assert gpu.paper_model("big").d_model == 1024


def test_without_a_gpu_one_line_says_so(
    gpu: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu.torch.cuda, "is_available", lambda: False)
    assert gpu.main([]) == 2
    assert capsys.readouterr().err == "make bench-gpu needs a CUDA GPU, and PyTorch finds none here\n"
