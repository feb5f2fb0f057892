"""The reference pages of the site: commands, settings and Python API, written from the program itself.

They are made when the site is built (docs/conf.py), into docs/reference/, and are nowhere else: on the command line
`allyouneed COMMAND --help` and `allyouneed config` say the same.
"""

import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from allyouneed.apps.cli import app
from allyouneed.config.reference import list_settings

FOLDER = Path(__file__).parent.parent / "reference"
EXAMPLES = "\b"  # begins them in the help
HEADINGS = {  # of the sections of a recipe
    "data": "`[data]`: the pairs, and their tokens",
    "data.corpus": "`[[data.corpus]]`: one corpus of several",
    "clean": "`[clean]`: normalization and filters",
    "model": "`[model]`: the Transformer",
    "train": "`[train]`: training",
    "decode": "`[decode]`: the search",
}
API: dict[str, tuple[str, ...]] = {  # a name without a dot is one of `allyouneed`
    "Translate": ("Translator", "Translation", "Alignment", "Scored", "Glossary", "Bundle", "Tokenizer"),
    "Train": (
        "fit", "Draft", "TrainingCallback", "SilentCallback", "ProgressBar", "Update", "Validation",
        "average_bundles", "adapt_bundle", "Adaptation", "read_pairs", "recipe_path",
        "Recipe", "ModelConfig", "DataConfig", "CorpusConfig", "CleanConfig", "TrainConfig", "DecodeConfig",
    ),
    "Evaluate": (
        "evaluate", "evaluate_run", "apps.reports.record.HeldOutResult", "Evaluation", "Evaluator", "Sample",
    ),
    "The model": ("nn",),
    "The searches": ("decode",),
    "Look inside and check": (
        "apps.explain.explain", "apps.explain.trace_translation", "apps.explain.describe_heads",
        "apps.explain.recorded", "apps.check.check_bundle", "apps.check.check_recipe", "apps.check.CheckResult",
    ),
    "Documents": (
        "read_document", "DocumentOptions", "apps.documents.Document", "translate_document", "DocumentTranslation",
    ),
    "Export and import": ("export_bundle", "import_checkpoint"),
    "Files of pairs": ("data.readers.open_pairs", "data.prepare.prepare"),
    "Errors": ("errors",),
}  # fmt: skip


def commands() -> Iterator[str]:
    """Yield each command with its usage and a table of its arguments and options."""
    yield "# Commands\n"
    yield "What `allyouneed COMMAND --help` prints, without its examples. Every command has `--debug`, which prints the"
    yield "traceback of an error; `allyouneed --version` prints the version.\n"
    program: Any = typer.main.get_command(app)
    yield from _describe(program, program.context_class(program, info_name="allyouneed"))


def _describe(group: Any, parent: Any) -> Iterator[str]:
    for name, command in group.commands.items():
        context = command.context_class(command, info_name=name, parent=parent)
        yield f"## {context.command_path}\n" if parent.parent is None else f"### {context.command_path}\n"
        yield f"{_plain(command.help.partition(EXAMPLES)[0].strip())}\n"
        if hasattr(command, "commands"):
            yield from _describe(command, context)
            continue
        yield f"```text\n{context.command_path} {' '.join(command.collect_usage_pieces(context))}\n```\n"
        yield "| | |\n|---|---|"
        for parameter in command.params:
            if not getattr(parameter, "hidden", False):
                names, text = parameter.get_help_record(context)
                yield f"| `{_cell(names)}` | {_cell(_plain(text))} |"
        yield ""
        if command.takes_settings():
            yield "Every [setting of the search](settings.md#decode-the-search) can be among the arguments.\n"


def settings() -> Iterator[str]:
    """Yield every setting of a recipe, a table for each section."""
    yield "# Settings\n"
    yield "What `allyouneed config` prints. A setting that a recipe leaves out has its default, which is the paper's"
    yield "value where the paper has one. Lengths of outputs are in tokens and count the end token.\n"
    for section, heading in HEADINGS.items():
        yield f"{'###' if '.' in section else '##'} {heading}\n"
        yield "| setting | meaning | values | default | in the paper |\n|---|---|---|---|---|"
        for known in list_settings(section):
            default = known.default if known.default == "left out" else f"`{known.default}`"
            yield f"| `{known.key}` | {known.meaning} | {known.values} | {default} | {known.paper} |"
        yield ""


def api() -> Iterator[str]:
    """Yield the public names; Sphinx takes their docstrings."""
    yield "# Python API\n"
    yield "Most names are imported from `allyouneed` itself, those of the model from `allyouneed.nn`, the searches from"
    yield "`allyouneed.decode`.\n"
    for heading, names in API.items():
        yield f"## {heading}\n\n```{{eval-rst}}"
        for name in names:
            yield f".. {_directive(name)}:: allyouneed.{name}"
            yield "" if _directive(name) == "autofunction" else "   :members:\n"
        yield "```\n"


def _directive(name: str) -> str:
    named = pkgutil.resolve_name(f"allyouneed.{name}")
    return "automodule" if inspect.ismodule(named) else "autoclass" if inspect.isclass(named) else "autofunction"


def _plain(text: str) -> str:
    """Escape the signs of Markdown in help."""
    return re.sub(r"(?=[*<])", r"\\", text)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def pages() -> dict[str, str]:
    """Return every reference page by its name."""
    return {made.__name__: "\n".join(made()) for made in (commands, settings, api)}


def write() -> None:
    """Write those that changed."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        path = FOLDER / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
