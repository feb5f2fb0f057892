"""Complete a draft before a run, with settings chosen from the pairs, which are prepared in the run's folder.

`run` gets the complete recipe and finds the prepared pairs. It does not know about drafts.
"""

from contextlib import nullcontext
from pathlib import Path

from ..config import Recipe
from ..machine.device import pick_device, using_threads
from ..machine.files import locked
from ..run.budget import USED_FILE, within_budget
from ..run.fit import first_threads
from ..run.hooks import Hooks
from ..run.preparation import RunPairs, prepare_pairs, require_resumable
from ..run.run_folder import Stage, has_run, refuse_a_run
from ..run.setup import divides_work, most_parallel_models
from ..run.worker_count import most_workers
from .choice_rules import Corpus
from .choosing import choose_from_pairs
from .draft import Draft
from .machine_speed import describe_speed


def complete(
    recipe: Recipe | Draft, output: Path, hooks: Hooks, *, resume: bool = False
) -> tuple[Recipe, list[tuple[str, str]]]:
    """Complete a draft for a run in the folder `output`. Returns the recipe, and the choices as topics and lines.

    The settings that the draft leaves out are chosen from its pairs, which are prepared in that folder. With a time
    budget on a CPU, the choice also depends on the speed of the machine with the processes that may share the run. For
    a resumed run, the settings stay as they were at its start. A complete recipe is returned unchanged. Refuses a
    folder with a run unless the run is resumed, and a folder that another process uses.
    """
    if isinstance(recipe, Recipe):
        return recipe, []
    draft = recipe
    settings = draft.preliminary.train
    with locked(output, what=str(output)):
        if resume and has_run(output):
            return _as_started(draft, output), []
        refuse_a_run(output, resume=lambda: require_resumable(_as_started(draft, output), output))
        device = pick_device(settings.device)
        workers = most_workers(settings, can_divide=divides_work(device, hooks))
        used = output / USED_FILE
        noted = hooks.stopwatch.noted(used, goes_on=resume) if settings.minutes else nullcontext()
        with noted, using_threads(first_threads(settings, device)):
            most = most_parallel_models(settings, device, hooks)
            draft = choose_from_pairs(draft, output, device=device, workers=workers, parallel_models=most)
            progress = within_budget(settings, hooks.stopwatch, hooks.callback.on_prepare)
            pairs = prepare_pairs(draft.preliminary, output, stage=Stage.NEW, progress=progress)
            return _complete(draft, pairs, has_gpu=device.type != "cpu")


def _as_started(draft: Draft, output: Path) -> Recipe:
    """Return the complete recipe of the run in a folder, changed by the settings of the draft."""
    return draft.merged_into(Recipe.read(output / "recipe.toml"))


def _complete(draft: Draft, pairs: RunPairs, *, has_gpu: bool) -> tuple[Recipe, list[tuple[str, str]]]:
    """Complete a draft with the help of its pairs. Returns the recipe and the reasons, as topics and lines."""
    train = pairs.data.train
    corpus = Corpus(
        pairs=len(train),
        tokens=train.epoch_tokens(),
        longest=train.longest(),
        has_valid=pairs.data.valid is not None,
        exact=draft.is_exact,
        gpu=has_gpu,
        minutes=draft.preliminary.train.minutes,
        speed=draft.speed,
    )
    complete, choices = draft.complete(corpus)
    notes = [("statistics", draft.statistics.describe())] if draft.statistics else []
    notes += [("speed", describe_speed(draft.speed))] if draft.speed else []
    warning = draft.warning(len(train))
    notes += [("warning", warning)] if warning else []
    notes += [("auto", str(choice)) for choice in choices]
    return complete, notes
