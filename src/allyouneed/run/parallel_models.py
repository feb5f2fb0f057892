"""The models of an ensemble that train at the same time, each in a process of its own.

On several cores this is the best use of them: processes that share the batches of a small model wait for each other.

The first process trains model 1. With P processes, each of them trains every P-th model, one after another. If one of
them fails, the others stop and save their models.
"""

import pickle
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ..config import Recipe
from ..errors import AllYouNeedError, Interrupted, TrainingError
from ..machine.interrupts import catch_interrupts
from .budget import Stopwatch
from .callback import Evaluator
from .ensemble import FurtherModel, OtherModels, further_models
from .hooks import Hooks
from .processes import describe_end, start_process
from .run_folder import Stage, enter_run, has_run

STOPPED = 4  # the exit code of a process that a signal has stopped, and that has saved its model
POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class ModelsTask:
    """Everything that a process needs to train further models of an ensemble, one after another.

    `stopwatch` measures the time of the first of `models`.
    """

    models: Sequence[FurtherModel]
    others: OtherModels
    resume: bool
    evaluate: Evaluator | None
    stopwatch: Stopwatch


class ModelProcesses:
    """The other processes of an ensemble, and the models that each of them trains."""

    def __init__(self, recipe: Recipe, output: Path, hooks: Hooks, *, resume: bool) -> None:
        further = further_models(recipe, output)
        share = recipe.train.parallel_models
        self.own = further[share - 1 :: share]  # the further models of this process
        self.for_first = OtherModels(share, begin=self.begin, failure=self.failure)
        self.for_further = OtherModels(share, first=output, earlier=output, failure=self.failure)
        others = [further[number::share] for number in range(share - 1)]
        self._others = [models for models in others if not (resume and all(map(_is_finished, models)))]
        self._processes = [start_process("model_process") for _ in self._others]
        self._first = output
        self._hooks = hooks
        self._resume = resume

    def begin(self) -> None:
        """Let the processes train. Call this when the pairs are prepared, and the first model has been accepted."""
        for process, models in zip(self._processes, self._others, strict=True):
            hooks = self._hooks
            others = OtherModels(self.for_first.share, first=self._first)
            task = ModelsTask(models, others, self._resume, hooks.evaluate, hooks.stopwatch.twin())
            assert process.stdin is not None
            with suppress(BrokenPipeError):  # `failure` says if the process has ended
                process.stdin.buffer.write(pickle.dumps(task))  # type: ignore[attr-defined]
                process.stdin.flush()
        if self._others:
            share = self.for_first.share
            text = f"{share} models train at the same time; the further models are in {self._first / 'models'}"
            self._hooks.callback.on_message("model", text)

    def failure(self) -> int:
        """Return a signal to stop if a process has ended before its models were trained; otherwise 0."""
        has_failed = any(process.poll() not in (None, 0) for process in self._processes)
        return signal.SIGTERM if has_failed else 0

    def wait(self) -> None:
        """Wait for all models. After a signal, or if a process has failed, raises `Interrupted`."""
        with catch_interrupts(self.failure) as interrupt:
            for process in self._processes:
                while not interrupt.signal and process.poll() is None:
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(POLL_SECONDS)
            if interrupt.signal:
                raise Interrupted(
                    "stopped and saved; resuming continues from there", signal=interrupt.signal
                ).mended_by("--resume")

    def stop(self) -> None:
        """Let all processes save their models and end."""
        for process in self._processes:
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGCONT)  # the process may be stopped
        for process in self._processes:
            process.wait()

    def error(self) -> TrainingError | None:
        """Return the error of a process that has failed, if any. All processes have ended."""
        for process, models in zip(self._processes, self._others, strict=True):
            if (code := process.wait()) not in (0, STOPPED, -signal.SIGTERM):
                error = TrainingError(describe_end(process, code, f"the process of model {models[0].number}"))
                return error.mended_by("--resume") if code < 0 else error
        return None

    def end(self) -> None:
        """End the processes at once."""
        for process in self._processes:
            process.kill()
            process.communicate()


def _is_finished(model: FurtherModel) -> bool:
    """Return True if nothing is left to do for a model of a resumed ensemble."""
    with suppress(AllYouNeedError):  # its process will say what is wrong
        return has_run(model.folder) and enter_run(model.recipe, model.folder)[0] is Stage.FINISHED
    return False


@contextmanager
def model_processes(recipe: Recipe, output: Path, hooks: Hooks, *, resume: bool) -> Iterator[ModelProcesses]:
    """Run the other processes of an ensemble inside the `with` block, which ends when all of them have ended.

    After an error in the block they save their models. If one of them has failed, this is the error.
    """
    others = ModelProcesses(recipe, output, hooks, resume=resume)
    try:
        yield others
        others.wait()
    except Exception as error:
        others.stop()
        if isinstance(error, Interrupted) and (failure := others.error()):
            raise failure from error
        raise
    finally:
        others.end()
