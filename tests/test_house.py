"""The rules of the house, and what can be imported from its front door."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import allyouneed
from texts import strings_in

HOUSE = Path(allyouneed.__file__).parent

HANDED_IN = {"fast", "native", "younger"}
# The rooms that a room may not import.
NOT_FOR = {"nn": HANDED_IN, "train": HANDED_IN, "decode": HANDED_IN, "run": {"auto"}}

FILES = [file for file in HOUSE.rglob("*.py") if file != HOUSE / "__init__.py"]


def find_room(file: Path) -> str:
    return file.relative_to(HOUSE).parts[0].removesuffix(".py")


@cache
def imports_in(source: str) -> list[ast.Import | ast.ImportFrom]:
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import | ast.ImportFrom)]


def modules_imported_by(file: Path) -> set[str]:
    package = ["allyouneed", *file.relative_to(HOUSE).parts[:-1]]
    modules = set()
    for node in imports_in(file.read_text(encoding="utf-8")):
        if isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            names = [module] if module != "allyouneed" else [f"{module}.{alias.name}" for alias in node.names]
        else:
            names = [alias.name for alias in node.names]
        modules |= {name for name in names if name.startswith("allyouneed.")}
    return modules


def rooms_imported_by(file: Path) -> set[str]:
    return {module.split(".")[1] for module in modules_imported_by(file)}


def wrong_imports(file: Path) -> set[str]:
    """Return the rooms that a file imports but may not."""
    room = find_room(file)
    imported = rooms_imported_by(file)
    wrong = set() if room in {"apps", "__main__"} else imported & {"apps"}
    return wrong | imported & NOT_FOR.get(room, set())


def test_core_never_imports_apps_and_rooms_are_handed_what_they_may_not_import() -> None:
    assert len(FILES) > 30
    assert {str(file.relative_to(HOUSE)): wrong for file in FILES if (wrong := wrong_imports(file))} == {}


@pytest.mark.parametrize(
    ("room", "line", "wrong"),
    [
        ("run", "from ..apps.serve.app import make_app", {"apps"}),
        ("translator", "import allyouneed.apps.cli", {"apps"}),
        ("nn", "from .. import fast", {"fast"}),
        ("train", "from ..younger.muon import Muon", {"younger"}),
        ("decode", "from ..native.engine import NativeEngine", {"native"}),
        ("decode", "from allyouneed.fast.attention import fused_attention", {"fast"}),
        ("run", "from ..auto import Draft", {"auto"}),
        ("apps/cli", "from ..serve.app import make_app", set()),
        ("run", "from ..fast.workers import Workers", set()),
    ],
)
def test_a_wrong_import_is_seen(room: str, line: str, wrong: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    planted = HOUSE / room / "planted.py"
    original = Path.read_text
    monkeypatch.setattr(Path, "read_text", lambda self, **kw: line if self == planted else original(self, **kw))
    assert wrong_imports(planted) == wrong


def test_every_room_has_its_line_in_the_docs_and_few_files_are_loose() -> None:
    page = (Path(__file__).parents[1] / "docs/house.md").read_text(encoding="utf-8")
    rooms = {find_room(file) for file in FILES}
    loose = {file.name for file in HOUSE.glob("*.py")}
    assert loose == {"__init__.py", "__main__.py", "bundle.py", "bundle_parts.py", "errors.py"}
    assert {room for room in rooms - {"__main__"} if not re.search(rf"^\|.*`{room}(\.py)?`.* \|", page, re.M)} == set()


def test_no_rooms_import_each_other_in_a_circle() -> None:
    rooms: dict[str, set[str]] = {}
    for file in FILES:
        rooms.setdefault(find_room(file), set()).update(rooms_imported_by(file) - {find_room(file)})
    TopologicalSorter(rooms).prepare()  # a CycleError names the circle


def imports_itself(file: Path) -> bool:
    own_name = ".".join(["allyouneed", *file.relative_to(HOUSE).with_suffix("").parts])
    return own_name in modules_imported_by(file)


def test_no_file_imports_itself() -> None:
    assert [str(file.relative_to(HOUSE)) for file in FILES if imports_itself(file)] == []


def long_functions(file: Path) -> set[str]:
    """Return the functions that are longer than a reader can hold: with their docstrings 60 lines, 40 in commands."""
    path = file.relative_to(HOUSE)
    if path.parts[0] == "native":  # kernels
        return set()
    longest = 40 if path.parts[:2] == ("apps", "cli") else 60
    return {
        f"{path.as_posix()}: {node.name}"
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if node.end_lineno is not None and node.end_lineno - node.lineno >= longest
    }


def test_no_function_is_long() -> None:
    assert set().union(*map(long_functions, FILES)) == set()


def test_a_file_that_imports_itself_and_a_long_function_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    source = "def train():\n" + "    pass\n" * 39
    monkeypatch.setattr(Path, "read_text", lambda self, **kw: source)
    command, other = HOUSE / "apps/cli/planted.py", HOUSE / "run/planted.py"
    assert long_functions(command) == set()
    source += "    from .planted import other\n"
    assert imports_itself(command)
    assert long_functions(command) == {"apps/cli/planted.py: train"}
    assert long_functions(other) == set()
    source += "    pass\n" * 20
    assert long_functions(other) == {"run/planted.py: train"}


def test_text_knows_nothing_of_torch() -> None:
    code = "import sys, allyouneed.data.readers, allyouneed.text.tokenizer; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


HEAVY = {"matplotlib", "numpy", "pydantic", "rich", "torch"}


def heavy_imports(code: str, *arguments: object) -> set[str]:
    """Return the slow libraries that a new process has imported after this code."""
    code = f"import sys\n{code}\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], check=True, stdout=subprocess.PIPE, text=True
    )
    return HEAVY & set(done.stdout.split())


def test_a_command_imports_nothing_slow_before_it_begins() -> None:
    code = "from allyouneed.apps.cli import main\ntry: main()\nexcept SystemExit: pass"
    assert heavy_imports(code, "translate", "nowhere", "a text", "decode.alpha=1") == set()
    assert heavy_imports(code, "--help") == set()


def test_a_bundle_is_read_and_searches_are_made_without_slow_libraries(saved: Path) -> None:
    code = """
