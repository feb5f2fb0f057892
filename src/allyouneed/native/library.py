"""The compiled library, and the arguments of its functions (engine.h)."""

from __future__ import annotations

import os
import warnings
from ctypes import (
    CDLL,
    POINTER,
    Structure,
    byref,
    c_char_p,
    c_double,
    c_float,
    c_int,
    c_int32,
    c_ssize_t,
    c_void_p,
    py_object,
    pythonapi,
)
from functools import cache
from typing import Any

from ..errors import ConfigError, SlowerEngineWarning
from .build import LIBRARY, sources_digest

FIELDS = (
    "vocab_size", "target_vocab_size", "d_model", "d_ff", "heads", "d_k", "d_v", "encoder_layers", "decoder_layers",
    "max_length", "activation", "norm_first", "sinusoidal", "rotary", "query_key_norm", "int8",
    "acausal", "watched",
)  # fmt: skip
POSITION_FIELDS = {  # the fields that each kind of positions sets; learned positions are weights
    "sinusoidal": ("sinusoidal",), "learned": (), "rotary": ("rotary",), "sinusoidal-rotary": ("sinusoidal", "rotary"),
}  # fmt: skip

IDS = POINTER(c_int32)
DOUBLES = POINTER(c_double)


class Buffer(Structure):
    """Py_buffer, the structure in which Python describes the memory of an object."""

    _fields_ = [
        ("address", c_void_p), ("owner", c_void_p), ("size", c_ssize_t), ("rest", c_void_p * 8),
    ]  # fmt: skip


def address_of(view: memoryview[Any]) -> int:
    """Return the address of a view's numbers. The address stays valid as long as the view exists."""
    buffer = Buffer()
    # Raises BufferError unless the numbers are contiguous.
    pythonapi.PyObject_GetBuffer(py_object(view), byref(buffer), 0)
    address = int(buffer.address or 0)
    pythonapi.PyBuffer_Release(byref(buffer))
    return address


class Config(Structure):
    """The sizes of a model, as declared in engine.h."""

    _fields_ = [(name, c_int32) for name in FIELDS]


@cache
def load_library() -> CDLL | None:
    """Load the compiled library, or return None if there is none or `ALLYOUNEED_ISA` is "none".

    If the library was compiled from other files, its functions may take other arguments: this then warns and returns
    None.
    """
    if os.environ.get("ALLYOUNEED_ISA") == "none" or not LIBRARY.exists():
        return None
    library = CDLL(str(LIBRARY))
    if not _is_compiled_from_these_files(library):
        text = (
            "the engine in C was compiled from other files than those here, so nn/ translates, more slowly; "
            "compile it again: python -m allyouneed.native.build"
        )
        warnings.warn(text, SlowerEngineWarning, stacklevel=2)
        return None
    signatures = {
        "instruction_set": (c_char_p, [c_int]),
        "model_new": (c_void_p, [POINTER(Config), POINTER(c_void_p), POINTER(c_void_p), c_int, POINTER(c_int)]),
        "model_free": (None, [c_void_p]),
        "search_new": (c_void_p, [c_void_p, IDS, IDS, c_int, IDS, c_int, c_int, POINTER(c_int)]),
        "search_free": (None, [c_void_p]),
        "search_step": (c_int, [c_void_p, IDS, IDS, c_int]),
        "search_log_probabilities": (POINTER(c_float), [c_void_p, POINTER(c_int)]),
        "search_restrict": (c_int, [c_void_p, c_int, IDS, c_int, c_float, IDS, c_int, c_int]),
        "search_best": (c_int, [c_void_p, DOUBLES, c_int, IDS, c_void_p]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


def _is_compiled_from_these_files(library: CDLL) -> bool:
    try:
        sources = library.sources
    except AttributeError:  # an older version, which did not say so
        return False
    sources.restype = c_char_p
    return bool(sources() == sources_digest().encode())


def instruction_sets() -> list[str]:
    """List the instruction sets of this processor that the library supports, the fastest first."""
    library = load_library()
    names: list[str] = []
    while library is not None and (name := library.instruction_set(len(names))):
        names.append(name.decode())
    return names


def chosen_instruction_set() -> int:
    """Return the index of the instruction set that `ALLYOUNEED_ISA` names, by default the fastest.

    Refuses an unknown name.
    """
    known = instruction_sets()
    asked = os.environ.get("ALLYOUNEED_ISA", known[0])
    if asked not in known:
        raise ConfigError(f"ALLYOUNEED_ISA is {asked}; this processor has {', '.join(known)}")
    return known.index(asked)
