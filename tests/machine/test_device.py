import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest import mock

import pytest
import torch

from allyouneed.config import ModelConfig
from allyouneed.errors import ConfigError
from allyouneed.machine.device import (
    available_cores,
    has_fast_bfloat16,
    move,
    parallel_map,
    pick_device,
    require_memory,
    set_threads,
)
from allyouneed.nn import Transformer
from allyouneed.younger import build_model


def test_a_device_that_is_not_there_is_refused() -> None:
    assert pick_device("cpu") == torch.device("cpu")
    with pytest.raises(ConfigError, match='"auto", "cpu", "cuda" or "mps"'):
        pick_device("toaster")


@pytest.mark.parametrize(
    ("start", "end", "waits"),
    [("cpu", "cuda", False), ("cuda", "cpu", False), ("cpu", "mps", True), ("mps", "cpu", True), ("cpu", "cpu", True)],
)
def test_only_a_copy_of_a_cuda_gpu_is_not_waited_for(start: str, end: str, waits: bool) -> None:
    tensor = mock.Mock(device=torch.device(start))
    move(tensor, torch.device(end))
    tensor.to.assert_called_once_with(torch.device(end), non_blocking=not waits)


@pytest.mark.parametrize("capability", ["AVX2", "AVX512"])
@pytest.mark.parametrize(("amx", "avx512"), [(False, False), (False, True), (True, False)])
def test_bfloat16_is_fast_where_a_cpu_has_either_kind_of_instructions_and_may_use_it(
    monkeypatch: pytest.MonkeyPatch, amx: bool, avx512: bool, capability: str
) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_tile": amx, "avx512_bf16": avx512})
    assert has_fast_bfloat16(torch.device("cpu")) is ((amx or avx512) and capability == "AVX512")


@pytest.mark.parametrize(("threads", "count"), [(1, 1), (2, 2), (4, 2)])
def test_what_is_done_at_once_keeps_its_order_and_each_has_a_thread(threads: int, count: int) -> None:
    torch.set_num_threads(threads)
    with parallel_map(count) as map_parallel:
        assert list(map_parallel(lambda n: (n, torch.get_num_threads()), range(9))) == [(n, 1) for n in range(9)]
    with ThreadPoolExecutor(1) as new_thread:
        assert torch.get_num_threads() == new_thread.submit(torch.get_num_threads).result() == threads
    torch.set_num_threads(1)


def test_an_error_among_what_is_done_at_once_is_told() -> None:
    with pytest.raises(ZeroDivisionError), parallel_map(2) as map_parallel:
        list(map_parallel(lambda n: 1 // n, [1, 0, 1]))


def test_products_of_many_shapes_do_not_fill_the_memory() -> None:
    """Four hundred shapes in bfloat16: 140 MB; 284 if all were remembered (AVX-512, AMX).

    Processors without fast bfloat16 train in float32, in which this takes a sixth of the time.
    """
    code = """
import torch
from allyouneed.machine.device import has_fast_bfloat16, limit_onednn_cache

def held():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmRSS")) // 1024

limit_onednn_cache()
torch.set_num_threads(1)
dtype = torch.bfloat16 if has_fast_bfloat16(torch.device("cpu")) else torch.float32
weight, before = torch.randn(512, 512).to(dtype), 0
for rows in range(1, 420):
    torch.randn(rows, 512).to(dtype) @ weight
    before = held() if rows == 20 else before
print(held() - before)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert int(result.stdout) < 200


def test_more_threads_than_a_machine_can_use_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"train.threads=1000000 .*\d+ cores"):
        set_threads(1_000_000)


def test_a_model_larger_than_memory_is_refused_before_it_is_made() -> None:
    require_memory("a byte", 1)
    with pytest.raises(ConfigError, match=r"1[0-9]{2},[0-9]{3} GB"):
        build_model(ModelConfig(d_model=2**16, d_ff=2**18, encoder_layers=300, decoder_layers=300))


@pytest.mark.parametrize("sizes", [{}, {"target_vocab_size": 900, "tied_embeddings": "none", "d_k": 3, "d_v": 5}])
def test_the_bytes_of_the_weights_are_about_what_the_parameters_take(sizes: dict[str, Any]) -> None:
    config = ModelConfig(vocab_size=1_000, d_model=64, d_ff=96, heads=2, max_length=20, **sizes)
    taken = 4 * Transformer(config).parameter_count()
    assert 0.8 * taken < config.weight_bytes < 1.3 * taken


def test_a_process_that_may_use_one_core_counts_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for the threads of the server; where the system does not say, those of the machine count."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {5}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert available_cores() == 1
    with pytest.raises(ConfigError, match=" 1 cores"):
        set_threads(1_000_000)
    monkeypatch.delattr(os, "sched_getaffinity")
    assert available_cores() == 64


def test_the_heap_of_a_process_that_trains_asks_for_huge_pages() -> None:
    program = """
import os
import torch
from allyouneed.machine.device import configure_process
configure_process(1)
numbers = torch.ones(2**21)
address = numbers.data_ptr() + 4 * 2**21 - 1
part, flags = range(0), []
for line in open("/proc/self/smaps"):
    name, *rest = line.split()
    if not name.endswith(":"):
        first, end = (int(number, 16) for number in name.split("-"))
        part = range(first, end)
    elif name == "VmFlags:" and address in part:
        flags = rest
print("hg" in flags or not os.path.exists("/sys/kernel/mm/transparent_hugepage"))
"""
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert printed == "True\n"