import allyouneed.decode, allyouneed.translator, allyouneed.apps.documents.document_translation
from allyouneed.translator.unread_bundle import UnreadBundle
bundle = UnreadBundle.load(sys.argv[1])
assert bundle.config.vocab_size and bundle.shapes
"""
    assert heavy_imports(code, saved) == set()


def test_a_server_begins_without_slow_libraries() -> None:
    code = "import allyouneed.apps.serve.app, allyouneed.apps.serve.server, allyouneed.apps.cli.serve"
    assert heavy_imports(code) == {"pydantic"}  # of FastAPI


def test_the_public_names() -> None:
    assert dir(allyouneed) == [
        "Adaptation", "Alignment", "AllYouNeedError", "Bundle", "BundleError", "CleanConfig", "ConfigError",
        "CorpusConfig", "DataConfig", "DataError", "DecodeConfig", "DocumentError", "DocumentOptions",
        "DocumentTranslation", "Draft", "Evaluation", "Evaluator", "ExportError", "Glossary", "InputError",
        "Interrupted", "MissingExtraError", "ModelConfig", "MultiHeadAttention", "OutputError",
        "PositionalEncoding", "ProgressBar", "Recipe", "Sample", "Scored", "SilentCallback", "Tokenizer", "TrainConfig",
        "TrainingCallback", "TrainingError", "Transformer", "Translation", "Translator", "Update",
        "Validation", "adapt_bundle", "average_bundles", "evaluate", "evaluate_run", "export_bundle", "fit",
        "import_checkpoint", "read_document", "read_pairs", "recipe_path", "translate_document",
    ]  # fmt: skip
    for name in allyouneed.__all__:
        assert getattr(allyouneed, name).__name__ == name
    with pytest.raises(AttributeError, match="'Transfomer'"):
        allyouneed.Transfomer  # noqa: B018


def test_all_errors_are_one_family() -> None:
    from allyouneed import errors

    classes = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    family = [kind for kind in classes if not issubclass(kind, Warning)]
    assert len(family) > 4
    for kind in family:
        assert issubclass(kind, errors.AllYouNeedError)
        assert kind.__name__ in (errors.__doc__ or "")


def test_no_two_scripts_of_one_page_have_a_function_of_one_name() -> None:
    """Pages join the scripts of the engine and those that explain, and the later function would replace the other."""
    folders = (HOUSE / "apps/convert/web", HOUSE / "apps/explain/web")
    names = [
        name
        for folder in folders
        for file in folder.glob("*.js")
        if file.name != "page.js"  # of the exported page, which explains nothing
        for name in re.findall(r"^(?:async )?function (\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert len(names) > 50
    assert sorted({name for name in names if names.count(name) > 1}) == []


def prose(pattern: str) -> list[str]:
    """Return the words of a pattern that are not names, numbers, options or quoted: they may be put better some day."""
    text = re.sub(r"\\(\W)", r"\1", pattern)
    text = re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`", " ", text)
    words = [word.strip(",.;:!?()[]^$*+|") for word in text.split()]
    return [word for word in words if re.fullmatch("[A-Za-z]?[a-z]+('[a-z]+)?", word) and len(word) > 1]


def constant_text(node: ast.expr) -> str:
    """Return a string as it is written, with nothing for the values in an f-string."""
    values = node.values if isinstance(node, ast.JoinedStr) else [node]
    return "".join(str(one.value) for one in values if isinstance(one, ast.Constant))


def parametrized(test: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    """Yield the arguments of a test, each with every value that its decorators list."""
    for decorator in test.decorator_list:
        match decorator:
            case ast.Call(func=ast.Attribute(attr="parametrize"), args=[names, ast.List(elts=rows)]):
                arguments = [name.strip(" ()'") for name in ast.unparse(names).split(",")]
                for row in rows:
                    cells = row.args if isinstance(row, ast.Call) else getattr(row, "elts", [])
                    yield from zip(arguments, [row] if len(arguments) == 1 else cells, strict=False)


def wordy_matches(source: str) -> list[str]:
    """Return patterns of `match=`, or of a search in standard error, with more than two words of prose."""
    patterns = list[ast.expr]()
    for test in ast.walk(ast.parse(source)):
        match test:
            case ast.Compare(left=ast.Constant() as words, ops=[ast.In()], comparators=[screen]):
                patterns += [words] if re.search(r"\brefus(al|ed)\(|stderr|\.err\b", ast.unparse(screen)) else []
        if isinstance(test, ast.FunctionDef):
            matches = [node.value for node in ast.walk(test) if isinstance(node, ast.keyword) and node.arg == "match"]
            names = {node.id for match in matches for node in ast.walk(match) if isinstance(node, ast.Name)}
            patterns += matches + [value for name, value in parametrized(test) if name in names]
    return [text for text in map(constant_text, patterns) if len(prose(text)) > 2]


def test_a_match_pins_a_value_and_not_a_sentence() -> None:
    """At most two of its words are no names, numbers, options or quotations, so that messages can be reworded."""
    tests = Path(__file__).parent
    wordy = {path.name: wordy_matches(path.read_text(encoding="utf-8")) for path in tests.rglob("*.py")}
    assert {name: texts for name, texts in wordy.items() if texts} == {}


@pytest.mark.parametrize(
    "test",
    [
        "def test():\n    with raises(E, match='heads must be at least 1'): pass",
        "def test():\n    with raises(E, match=f'{name} must not be here'): pass",
        "@pytest.mark.parametrize('why', ['a', 'must not be'])\ndef test(why):\n    with raises(E, match=why): pass",
        "@pytest.mark.parametrize(('a', 'why'), [(1, 'x is not here')])\ndef test(a, why):\n    raises(E, match=why)",
        "assert 'heads must be at least 1' in refusal('train', 'model.heads=0')",
    ],
)
def test_a_sentence_in_a_match_is_seen(test: str) -> None:
    assert len(wordy_matches(test)) == 1


def phrases(text: str) -> set[str]:
    """Return every three words of prose that follow each other in a text or in a pattern."""
    words = [word.strip(",.;:!?()[]^$*+|") for word in re.sub(r"\\(\W)", r"\1", text).split()]
    triples = zip(words, words[1:], words[2:], strict=False)
    return {" ".join(triple) for triple in triples if all(word == "a" or prose(word) for word in triple)}


def phrases_of_messages() -> set[str]:
    """Return the phrases of every string of the house but its docstrings."""
    found = set[str]()
    for file in FILES:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        found |= set().union(*map(phrases, strings_in(tree, skipped=docstrings)))
    return found


SEARCHES = {
    "count", "endswith", "findall", "fullmatch", "index", "match", "partition", "removeprefix", "removesuffix",
    "rpartition", "search", "startswith",
}  # fmt: skip


def compared(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield what a test asserts, compares or searches for."""
    for node in ast.walk(tree):
        match node:
            case ast.Assert(test=condition):
                yield condition
            case ast.Compare(left=left, comparators=others):
                yield from (left, *others)
            case ast.Call(func=ast.Attribute(attr=name), args=patterns) if name in SEARCHES:
                yield from patterns


