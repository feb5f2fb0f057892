"""The benchmark of training on a GPU: its table, and what it says without a GPU."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    for name in ("gpu", "gpu_decode", "train_worker"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return __import__("gpu")


def test_the_table_has_speed_share_and_hours(gpu: ModuleType) -> None:
    row = gpu.Row("base", "ours", tokens=1_000_000, flops=4e15, updates=100, seconds=10.0)
    line = gpu.table_line(row, peak=gpu.peak_flops("NVIDIA H100 80GB HBM3", 0.0))
    # 4e14 a second of 9.89e14; 0.1 s an update, 100,000 times
    assert line == "| base | ours | 100,000 | 400.0 | 40% | 2.8 |"
    assert gpu.peak_flops("NVIDIA H100 PCIe", 0.0) == 756e12
    assert "unknown" in gpu.table_line(row, peak=gpu.peak_flops("a card of tomorrow", 0.0))


def test_the_command_can_be_tried_on_a_cpu(
    gpu: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu, "find_spec", lambda name: None)  # without peers
    monkeypatch.setattr(gpu, "WARM_UP", 1)
    assert gpu.main(["--cpu", "--sizes", "tiny", "--updates", "2", "--batch-tokens", "200", "--no-compile"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" | ")[1] for line in lines[-2:]] == ["ours", "ours, float32"]
    assert "- two equal runs have equal losses after 20 updates" in lines
    decoded = [line.split(" | ")[1:4] for line in lines if line.startswith("| tiny | float32")]
    assert decoded == [
        [name, count, beam] for name in ("float32", "float32, static") for count in "13" for beam in "14"
    ]
    assert not [line for line in lines if "as in float32" in line]
    assert gpu.paper_model("big").d_model == 1024


def test_peers_are_measured_where_they_can_be_imported(gpu: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "find_spec", lambda name: name)
    assert gpu.systems(compiles=True) == [*gpu.OURS, "usual loop", "Trainer"]
    monkeypatch.setattr(gpu, "find_spec", lambda name: name if name == "transformers" else None)
    assert gpu.systems(compiles=False) == ["ours", "ours, float32", "usual loop"]


def test_bleu_is_listed_by_minutes(gpu: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def train(command: list[str], **options: object) -> None:
        assert command[1:7] == ["-m", "allyouneed", "train", "multi30k-en-de", "--minutes", "3"]
        run = Path(command[-1])
        run.mkdir()
        (run / "metrics.jsonl").write_text(
            '{"step": 50, "seconds": 30.0, "loss": 5.0}\n{"step": 1000, "seconds": 90.0, "bleu": 31.25}\n'
        )

    monkeypatch.setattr(gpu.subprocess, "run", train)
    lines = gpu.train_for_minutes("multi30k-en-de", Path("captions"), 3).splitlines()
    assert lines[1] == "`allyouneed train multi30k-en-de --minutes 3 data.data_dir=captions`"
    assert lines[-1] == "| 1.5 | 1,000 | 31.2 |"


def test_without_a_gpu_one_line_says_so(
    gpu: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu.torch.cuda, "is_available", lambda: False)
    assert gpu.main([]) == 2
    assert capsys.readouterr().err == "make bench-gpu needs a CUDA GPU, and PyTorch finds none here\n"
