"""The floor plan: imports go down the stairs, and the front door lets out what it names."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import allyouneed

HOUSE = Path(allyouneed.__file__).parent

FLOORS = [
    re.findall(r"`(\w+)`", line.split("|")[2])
    for line in (Path(__file__).parents[1] / "docs/house.md").read_text(encoding="utf-8").splitlines()
    if re.match(r"\| \d+ \|", line)
]  # the top floor first
MAY_IMPORT = {"__main__": {"cli"}} | {
    room: {lower for below in FLOORS[floor + 1 :] for lower in below}
    for floor, rooms in enumerate(FLOORS)
    for room in rooms
}
for number, file_on_the_ground in enumerate(FLOORS[-1]):
    MAY_IMPORT[file_on_the_ground] = set(FLOORS[-1][number + 1 :])

FILES = [file for file in HOUSE.rglob("*.py") if file != HOUSE / "__init__.py"]


def find_room(file: Path) -> str:
    return file.relative_to(HOUSE).parts[0].removesuffix(".py")


def rooms_imported_by(file: Path) -> set[str]:
    package = ["allyouneed", *file.relative_to(HOUSE).parts[:-1]]
    rooms = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            names = [module] if module != "allyouneed" else [f"{module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        rooms |= {name.split(".")[1] for name in names if name.startswith("allyouneed.")}
    return rooms


def climbs(file: Path) -> list[str]:
    return [
        f"{file.relative_to(HOUSE)} imports {room}"
        for room in sorted(rooms_imported_by(file))
        if room != find_room(file) and room not in MAY_IMPORT[find_room(file)]
    ]


def test_every_import_goes_down() -> None:
    assert len(FILES) > 30
    assert [wrong for file in FILES for wrong in climbs(file)] == []


@pytest.mark.parametrize(
    "line",
    ["from ..translator import Translator", "from .. import translator", "import allyouneed.translator"],
)
def test_an_import_that_climbs_is_seen(line: str) -> None:
    planted = HOUSE / "nn" / "planted.py"
    original = Path.read_text
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "read_text", lambda self, **kw: line if self == planted else original(self, **kw))
        assert climbs(planted) == ["nn/planted.py imports translator"]


def test_text_knows_nothing_of_torch() -> None:
    code = "import sys, allyouneed.corpus.readers, allyouneed.text.tokenizer; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_help_does_not_wait_for_torch() -> None:
    code = "import sys, allyouneed.cli; assert 'torch' not in sys.modules and 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_public_names() -> None:
    assert dir(allyouneed) == [
        "Adaptation", "Alignment", "AllYouNeedError", "Bundle", "BundleError", "CleanConfig", "ConfigError",
        "CorpusConfig", "DataConfig", "DataError", "DecodeConfig", "DocumentError", "DocumentOptions",
        "DocumentTranslation", "Draft", "Evaluation", "Evaluator", "ExportError", "Glossary", "InputError",
        "Interrupted", "MissingExtraError", "ModelConfig", "MultiHeadAttention", "OutputError",
        "PositionalEncoding", "Recipe", "Sample", "Scored", "SilentCallback", "Tokenizer", "TrainConfig",
        "TrainingCallback", "TrainingError", "Transformer", "Translation", "Translator", "Update",
        "Validation", "adapt_bundle", "average_bundles", "evaluate", "evaluate_run", "export_bundle", "fit",
        "import_checkpoint", "read_document", "read_pairs", "recipe_path", "translate_document",
    ]  # fmt: skip
    for name in allyouneed.__all__:
        assert getattr(allyouneed, name).__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'Transfomer'"):
        allyouneed.Transfomer  # noqa: B018


def test_all_errors_are_one_family() -> None:
    from allyouneed import errors

    family = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    assert len(family) > 4
    for kind in family:
        assert issubclass(kind, errors.AllYouNeedError)
        assert kind.__name__ in (errors.__doc__ or "")


def test_every_test_file_has_its_file_in_the_house() -> None:
    tests = Path(__file__).parent
    of_the_house = {
        "test_words.py", "test_bench_gpu.py", "test_bench_speedrun.py",
        "test_house.py", "test_examples.py", "test_docs.py", "test_makefile.py", "test_measurements.py",
        "test_localization.py", "test_walk.py",
        "test_clients.py", "test_openapi.py", "test_commands.py", "test_fuzz.py", "test_deploy.py", "test_threads.py",
        "test_late_outcomes.py",
    }  # fmt: skip
    for test in tests.rglob("test_*.py"):
        path = test.relative_to(tests)
        if path.name not in of_the_house:
            there = HOUSE / path.with_name(path.name.removeprefix("test_"))
            assert there.is_file() or there.with_suffix("").is_dir(), path
