"""The program of a worker that a run starts on its own machine: python -m allyouneed.run.worker_process …"""

import sys

from ..errors import AllYouNeedError, Interrupted
from ..machine.device import configure_process
from .fit import follow
from .processes import LOST_OTHERS, end_with_first, has_lost_others, process_group


def run_worker() -> int:
    """Take part in a run until it ends. If this process fails, print the error."""
    store, count, threads, rank = sys.argv[1:]
    end_with_first()
    configure_process(int(threads))
    print("ready", flush=True)
    try:
        with process_group(f"file://{store}", rank=int(rank), count=int(count)):
            follow()
    except Interrupted:
        return 0
    except Exception as error:
        if has_lost_others(error):
            return LOST_OTHERS
        what = "" if isinstance(error, AllYouNeedError) else f"{type(error).__name__}: "
        print(f"worker {int(rank) + 1} of {count}: {what}{error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(run_worker())