def quotations(source: str, messages: set[str]) -> list[str]:
    """Return the phrases of messages that a test expects, in place or as a parameter."""
    tree = ast.parse(source)
    expected = [*compared(tree)]
    for test in ast.walk(tree):
        if isinstance(test, ast.FunctionDef) and test.decorator_list:
            names = {node.id for node in compared(test) if isinstance(node, ast.Name)}
            expected += [value for name, value in parametrized(test) if name in names]
    return sorted(set().union(*(phrases(text) for node in expected for text in strings_in(node))) & messages)


def test_a_test_quotes_at_most_two_words_of_a_message() -> None:
    """What a message must say is a value: a number, a name, a path, an option. Its sentences can be reworded."""
    messages = phrases_of_messages()
    assert len(messages) > 5_000
    files = {path.name: path.read_text(encoding="utf-8") for path in Path(__file__).parent.rglob("*.py")}
    quoted = {name: quotations(source, messages) for name, source in files.items()}
    assert {name: found for name, found in quoted.items() if found} == {}


@pytest.mark.parametrize(
    "test",
    [
        "assert 'the moon is full' in str(error)",
        "assert answer.json() == {'error': f'{path}: the moon is full'}",
        "assert any(line.startswith('the moon is ') for line in lines)",
        "(line,) = [line for line in lines if 'the moon is' in line]",
        "assert re.search(r'1 \\(the moon is full\\)', line)",
        "@pytest.mark.parametrize(('a', 'why'), [(1, 'the moon is')])\ndef test(a, why):\n    assert why in refusal(a)",
    ],
)
def test_a_quotation_of_a_message_is_seen(test: str) -> None:
    assert quotations(test, phrases("the moon is")) == ["the moon is"]
    assert quotations("assert 'moon is' in str(error)\nwrite('the moon is full')", phrases("the moon is")) == []


