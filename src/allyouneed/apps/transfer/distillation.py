"""Teach a smaller model by a larger one: sequence-level knowledge distillation (Kim & Rush, 2016).

The teacher translates the training sources once, and the student is trained on these translations. They vary less than
human translations, so they are easier to learn.

    output/pairs/distillation.json      the sources of the translations, and their teacher
    output/pairs/distilled.N.jsonl      the training sources of corpus N, cleaned, with the teacher's translations
    output/pairs/distilled.N.M.jsonl    part M of these translations; removed when all parts are joined
    output/pairs/valid.jsonl, test.jsonl    the held-out pairs, unchanged
"""

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...auto import Draft, choose_pairs, preliminary_recipe, with_data
from ...bundle import model_files
from ...config import Recipe
from ...data.clean import read_part
from ...data.filter import select_pairs
from ...data.pairs import Pair, chunks
from ...data.provenance import compute_provenance, describe_difference
from ...data.readers import is_task
from ...data.report import DataReport, Part
from ...errors import ConfigError, DataError, Interrupted
from ...machine.checksums import files_digest
from ...machine.files import (
    followed,
    locked,
    parse_json,
    read_whole,
    to_json,
    to_json_lines,
    write_whole,
    written_whole,
)
from ...machine.interrupts import InterruptRequest, catch_interrupts
from ...run import SilentCallback, TrainingCallback
from ...run.preparation import find_languages
from ...run.run_bundle import DISTILLATION_FILE, corpus_name
from ...run.run_folder import has_run, refuse_a_run
from ...text.lines import count_lines
from ...translator import Translator

TRANSLATED_AT_ONCE = 1_000  # sources whose translations are written together
_PARTS: tuple[Part, ...] = ("train", "valid", "test")


def with_teacher(
    recipe: Recipe | Draft,
    teachers: Sequence[Path],
    output: Path,
    *,
    callback: TrainingCallback | None = None,
    resume: bool = False,
) -> Recipe | Draft:
    """Replace the recipe's training targets with translations by a teacher, or by an ensemble of several.

    The pairs are read, cleaned and split as the recipe says. The training sources are translated with the search
    settings of the first teacher, and all pairs are stored in `output`/pairs. With `resume`, finished translations are
    kept. Refuses to resume with another teacher or other pairs, an `output` that exists, and a teacher whose
    translations are all empty. A SIGINT or SIGTERM raises `Interrupted`.
    """
    callback = callback or SilentCallback()
    recipe = choose_pairs(recipe)[0] if isinstance(recipe, Draft) else recipe
    plan = preliminary_recipe(recipe)
    translator = Translator.load(*teachers)
    origin = compute_provenance(plan.data, plan.clean, plan.model.max_length, None)
    origin |= {"teacher": files_digest(*(path for folder in teachers for path in model_files(folder)))}
    by_teacher = f"translated by {' and '.join(followed(folder).name for folder in teachers)}"
    named = [f"{corpus_name(corpus.train)} {by_teacher}" for corpus in plan.data.corpora() if corpus.train]
    table = {"origin": origin, "corpora": {_file_name(number): name for number, name in enumerate(named)}}
    with locked(output, what=str(output)), catch_interrupts() as interrupt:
        manifest = output / "pairs" / DISTILLATION_FILE
        stored = parse_json(read_whole(manifest))["origin"] if manifest.is_file() else None
        if resume and stored is not None:
            if stored != origin:
                raise DataError(
                    f"{output} was distilled from other data or settings: {describe_difference(stored, origin)}"
                )
        elif resume and has_run(output):
            raise ConfigError(f"{output} contains a run without a teacher; name another folder with --output")
        else:
            refuse_a_run(output)
            if stored != origin:
                shutil.rmtree(manifest.parent, ignore_errors=True)
                manifest.parent.mkdir(parents=True)
                write_whole(manifest, to_json(table, indent=2) + "\n")
        corpora = _write_pairs(plan, output, translator, callback, interrupt)
    return _reading(recipe, corpora, languages=translator.bundle.languages)


