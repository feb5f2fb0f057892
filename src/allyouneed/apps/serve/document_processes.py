"""Read and write documents of strangers in separate processes, with limits on time, memory and number of texts.

A slow document then delays no other document. If it takes too long or too much memory, only its process ends.
"""

import asyncio
import pickle
import resource
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Self, TypeVar

from ...errors import AllYouNeedError, DocumentError
from ...machine.interpreter import python_command
from ..documents import Document, DocumentOptions, UnitTranslation, read_document

_AT_ONCE = 8  # documents
_BASE_MEMORY = 96 << 20  # bytes for Python and its libraries
_LOGGED_FRAMES = 8  # of an error, the innermost ones
_MEMORY_FOR_A_BYTE = 64  # for each byte of the largest document
_BYTES_FOR_A_TEXT = 64  # limits texts to the number that the largest document has if each takes this many bytes
_TOO_LARGE = "takes more memory to read than this server has for a document; send it in parts"
_Result = TypeVar("_Result")


class DocumentProcess:
    """A process that reads documents and writes them with translations, one after the other."""

    def __init__(self, max_file: int) -> None:
        self._process = subprocess.Popen(
            python_command(__name__, str(max_file)), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def read(self, content: bytes, kind: str, options: DocumentOptions) -> Document:
        """Read the units of a document in a separate process.

        If another process writes the translated document, that process reads the document again.
        """

        def write(_: Sequence[UnitTranslation | None]) -> bytes:
            raise AssertionError("a process writes it")

        return Document(self._ask(content, kind, options, None), write)

    def write(
        self, content: bytes, kind: str, options: DocumentOptions, translations: Sequence[UnitTranslation | None]
    ) -> bytes:
        """Write the document with translations of its units."""
        return bytes(self._ask(content, kind, options, translations))

    def kill(self) -> None:
        """End the process, whatever it is doing. Callers that wait for it get a `DocumentError`."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Free the resources of a process that has ended or is about to end."""
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(BrokenPipeError):
                _present(pipe).close()

    def _ask(self, *request: object) -> Any:
        try:
            pickle.dump(request, _present(self._process.stdin))
            _present(self._process.stdin).flush()
            answer = pickle.load(_present(self._process.stdout))
        except (OSError, EOFError, pickle.UnpicklingError) as error:  # the process was ended
            raise DocumentError(f"the document {_TOO_LARGE}") from error
        if isinstance(answer, Exception):
            raise answer
        return answer


class DocumentProcesses:
    """The processes of a server, at most eight at once. Idle processes wait for the next document."""

    def __init__(self, *, max_file: int) -> None:
        self._max_file = max_file
        self._idle: list[DocumentProcess] = []
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._threads = ThreadPoolExecutor(_AT_ONCE, "documents")

    async def run(self, work: Callable[[DocumentProcess], _Result]) -> _Result:
        """Call `work` with a process, in a thread, and return its result. Cancelling the task ends the process."""
        loop = asyncio.get_running_loop()
        async with self._slots:
            process = self._idle.pop() if self._idle else DocumentProcess(self._max_file)
            working = loop.run_in_executor(self._threads, work, process)
            try:
                result = await asyncio.shield(working)
            except BaseException:  # also if the time is over or the client has left
                process.kill()
                working.add_done_callback(lambda done: _discard(process, done))
                raise
            self._idle.append(process)
            return result

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for process in self._idle:
            process.close()
        self._idle.clear()
        self._threads.shutdown(wait=False)


def _discard(process: DocumentProcess, done: "asyncio.Future[Any]") -> None:
    process.close()
    if not done.cancelled():
        done.exception()  # counts as retrieved


def _present(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


def main() -> None:
    """Answer requests on standard input until it ends: read a document, or write one with translations."""
    for number in (signal.SIGINT, signal.SIGTERM):  # the server decides when this process ends
        signal.signal(number, signal.SIG_IGN)
    max_file = int(sys.argv[1])
    most = _BASE_MEMORY + _MEMORY_FOR_A_BYTE * max_file
    with suppress(ValueError, OSError):  # some systems have no such limit
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    while True:
        try:
            request = pickle.load(requests)
        except EOFError:
            return
        pickle.dump(_answer(*request, max_texts=max(1000, max_file // _BYTES_FOR_A_TEXT)), answers)
        answers.flush()


def _answer(
    content: bytes,
    kind: str,
    options: DocumentOptions,
    translations: Sequence[UnitTranslation | None] | None,
    *,
    max_texts: int,
) -> object:
    try:
        document = read_document(content, kind, options)
        if len(document.units) > max_texts:
            return DocumentError(f"the document has {len(document.units):,} texts; at most {max_texts:,} are read")
        return document.units if translations is None else document.write(translations)
    except AllYouNeedError as error:
        return error
    except MemoryError:
        return DocumentError(f"the document {_TOO_LARGE}")
    except Exception as error:  # an error in the program, whose message may quote the document
        frames = traceback.extract_tb(error.__traceback__)[-_LOGGED_FRAMES:]
        where = ", ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames))
        print(f"{type(error).__name__} in {where}", file=sys.stderr, flush=True)
        return RuntimeError("a document could not be read")


if __name__ == "__main__":
    main()
