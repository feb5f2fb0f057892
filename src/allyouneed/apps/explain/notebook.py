"""`explain` for notebooks: a text is translated, and the page that explains it is shown where it is called."""

from dataclasses import dataclass
from html import escape
from pathlib import Path

from ...files import write_whole
from ...translator import Translator
from .page import build_page
from .trace import Trace, trace_translation

FRAME_HEIGHT = 720  # pixels


@dataclass(frozen=True, slots=True)
class Explanation:
    """A translation and its page. A notebook shows it inline; `save` writes the page to a file."""

    trace: Trace
    page: str

    def save(self, path: str | Path) -> None:
        """Write the page, which needs no network and no other file. Replaces an existing file."""
        write_whole(Path(path), self.page)

    def __repr__(self) -> str:
        return f"Explanation({self.trace.whole_text!r} → {self.trace.output!r})"

    def _repr_html_(self) -> str:
        # A frame of its own keeps the page's style and script apart from the notebook's.
        return (
            f'<iframe title="Explanation of a translation" sandbox="allow-scripts" srcdoc="{escape(self.page)}" '
            f'style="width:100%;height:{FRAME_HEIGHT}px;border:1px solid #8888"></iframe>'
        )


def explain(translator: Translator, text: str) -> Explanation:
    """Translate a text as `translator` does, and explain how, as the page of `allyouneed explain` does.

    Refuses an empty text, and what `translator` refuses.
    """
    trace = trace_translation(translator, text)
    return Explanation(trace, build_page(trace, translator))
