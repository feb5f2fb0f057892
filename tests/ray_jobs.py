"""`prepare --ray` and `translate --ray` on a local Ray cluster of two processes, one of which is killed in each.

    python ray_jobs.py PAIRS FOLDER BUNDLE FILE OUTPUT

A program of its own, because Ray changes the process that starts it. Prepares PAIRS in FOLDER, then translates FILE
into OUTPUT. Standard output has what the two commands print, but not what Ray prints before, between or after them.
"""

import os
import signal
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import ray

import allyouneed.apps.cli.translate as translate
import allyouneed.data.clean as reading
import allyouneed.data.pairs as store
import allyouneed.data.prepare as preparing
from allyouneed.apps.cli import app


class DyingOnce:
    """Work that kills its process at its third block, unless another process was killed before."""

    def __init__(self, marker: Path, work: Callable[..., Any]) -> None:
        self._marker, self._work, self._blocks = marker, work, 0

    def __call__(self, *blocks: Any, **options: Any) -> Any:
        self._blocks += 1
        if self._blocks == 3 and not self._marker.exists():
            self._marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self._work(*blocks, **options)


class DyingMaker:
    """Makes work, as `make` does, that kills its process once."""

    def __init__(self, marker: Path, make: Callable[..., Callable[..., Any]]) -> None:
        self._marker, self._make = marker, make

    def __call__(self, *arguments: Any, **options: Any) -> DyingOnce:
        return DyingOnce(self._marker, self._make(*arguments, **options))


def main() -> None:
    pairs, folder, bundle, file, output = map(Path, sys.argv[1:])
    vars(store)["CHUNK"] = 50  # pairs in a block
    for module, name, dying in (
        (reading, "clean_block", DyingOnce),
        (preparing, "_encode_block", DyingOnce),
        (translate, "row_maker", DyingMaker),
    ):
        vars(module)[name] = dying(output.with_name(f"killed-{name}"), vars(module)[name])
    output_stream = sys.stdout
    with redirect_stdout(sys.stderr):
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        try:
            for words in (
                ["prepare", str(pairs), "--output", str(folder)],
                ["translate", str(bundle), str(file), "--output", str(output)],
            ):
                with redirect_stdout(output_stream):
                    app([*words, "--ray", "local"], standalone_mode=False)
        finally:
            ray.shutdown()


if __name__ == "__main__":
    main()
