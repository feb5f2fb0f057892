"""The program of a process that trains further models of an ensemble: python -m allyouneed.run.model_process."""

import pickle
import sys

from ..errors import AllYouNeedError, Interrupted
from ..machine.device import configure_process
from .fit import train_further
from .hooks import Hooks
from .parallel_models import STOPPED
from .processes import end_with_first


def run_models() -> int:
    """Train the models of the task that comes from standard input. If this process fails, print the error."""
    configure_process(1)
    try:
        task = pickle.load(sys.stdin.buffer)
    except EOFError:  # the first process has ended
        return 1
    end_with_first()
    try:
        hooks = Hooks(evaluate=task.evaluate)
        train_further(task.models, hooks, resume=task.resume, others=task.others, stopwatch=task.stopwatch)
    except Interrupted:
        return STOPPED
    except Exception as error:
        what = "" if isinstance(error, AllYouNeedError) else f"{type(error).__name__}: "
        print(f"model {task.models[0].number}: {what}{error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(run_models())
