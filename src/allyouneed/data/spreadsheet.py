"""Read a spreadsheet as rows of texts, in a separate process.

A spreadsheet may come from a stranger: a few kilobytes can demand all memory, or crash the library that reads them. The
process has limits on time and memory. If it is stopped or crashes, the caller gets an error of one line.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from ..errors import DataError, pip_install
from ..machine.files import parse_json
from ..machine.interpreter import is_installed, python_command
from .headings import NumberedCells

_REMEDY = "save it again as .xlsx, or as .csv"


def spreadsheet_rows(path: Path, sheet: str = "") -> Iterator[NumberedCells]:
    """Yield the rows of a sheet with all their cells, without rows that have no text.

    Lines in messages are row numbers.

    Refuses a file that is not a spreadsheet, is protected by a password, or takes more memory or time than its size
    allows, and a sheet that does not exist.
    """
    if not is_installed("python_calamine"):  # the process would only end without a row
        raise DataError(f"{path} needs python-calamine, which is not installed: {pip_install('python-calamine')}")
    process = subprocess.Popen(
        python_command(f"{__package__}.spreadsheet_process", str(path), sheet),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    stdout = cast(IO[bytes], process.stdout)
    try:
        for line in stdout:
            number, cells, near = parse_json(line)
            if not number:
                raise DataError(f"{path} {cells}").mended_by(*(["--sheet", near] if near else []))
            yield NumberedCells(number, cells)
        if process.wait():
            raise DataError(
                f"{path} is damaged, or takes more memory or time than a spreadsheet of its size may; {_REMEDY}"
            )
    finally:
        process.kill()
        process.wait()
        stdout.close()
