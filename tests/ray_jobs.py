"""A local Ray cluster of two processes: work of which one is killed, and the command `translate --ray`.

    python ray_jobs.py BUNDLE FILE OUTPUT

A program of its own, because Ray changes the process that starts it. Prints the results of the work.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import ray

from allyouneed.cli import app
from allyouneed.cluster import cluster_map


def dying(marker: Path) -> Callable[[int], int]:
    """Work that ends its process once, at the third item."""

    def square(number: int) -> int:
        time.sleep(0.05)
        if number == 2 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return number * number

    return square


def main() -> None:
    bundle, file, output = map(Path, sys.argv[1:])
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        with cluster_map(partial(dying, output.with_name("marker")), "local") as in_order:
            print(list(in_order(range(12))))
        app(["translate", str(bundle), str(file), "--output", str(output), "--ray", "local"], standalone_mode=False)
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main()
