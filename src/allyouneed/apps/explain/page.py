"""The record of a translation as one HTML page that works offline, or inside a notebook.

The page's parts are in web/.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template

from ...machine.checksums import policy_hash
from ...machine.files import to_json, write_whole
from ...translator import Translator
from .claims import Claim
from .comparison import compare_traces
from .component import COMPONENT, explanation_style, read_component_file
from .page_data import build_page_data
from .trace import Trace, trace_translation

PAGE = (*COMPONENT, "compare.js", "start.js")
FRAME_HEIGHT = 720  # pixels


@dataclass(frozen=True, slots=True)
class Explanation:
    """A translation and its page. A notebook shows the page inline; `save` writes it to a file."""

    trace: Trace
    page: str

    def save(self, path: str | Path) -> None:
        """Write the page, which needs no network and no other file. Replaces an existing file."""
        write_whole(Path(path), self.page)

    def __repr__(self) -> str:
        return f"Explanation({self.trace.whole_text!r} → {self.trace.output!r})"

    def _repr_html_(self) -> str:
        # A separate frame keeps the page's style and script apart from the notebook's.
        return (
            f'<iframe title="Explanation of a translation" sandbox="allow-scripts" srcdoc="{escape(self.page)}" '
            f'style="width:100%;height:{FRAME_HEIGHT}px;border:1px solid #8888"></iframe>'
        )


def explain(translator: Translator, text: str) -> Explanation:
    """Translate a text as `translator` does, and explain how, as the page of `allyouneed explain` does.

    Refuses an empty text, and a text that `translator` refuses.
    """
    trace = trace_translation(translator, text)
    return Explanation(trace, build_page(trace, translator))


def build_page(trace: Trace, translator: Translator, claims: Sequence[Claim] = ()) -> str:
    """Build the page of a trace as HTML. `translator` made the trace; `claims` describe its heads on other texts."""
    data = build_page_data(trace, translator, claims)
    return _build(f"{data['text']} → {data['output']}", data)


def build_page_of_two(names: Sequence[str], traces: Sequence[Trace], translators: Sequence[Translator]) -> str:
    """Build the page of two translations of a text, by two translators with these names."""
    both = [build_page_data(trace, translator) for trace, translator in zip(traces, translators, strict=True)]
    data = {"names": names, "traces": both, **compare_traces(*traces)}
    return _build(f"{traces[0].whole_text}: {names[0]} and {names[1]}", data)


def _build(title: str, data: object) -> str:
    style, script = read_component_file("page.css") + explanation_style(), "\n".join(map(read_component_file, PAGE))
    return Template(read_component_file("explain.html")).substitute(
        title=escape(title),
        style=style,
        script=script,
        style_hash=policy_hash(style),
        script_hash=policy_hash(script),
        data=_for_script(data),
    )


def _for_script(data: object) -> str:
    """Write JSON for a script element, escaped so that it cannot end the element."""
    return to_json(data, separators=(",", ":")).replace("<", "\\u003c")
