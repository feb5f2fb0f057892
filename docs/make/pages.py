"""What pages of the docs take from records and code, written into them: python docs/make/pages.py

A table is between `<!-- table: NAME -->` and `<!-- end -->`; the text between these lines is replaced. So is a file of
our source, or a part of it, between `<!-- file: nn/attention.py [Class] -->` and `<!-- end -->`. Its notes are the
numbered list that follows: a note begins with the code that it is about, and that line of the file gets its number.
"""

import ast
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from allyouneed.config import ModelConfig
from allyouneed.config.export_limits import exportable

HERE = Path(__file__).parent
TASKS = ("dates", "reverse", "sort", "locales", "numbers", "agreement")
SOURCE = HERE.parent.parent / "src/allyouneed"
CIRCLED = "①②③④⑤⑥⑦⑧⑨⑩"
_TABLE = re.compile(r"(<!-- table: (.+?) -->\n).*?(<!-- end -->)", re.DOTALL)
_FILE = re.compile(r"(<!-- file: (\S+)(?: ([\w.]+))? -->\n).*?(<!-- end -->\n)\n?((?:\d+\. [^\n]+\n)*)", re.DOTALL)
_NOTE = re.compile(r"^\d+\. (?:`` (.+?) ``|`(.+?)`)", re.MULTILINE)


def ablations() -> Iterator[str]:
    """Yield dates right after some updates, with one part left out."""
    updates = (200, 400, 600, 800)
    yield f"| % of dates correct, after so many updates | {' | '.join(map(str, updates))} |"
    yield "|---|" + "---:|" * len(updates)
    for name, points in record("ablations").items():
        exact = {point["step"]: f"{point['exact']:.1f}" for point in points}
        yield f"| {name} | {' | '.join(exact[step] for step in updates)} |"


def tasks() -> Iterator[str]:
    """Yield every task in a line, and where they were measured."""
    yield "| task | right, of 2,000 unseen pairs | seeds | processor time of training | date |"
    yield "|---|---:|---:|---:|---|"
    for name in TASKS:
        about = record("tasks")[name]
        runs = about["runs"]
        seconds = sorted({round(run["seconds"]) for run in runs})
        several = " to ".join(map(str, dict.fromkeys((seconds[0], seconds[-1])))) + " s"
        right = min(run["exact"] for run in runs)
        yield f"| [{name}]({name}.md) | {right:.2f} % | {len(runs)} | {several} | {about['date']} |"
    machines = "; ".join(dict.fromkeys(record("tasks")[name]["machine"] for name in TASKS))
    yield ""
    yield f"Measured by `python docs/make/tasks.py` on one thread: {machines}."


def _values(key: str, *values: str) -> dict[str, dict[str, Any]]:
    return {f'`model.{key} = "{value}"`': {key: value} for value in values}


EXPORTED_SETTINGS: tuple[dict[str, dict[str, Any]], ...] = (  # of models: alternatives, each with its row of the table
    _values("norm", "post", "pre"),
    _values("positions", "sinusoidal", "learned", "rotary", "sinusoidal-rotary"),
    {"`model.query_key_norm = false`": {}, "`model.query_key_norm = true`": {"query_key_norm": True}},
    _values("activation", "relu", "gelu", "silu"),
    _values("tied_embeddings", "all", "target", "none"),
    {"`model.projection_bias = false`": {}, "`model.projection_bias = true`": {"projection_bias": True}},
    {
        "heads of width d_model / heads": {},
        "heads of other widths, `model.d_k` and `model.d_v`": {"d_k": 5, "d_v": 7},
    },
    {
        "`data.joint_vocabulary = true`": {},
        "`data.joint_vocabulary = false`": {"target_vocab_size": 16, "target_pad_id": 15, "tied_embeddings": "target"},
    },
)


def exports() -> Iterator[str]:
    """Yield the settings of a model that not every format can express."""
    yield f"| setting | {' | '.join(f'`{name}`' for name in exportable(ModelConfig()))} |"
    yield "|---|" + "---|" * len(exportable(ModelConfig()))
    for values in EXPORTED_SETTINGS:
        for row, sizes in values.items():
            reasons = exportable(ModelConfig(**sizes)).values()
            cells = ["no" if reason else "yes" for reason in reasons]
            if "no" in cells:
                yield f"| {row} | {' | '.join(cells)} |"


TABLES: dict[str, Callable[[], Iterator[str]]] = {
    "exports": exports,
    "ablations": ablations,
    "tasks": tasks,
}


def record(name: str) -> dict[str, Any]:
    """Read the measurements."""
    measured: dict[str, Any] = json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))
    return measured


def filled(page: str) -> str:
    """Fill a page with the tables of the records, and our files as they are."""

    def table(marker: re.Match[str]) -> str:
        return marker[1] + "\n".join(TABLES[marker[2]]()) + "\n" + marker[3]

    def file(marker: re.Match[str]) -> str:
        begin, name, part, end, notes = marker.groups()
        code = numbered(source_code(name, part), [long or short for long, short in _NOTE.findall(notes)])
        return f"{begin}```py\n{code}```\n{end}\n{notes}"

    return _FILE.sub(file, _TABLE.sub(table, page))


def source_code(name: str, part: str | None = None) -> str:
    """Return a file of ours, one class or function of it, or from one to another: `first..last`."""
    text = (SOURCE / name).read_text(encoding="utf-8")
    if part is None:
        return text
    first, _, last = part.partition("..")
    nodes = {str(getattr(node, "name", "")): node for node in ast.parse(text).body}
    end = nodes[last or first].end_lineno
    return "\n".join(text.splitlines()[nodes[first].lineno - 1 : end]) + "\n"


def numbered(code: str, notes: Sequence[str]) -> str:
    """Write the number of a note at the end of the first line of code that contains the note's code."""
    lines = code.splitlines()
    for number, about in zip(CIRCLED, notes, strict=False):
        line = next((index for index, line in enumerate(lines) if about in line), None)
        if line is None:
            raise SystemExit(f"a note is about `{about}`, which is in no line of the file beside it")
        lines[line] += f"  # {number}" if "  # " not in lines[line] else f" {number}"
        if len(lines[line]) > 120:
            raise SystemExit(f"the line of `{about}` has no room for its number: begin the note with another line")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for path in sorted(HERE.parent.rglob("*.md")):
        page = path.read_text(encoding="utf-8")
        if filled(page) != page:
            path.write_text(filled(page), encoding="utf-8")
            print(path)