def _write_pairs(
    plan: Recipe, output: Path, translator: Translator, callback: TrainingCallback, interrupt: InterruptRequest
) -> list[dict[str, Any]]:
    """Write the pairs of all parts. Returns the table of each corpus."""
    folder, pairs, report = output / ".data.partial", output / "pairs", DataReport()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        parts = {part: read_part(part, plan.data, plan.clean, folder, report) for part in _PARTS}
        train = parts["train"]
        selected = select_pairs(plan.data, plan.clean, train, parts["valid"], parts["test"], report)
        corpora, begin = [], 0
        for number, (end, weight, *_) in enumerate(train.ends):
            indices = selected.train[slice(*np.searchsorted(selected.train, [begin, end]))]
            file = pairs / _file_name(number)
            if not file.is_file():
                _translate(file, train.texts(indices), len(indices), translator, callback, interrupt)
            if count_lines(file):
                corpora.append({"train": str(file.resolve()), "weight": weight})
            begin = end
        if not corpora:
            raise DataError(
                f"the teacher has no translation for any of the {len(selected.train):,} training sources; expected a "
                "model that translates texts like these: try it with allyouneed translate BUNDLE TEXT"
            )
        for name, some in (("valid", selected.valid), ("test", selected.test)):
            if some:
                write_whole(pairs / f"{name}.jsonl", _lines(some))
                corpora[0][name] = str((pairs / f"{name}.jsonl").resolve())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return corpora


def _file_name(number: int) -> str:
    return f"distilled.{number}.jsonl"


def _translate(
    file: Path, pairs: Iterable[Pair], total: int, translator: Translator, callback: TrainingCallback,
    interrupt: InterruptRequest,
) -> None:  # fmt: skip
    """Write `pairs` with translations by `translator`. Leaves out sources that it refuses or cannot fully read."""
    done, chunk_files = 0, []
    for number, chunk in enumerate(chunks(pairs, TRANSLATED_AT_ONCE)):
        chunk_files.append(file.with_name(f"{file.stem}.{number}.jsonl"))
        if not chunk_files[-1].is_file():
            if interrupt.signal:
                raise Interrupted(
                    f"stopped after {done:,} of {total:,} translations by the teacher; resuming continues from there",
                    signal=interrupt.signal,
                ).mended_by("--resume")
            callback.on_prepare("translating by the teacher", done, total)
            outputs = _translations([pair.source for pair in chunk], translator)
            rows = (Pair(pair.source, output) for pair, output in zip(chunk, outputs, strict=True) if output)
            write_whole(chunk_files[-1], _lines(rows))
        done += len(chunk)
    with written_whole(file) as joined:
        for path in chunk_files:
            joined.write(path.read_bytes())
    kept = count_lines(file)
    callback.on_message("teacher", f"{kept:,} of {total:,} training pairs have a translation by the teacher")
    for path in chunk_files:
        path.unlink()


def _translations(sources: list[str], translator: Translator) -> list[str]:
    """Translate each source; "" if the teacher refuses it or does not know all its characters."""
    translations = translator.translations(sources, on_refused=lambda _: None)
    return ["" if "unknown" in translation.flags else translation.text for translation in translations]


def _reading(
    recipe: Recipe | Draft, corpora: Sequence[Mapping[str, Any]], *, languages: tuple[str, str]
) -> Recipe | Draft:
    """Return the recipe with these corpora in place of its own."""
    plan = preliminary_recipe(recipe)
    generated = [corpus.test for corpus in plan.data.corpora() if is_task(corpus.test)]
    data: dict[str, Any] = {
        "train": (), "valid": (), "test": str(generated[0]) if generated else (), "columns": (), "sheet": "",
        "corpus": tuple(corpora), "held_out": 0.0, "max_train_samples": 0, "data_dir": "",
    }  # fmt: skip
    if plan.data.bpe_codes:
        data["bpe_codes"] = str(Path(plan.data.data_dir, plan.data.bpe_codes).resolve())
    by_names, _ = find_languages(plan)
    if all(languages := by_names if all(by_names) else languages):
        data |= dict(zip(("source_language", "target_language"), languages, strict=True))
    return with_data(recipe, data)


def _lines(pairs: Iterable[Pair]) -> str:
    return to_json_lines(pair._asdict() for pair in pairs)
