"""A pretended CUDA GPU with real numbers: tensors of the CPU whose memory is marked.

Inside `pretend_gpu()` there is a device "cuda". What is moved there is marked, as are results of marked tensors. An
operation on marked and unmarked tensors is refused as a GPU refuses it, and so is NumPy's view of a marked one. What
makes the program wait for the device is counted by the line of the program that asks for it. Kernels of CUDA alone,
such as FlashAttention's, are not tried, and other threads than that of the block see the CPU alone.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._foreach_utils import _group_tensors_by_device_and_dtype
from torch.utils._pytree import tree_leaves

GPU = torch.device("cuda", 0)
_READS = {
    Tensor.item, Tensor.tolist, Tensor.__bool__, Tensor.__int__, Tensor.__float__, Tensor.__index__, Tensor.nonzero,
    torch.nonzero, torch.equal, torch.allclose, torch.masked_select, torch.unique,
}  # fmt: skip
_DEVICE, _IS_CUDA, _GRAD = (getattr(Tensor, name).__get__ for name in ("device", "is_cuda", "grad"))
_MOVES = {Tensor.to, Tensor.cuda, Tensor.cpu}
_INDEXED = {Tensor.__getitem__, Tensor.__setitem__}
_FROM_NUMBERS = {torch.tensor, torch.as_tensor}
_MAY_MIX = {"copy_", "__set__", "_has_compatible_shallow_copy_type"}


class PretendedGPU(TorchFunctionMode):
    """The waits so far: how often each line of the program has read a number, or copied one that was not pinned."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: Counter[str] = Counter()

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func == _DEVICE:
            return GPU if is_marked(args[0]) else func(*args)
        if func == _IS_CUDA:
            return is_marked(args[0])
        if func == _GRAD:
            return None if (grad := func(*args)) is None else _mark(grad, is_marked(args[0]))
        tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        marked = [is_marked(x) for x in tensors]
        asked = self._asked_device(func, args, kwargs)
        if func in _MOVES and asked is not None:
            return self._move(args, kwargs, to_gpu=asked.type == "cuda")
        if asked is not None and asked.type == "cuda":
            kwargs["device"] = "cpu"
            if func in _FROM_NUMBERS:
                self._count()
        if any(marked) and asked is None:
            self._require_one_device(func, tensors, marked)
            if func == Tensor.numpy:
                raise TypeError("can't convert cuda:0 device type tensor to numpy")
            if func in _READS or func == Tensor.new_tensor or (func in _INDEXED and _copies_indices(args[1])):
                self._count()
        result = func(*args, **kwargs)
        if (any(marked) and asked is None) or (asked is not None and asked.type == "cuda"):
            known = {x.untyped_storage()._cdata for x in tensors}
            for x in tree_leaves(result):
                if isinstance(x, Tensor) and x.untyped_storage()._cdata not in known:
                    _mark(x, True)
        return result

    def _asked_device(self, func: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> torch.device | None:
        asked = kwargs.get("device")
        if func in _MOVES:
            named = [x for x in args[1:] if isinstance(x, str | torch.device)]
            asked = {Tensor.cuda: GPU, Tensor.cpu: "cpu"}.get(func, asked or next(iter(named), None))
        return None if asked is None else torch.device(asked)

    def _move(self, args: Any, kwargs: dict[str, Any], *, to_gpu: bool) -> Tensor:
        x: Tensor = args[0]
        dtype = next((one for one in (*args[1:], *kwargs.values()) if isinstance(one, torch.dtype)), x.dtype)
        if is_marked(x) == to_gpu:
            return _mark(x.to(dtype), to_gpu)
        if not (kwargs.get("non_blocking") and (not to_gpu or getattr(x.untyped_storage(), "pinned", False))):
            self._count()
        return _mark(x.to(dtype, copy=True), to_gpu)

    def _require_one_device(self, func: Callable[..., Any], tensors: list[Tensor], marked: list[bool]) -> None:
        whole = {is_there for x, is_there in zip(tensors, marked, strict=True) if x.dim()}
        indexed = func in (Tensor.__getitem__, Tensor.__setitem__) and marked[0]  # indices may be those of the CPU
        if len(whole) == 2 and not indexed and func.__name__ not in _MAY_MIX:
            raise RuntimeError(f"Expected all tensors to be on the same device; cuda:0 and cpu in {func.__name__}")

    def _count(self) -> None:
        frame = sys._getframe(2)
        while frame.f_back and (frame.f_code.co_filename == __file__ or "/torch/" in frame.f_code.co_filename):
            frame = frame.f_back
        self.waits[f"{frame.f_code.co_filename.rpartition('/allyouneed/')[2]}:{frame.f_lineno}"] += 1


def _copies_indices(index: Any) -> bool:
    """Return True if indices are copied to the GPU, or counted there: lists, tensors of the CPU, and masks."""
    parts = index if isinstance(index, tuple) else (index,)
    return any(
        isinstance(part, list)
        or (isinstance(part, Tensor) and part.dim() > 0 and (part.dtype == torch.bool or not is_marked(part)))
        for part in parts
    )


def is_marked(x: Tensor) -> bool:
    """Return True if a tensor is on the pretended GPU."""
    return getattr(x.untyped_storage(), "on_gpu", False)


def _mark(x: Tensor, on_gpu: bool) -> Tensor:
    if not x.is_meta:
        x.untyped_storage().on_gpu = on_gpu  # type: ignore[attr-defined]
    return x


def _pin(x: Tensor) -> Tensor:
    pinned = x.clone()
    pinned.untyped_storage().pinned = True  # type: ignore[attr-defined]
    return pinned


def _grouped(lists: list[list[Tensor]], *rest: object) -> dict[tuple[torch.device, torch.dtype], Any]:
    """As PyTorch's own, in C++, which sees the CPU."""
    groups = _group_tensors_by_device_and_dtype(lists, *rest)  # type: ignore[arg-type]
    devices = [GPU if is_marked(group[0][0][0]) else device for (device, _), group in groups.items()]  # type: ignore[arg-type]
    return {(device, dtype): group for device, ((_, dtype), group) in zip(devices, groups.items(), strict=True)}


@contextmanager
def pretend_gpu() -> Iterator[PretendedGPU]:
    """Pretend a GPU inside the block, which `torch.cuda.is_available()` reports."""
    autocast, gpu = torch.autocast, PretendedGPU()
    no_numbers = torch.zeros(16, dtype=torch.uint8)
    there: dict[str, Any] = {
        "torch.cuda.is_available": lambda: True, "torch.cuda.get_device_name": lambda *_: "pretended",
        "torch.cuda.get_rng_state": lambda *_: no_numbers, "torch.cuda.set_rng_state": lambda *_: None,
        "torch.cuda.is_bf16_supported": lambda **_: True, "torch.cuda.is_current_stream_capturing": lambda: False,
        "torch.cuda.empty_cache": lambda: None, "torch.cuda.synchronize": lambda *_: None,
        "torch.cuda.Event": mock.Mock,
        "torch.cuda.manual_seed": lambda _: None, "torch.cuda.manual_seed_all": lambda _: None,
        "torch.Tensor.pin_memory": _pin,
        "torch.nn.utils.clip_grad._group_tensors_by_device_and_dtype": _grouped,
        "torch.autocast": lambda device, *args: autocast("cpu" if device == "cuda" else device, *args),
    }  # fmt: skip
    with ExitStack() as stack:
        for name, new in there.items():
            stack.enter_context(mock.patch(name, new))
        stack.enter_context(gpu)
        yield gpu
