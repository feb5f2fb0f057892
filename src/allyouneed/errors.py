"""Every error that this package raises on purpose, as one family.

    AllYouNeedError
    ├── ConfigError         an invalid setting: unknown key, wrong type, impossible size
    ├── InputError          ids, text or arguments that a model cannot process
    │   └── LanguageError   a language, or a pair of languages, that no loaded model translates
    ├── DataError           a corpus that cannot be read; the message names file and line
    ├── DocumentError       a document that cannot be read, or is not a document of its format
    ├── BundleError         a folder without a complete model
    ├── OutputError         a result that cannot be written: the path exists, the disk is full
    ├── ExportError         a model that another program's format cannot express
    ├── CheckpointError     a checkpoint of another program that cannot be imported
    ├── MissingExtraError   an optional library that is not installed
    ├── Overloaded          a server with too many texts waiting already
    ├── DeadlineExceeded    a request that a server could not answer in time
    ├── TrainingError       a run that cannot continue: loss not finite at any learning rate, out of memory
    └── Interrupted         a run that was stopped by a signal and has saved a checkpoint

Every message says what was read, what was seen, what was expected and what to do.
"""

from __future__ import annotations

import shlex
import sys
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType


class AllYouNeedError(Exception):
    """The base class of all errors that this package raises on purpose.

    Every error can be pickled with all its attributes, whatever arguments its class takes. `options` are command-line
    options with which the same command would succeed. The message does not contain them; the command line prints the
    command with these options after it.
    """

    options: tuple[str, ...] = ()

    def mended_by(self, *options: str) -> Self:
        """Add the options with which the command that raised this error would succeed."""
        self.options = options
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (type(self), self.args, self.__dict__)


class ConfigError(AllYouNeedError, ValueError):
    """An invalid setting."""


class InputError(AllYouNeedError, ValueError):
    """Ids or text that a model or its vocabulary cannot process.

    `line` is the number of the text among several, counted from 1.
    """

    def __init__(self, message: str, *, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class LanguageError(InputError):
    """A language, or a pair of languages, that no loaded model translates."""


class DataError(AllYouNeedError):
    """A corpus that cannot be read; the message names file and line."""


class DocumentError(AllYouNeedError, ValueError):
    """A document that cannot be read, such as a .docx file that is not a zip archive."""


class BundleError(AllYouNeedError):
    """A folder without a complete model."""


class OutputError(AllYouNeedError):
    """A result that cannot be written. A file that was there before is unchanged."""


class ExportError(AllYouNeedError):
    """A model that another program's format cannot express."""


class CheckpointError(AllYouNeedError):
    """A checkpoint of another program that cannot be read, or that a bundle cannot express."""


class MissingExtraError(AllYouNeedError, ImportError):
    """An optional library that is not installed.

    `what` is the feature that needs the library, and `extra` the extra that installs it.
    """

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the extra {extra}, which is not installed: {install_command(extra)}")


def install_command(extra: str) -> str:
    """Return the command that installs an extra for this Python. It keeps the installed package, even a checkout."""
    return pip_install(f"'allyouneed[{extra}]'")


def pip_install(package: str) -> str:
    """Return the shell command that installs a package for this Python. The name of the package is quoted."""
    return f"{shlex.quote(sys.executable or 'python')} -m pip install {package}"


class Overloaded(AllYouNeedError):  # noqa: N818  a state of the server rather than a mistake
    """Too many texts are waiting already. `retry_after` is the number of seconds to wait before another attempt."""

    def __init__(self, message: str, *, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class DeadlineExceeded(AllYouNeedError):  # noqa: N818  the name that other servers use
    """A request that could not be answered in time."""


class TrainingError(AllYouNeedError):
    """A run that cannot continue. Its last checkpoint is unchanged."""


class Interrupted(AllYouNeedError):  # noqa: N818  not a failure, so not called an error
    """A run that was stopped by a signal and has saved a checkpoint. `signal` is the number of the signal."""

    def __init__(self, message: str, *, signal: int) -> None:
        super().__init__(message)
        self.signal = signal


@contextmanager
def refused(kind: type[AllYouNeedError], what: str, *errors: type[Exception], remedy: str = "") -> Iterator[None]:
    """Inside the `with` block, turn these errors into a `kind`: `what`, the reason in one line, and the remedy.

    Errors of this package pass unchanged, unless `errors` names their class.
    """
    try:
        yield
    except errors as error:
        if isinstance(error, AllYouNeedError) and not any(issubclass(one, AllYouNeedError) for one in errors):
            raise
        lacks = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        reason = getattr(error, "strerror", None) or lacks.strip().partition("\n")[0] or repr(error)
        raise kind(f"{what}: {reason}{remedy and f'; {remedy}'}") from error


def require_extra(library: str, what: str, extra: str) -> ModuleType:
    """Import an optional library. `what` says what needs the library, and `extra` names the extra that installs it."""
    try:
        return import_module(library)
    except ImportError as error:
        raise MissingExtraError(what, extra) from error


class SlowerEngineWarning(UserWarning):
    """Warns that a model's own, slower code computes, because the faster computation differs from it or is missing."""


OUT_OF_MEMORY = (  # messages of the CPU, Apple's GPUs, CUDA and its pinned memory, and cuBLAS
    "DefaultCPUAllocator", "MPS backend out of memory", "CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED",
)  # fmt: skip


def is_out_of_memory(error: Exception) -> bool:
    """Return True if an error means that memory has run out, on a GPU or on the CPU. Does not import torch."""
    is_named_so = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    return is_named_so or any(words in str(error) for words in OUT_OF_MEMORY)


def _restored(kind: type[AllYouNeedError], args: tuple[object, ...], attributes: dict[str, object]) -> AllYouNeedError:
    error = kind.__new__(kind)
    super(AllYouNeedError, error).__init__(*args)  # skips the class's own __init__, which may take other arguments
    error.__dict__.update(attributes)
    return error
