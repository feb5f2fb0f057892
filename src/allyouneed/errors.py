"""Everything this package refuses, as one family.

    AllYouNeedError
    ├── ConfigError       a setting that cannot be: unknown key, wrong type, impossible size
    ├── InputError        ids, text or a call that a model cannot take
    ├── DataError         a corpus that cannot be read, told by file and line
    ├── BundleError       a folder that holds no whole model
    ├── OutputError       a result that cannot be written: the path is taken, the disk is full
    ├── ExportError       a model that another program's format cannot express
    ├── MissingExtraError a library that is installed only as an extra
    ├── TrainingError     a run that cannot go on: no finite loss at any learning rate, too little memory for one pair
    └── Interrupted       a run that was asked to stop, and saved itself

Every message says what was looked at, what was seen, what was expected and what to do.
"""

import re
import shlex
import sys


class AllYouNeedError(Exception):
    """The family's name: catch this one to catch them all.

    Every error survives pickling with all its attributes, whatever its class takes to be made.
    """

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (type(self), self.args, self.__dict__)


class ConfigError(AllYouNeedError, ValueError):
    """A setting that cannot be."""


class InputError(AllYouNeedError, ValueError):
    """Ids or text that a model or its vocabulary cannot take.

    `line` says which of several texts it was, counted from 1.
    """

    def __init__(self, message: str, *, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class DataError(AllYouNeedError):
    """A corpus that cannot be read; the message names file and line."""


class BundleError(AllYouNeedError):
    """A folder that holds no whole model."""


class OutputError(AllYouNeedError):
    """A result that cannot be written; what stood there before is untouched."""


class ExportError(AllYouNeedError):
    """A model that another program's format cannot express."""


class MissingExtraError(AllYouNeedError, ImportError):
    """A library that is installed only on wish: `what` needs it, `extra` brings it."""

    def __init__(self, what: str, extra: str) -> None:
        install = shlex.join([sys.executable or "python", "-m", "pip", "install", *_requirements(extra)])
        super().__init__(f"{what} needs the extra [{extra}], which is not installed: {install}")


def _requirements(extra: str) -> list[str]:
    """What pip is asked for, for an extra of this package, wherever the package itself came from."""
    from importlib import metadata  # slow to import, and seldom needed

    # Not allyouneed[extra]: what is installed may be a checkout, of which no index knows.
    try:
        lines = metadata.requires("allyouneed") or []
    except metadata.PackageNotFoundError:
        lines = []
    condition = re.compile(rf"(; | and )extra == ['\"]{extra}['\"]$")
    wanted = [condition.sub("", line).replace("'", '"') for line in lines if condition.search(line)]
    return wanted or [f"allyouneed[{extra}]"]


class TrainingError(AllYouNeedError):
    """A run that cannot go on; its last checkpoint is untouched."""


class Interrupted(AllYouNeedError):  # noqa: N818  nothing went wrong
    """A run that was asked to stop by a signal and has saved itself; `signal` is its number."""

    def __init__(self, message: str, *, signal: int) -> None:
        super().__init__(message)
        self.signal = signal


def _restored(kind: type[AllYouNeedError], args: tuple[object, ...], attributes: dict[str, object]) -> AllYouNeedError:
    error = kind.__new__(kind)
    super(AllYouNeedError, error).__init__(*args)  # past the class's own, which may ask for something else
    error.__dict__.update(attributes)
    return error
