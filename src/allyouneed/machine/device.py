"""The device, threads, precision and memory of the process. PyTorch is imported only where it is needed."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from ..errors import ConfigError, refused

if TYPE_CHECKING:
    import torch
    from torch import Tensor

# A recipe from a large machine should run on a small one, where extra threads only wait for each other.
MOST_THREADS, THREADS_PER_CORE = 256, 4
HUGE_PAGE = 2**21  # bytes
HUGE_PAGES = 3 * 2**29  # bytes; with 2 GiB of free memory, glibc would give some back

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def pick_device(name: str = "auto") -> torch.device:
    """Return the device called `name`. "auto" is a CUDA or Apple GPU if there is one, otherwise the CPU."""
    import torch

    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    what = f'device must be "auto", "cpu", "cuda" or "mps", and be present; got {name!r}'
    with refused(ConfigError, what, RuntimeError, AssertionError):
        device = torch.device(name)
        torch.empty(0, device=device)
    return device


def may_have_gpu() -> bool:
    """Return True if this machine seems to have a GPU that PyTorch might find, without asking PyTorch."""
    drivers = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")  # NVIDIA, AMD, and either in WSL
    return sys.platform == "darwin" or any(map(os.path.exists, drivers))


def describe_device(device: torch.device) -> dict[str, str]:
    """Describe the device and its hardware: the name of the GPU, or the number of threads."""
    import torch

    if device.type == "cuda":
        return {"device": f"{device.type}, {torch.cuda.get_device_name(device)}"}
    return {"device": device.type, "threads": str(torch.get_num_threads())}


def require_memory(what: str, size: int) -> None:
    """Refuse work that needs more memory than this machine has, if known, before the system kills the process."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else size
    if size > memory:
        raise ConfigError(
            f"{what} would take {size / 1e9:,.0f} GB, and this machine has {memory / 1e9:,.0f} GB of memory; "
            "make d_model, d_ff, the layers, max_length or the vocabulary smaller"
        )


def has_fast_bfloat16(device: torch.device) -> bool:
    """Return True if products are much faster in bfloat16 than in float32: CPUs with AMX or AVX512_BF16, newer GPUs."""
    import torch

    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    known = torch.cpu.get_capabilities()
    has_instructions = bool(known.get("amx_tile") or known.get("avx512_bf16"))
    # ATEN_CPU_CAPABILITY may forbid these instructions.
    uses_them = torch.backends.cpu.get_cpu_capability().startswith("AVX512")
    return device.type == "cpu" and has_instructions and uses_them


def available_cores() -> int:
    """Count the cores that this process may use, which taskset or a container may limit."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def runs_ahead(device: torch.device) -> bool:
    """Return True for a CUDA GPU, which computes while the program continues, until the program reads a result."""
    return device.type == "cuda"


def staged(tensor: Tensor, device: torch.device) -> Tensor:
    """Return a CPU tensor. If `device` is a CUDA GPU, it is in memory that the GPU can copy from by itself."""
    return tensor.pin_memory() if runs_ahead(device) else tensor


def move(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy a tensor to another device. The program waits for the copy, unless a CUDA GPU makes the copy.

    On an Apple GPU, data that is read or freed before such a copy has finished would be lost.
    """
    return tensor.to(device, non_blocking=runs_ahead(device) or runs_ahead(tensor.device))


def set_threads(count: int) -> None:
    """Compute with `count` threads. 0 means PyTorch's choice, one thread per core.

    The largest accepted count is `THREADS_PER_CORE` for each core, or `MOST_THREADS` if that is more. The system would
    end a process that starts too many threads.
    """
    cores = available_cores()
    most = max(MOST_THREADS, THREADS_PER_CORE * cores)
    if count > most:
        raise ConfigError(
            f"train.threads={count} is too many for the {cores} cores here; expected at most {most}, or 0: one "
            "for each worker"
        )
    if count:
        import torch

        torch.set_num_threads(count)


@contextmanager
def using_threads(count: int) -> Iterator[None]:
    """Compute with `count` threads inside the `with` block (0: PyTorch's choice), then with the previous number.

    One thread is enough for products of a few rows, which are done before other threads have started. Waiting OpenMP
    threads would only keep cores busy.
    """
    import torch

    before = torch.get_num_threads()
    changes = count not in (0, before)
    if changes:
        set_threads(count)
    try:
        yield
    finally:
        if changes:
            torch.set_num_threads(before)


def configure_process(threads: int = 0) -> None:
    """Set up the process of a command that trains, before its first computation.

    Sets the number of threads for the whole process, keeps freed memory, asks for huge pages, limits oneDNN's cache,
    and makes the CPU round denormal numbers, which are slow, to zero.
    """
    import torch

    set_threads(threads)
    retain_freed_memory()
    use_huge_pages()
    limit_onednn_cache()
    torch.set_flush_denormal(True)


@contextmanager
def parallel_map(count: int) -> Iterator[Callable[[Callable[[_Item], _Result], Iterable[_Item]], Iterator[_Result]]]:
    """Make a `map` that works on `count` items in parallel and keeps their order. Each item gets one PyTorch thread.

    If two threads shared every small product, they would spend more time waiting for each other than working.
    """
    if count == 1:
        yield map
        return
    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch else 0
    pool = ThreadPoolExecutor(count, initializer=use_one_thread)
    try:
        yield pool.map
    finally:
        pool.shutdown(cancel_futures=True)
        if torch:
            torch.set_num_threads(before)  # the default for new threads; this thread keeps its number


def use_one_thread() -> None:
    """Let PyTorch compute with one thread in the calling thread, if the process has imported PyTorch."""
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)


def retain_freed_memory() -> None:
    """Let the C library keep the memory of freed tensors (only with glibc).

    Otherwise every update returns the memory of each large tensor to the system and allocates it again page by page,
    which takes a fifth of the time of an update of `multi30k-en-de` on two cores.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, 32 * 1024 * 1024)  # the largest allowed value, in bytes
        mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)


def use_huge_pages() -> None:
    """Ask for pages of 2 MiB for the next `HUGE_PAGES` bytes of the heap (only with glibc).

    An update goes through hundreds of megabytes. In pages of 4 KiB it takes 8 % longer at d_model 256, because the
    processor looks up the address of every page. Unused memory is not taken from the system.
    """
    if not sys.platform.startswith("linux"):
        return
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallopt"):
        return
    library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    library.free.restype, library.free.argtypes = None, [ctypes.c_void_p]
    library.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    library.mallopt(_M_MMAP_MAX, 0)  # allocate from the heap, whatever the size
    start = library.malloc(HUGE_PAGES)
    library.mallopt(_M_MMAP_MAX, 2**16)  # the default of glibc
    if start:
        before = -start % HUGE_PAGE
        library.madvise(start + before, HUGE_PAGES - before, mmap.MADV_HUGEPAGE)
        library.free(start)


def limit_onednn_cache() -> None:
    """Let oneDNN cache the primitives for 128 shapes instead of 1,024, unless the environment sets a number.

    The primitives for one shape of a product take about a megabyte. With the shapes of all batches, a run of
    `multi30k-en-de-tok` in bfloat16 grew to 3.4 GB. Creating a primitive takes about 4 ms, so training uses products of
    few shapes (`fast/loss.py`). This only works before the first product.
    """
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(name, "128")


_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_MMAP_MAX = -1, -3, -4  # malloc.h