def test_every_test_file_has_its_file_in_the_house() -> None:
    tests = Path(__file__).parent
    of_the_house = {
        "test_bench_gpu.py", "test_bench_speedrun.py",
        "test_house.py", "test_names.py", "test_examples.py", "test_micro.py", "test_docs.py", "test_makefile.py",
        "test_measurements.py",
        "test_localization.py", "test_walk.py", "test_site.py", "test_edits.py", "test_release.py",
        "test_clients.py", "test_openapi.py", "test_commands.py", "test_fuzz.py", "test_deploy.py", "test_threads.py",
        "test_late_outcomes.py", "test_finite_updates.py", "test_proposals.py", "test_doors.py",
        "test_sanitizers.py", "test_processors.py", "test_po_msgfmt.py", "test_pretended_gpu.py",
    }  # fmt: skip
    for test in tests.rglob("test_*.py"):
        path = test.relative_to(tests)
        if path.name not in of_the_house:
            places = [floor / path.with_name(path.name.removeprefix("test_")) for floor in (HOUSE, HOUSE / "apps")]
            files = [
                file for there in places for file in there.parent.glob(f"{there.stem}.*")
            ]  # of Python, or of the page
            assert files or any(there.with_suffix("").is_dir() for there in places), path


# Names that another library calls private, with a comment in each file that says why no public name does it.
PRIVATE_OF_OTHERS = {
    "data/safe_xml.py": {"_Element"},
    "metrics/corpus_metrics.py": {"_compute_score_from_stats", "_extract_corpus_statistics"},
    "translator/likelihood.py": {"_modules"},
    "translator/weight_versions.py": {"_buffers", "_parameters", "_version"},
    "younger/muon.py": {
        "_foreach_add_", "_foreach_copy_", "_foreach_lerp", "_foreach_lerp_", "_foreach_mul_",
    },
}  # fmt: skip
PUBLIC = {"_asdict", "_exit", "_fields", "_replace"}  # of named tuples and `os`, despite their names


def private_names(file: Path) -> set[str]:
    """Return the names with an underscore that a file takes from objects other than `self` and `cls`."""
    return {
        node.attr
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and re.match("_[^_]", node.attr)
        if not (isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"})
    }


def defined_names(file: Path) -> set[str]:
    """Return the names that a file defines: functions, classes, fields, and attributes of `self`."""
    return {
        str(getattr(node, "name", "") or getattr(node, "attr", "") or getattr(node, "id", ""))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
        or (isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self" and isinstance(node.ctx, ast.Store))
    }


def test_few_private_names_of_other_libraries_are_used() -> None:
    files = [file for file in FILES if find_room(file) != "fast"]  # which replaces parts of PyTorch
    used = {file.relative_to(HOUSE).as_posix(): private_names(file) - PUBLIC - defined_names(file) for file in files}
    assert {file: names for file, names in used.items() if names} == PRIVATE_OF_OTHERS
