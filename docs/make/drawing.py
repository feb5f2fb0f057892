"""Boxes, arrows and small matrices of numbers as SVG, for the pictures of the walk that are no plots."""

from collections.abc import Sequence
from html import escape

BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#E69F00", "#009E73", "#CC79A7"  # as in allyouneed.apps.explain.draw
CELL_WIDTH, CELL_HEIGHT = 46, 26
_STYLE = """<style>
.drawing{color:#222;font:13px "DejaVu Sans",sans-serif}
@media (prefers-color-scheme:dark){.drawing{color:#ddd}}
.drawing text{fill:currentColor}
.drawing .small{font-size:12px}
.drawing .code{font-family:"DejaVu Sans Mono",monospace}
.drawing a:hover rect,.drawing a:focus rect{stroke-width:2.5}
</style>"""
_HEAD = """<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
<path d="M0 0L8 4L0 8z" fill="currentColor"/></marker></defs>"""


class Drawing:
    """A picture under construction. Coordinates are in pixels, from the upper left corner."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.width, self.height, self.title = width, height, title
        self._parts: list[str] = []
        self.boxes: list[tuple[float, float, float, float]] = []  # left, top, right and bottom, for tests
        self.texts: list[tuple[float, float, float, float]] = []  # about the same of texts
        self.lines: list[tuple[tuple[float, float], ...]] = []

    def box(
        self, x: float, y: float, width: float, height: float, text: str = "", *, colour: str = "", strong: bool = False
    ) -> None:
        """Draw a rectangle with one or more lines of text in its middle; a `strong` one is emphasized."""
        self.boxes.append((x, y, x + width, y + height))
        fill = f'fill="{colour}" fill-opacity="{0.55 if strong else 0.16}"' if colour else 'fill="none"'
        line = f'stroke="currentColor" stroke-width="{2.5 if strong else 1}"'
        self._parts.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4" {fill} {line}/>')
        lines = text.split("\n") if text else []
        for index, part in enumerate(lines):
            self.text(x + width / 2, y + height / 2 + 16 * (index - (len(lines) - 1) / 2), part, bold=strong)

    def text(
        self, x: float, y: float, text: str, *, anchor: str = "middle", style: str = "", bold: bool = False
    ) -> None:
        """Write text whose vertical middle is at y."""
        width = (8 if style == "code" or bold else 7) * len(text)
        left = x - width * {"start": 0, "middle": 0.5, "end": 1}[anchor]
        self.texts.append((left, y - 6, left + width, y + 6))
        bold_style = ' font-weight="bold"' if bold else ""
        name = f' class="{style}"' if style else ""
        self._parts.append(
            f'<text x="{x:g}" y="{y:g}" dy=".35em" text-anchor="{anchor}"{name}{bold_style}>{escape(text)}</text>'
        )

    def arrow(self, *points: tuple[float, float], label: str = "") -> None:
        """Draw a line through the points with a head at its end, and a label above the middle of a horizontal line."""
        self.lines.append(points)
        path = "M" + "L".join(f"{x:g} {y:g}" for x, y in points)
        self._parts.append(f'<path d="{path}" fill="none" stroke="currentColor" marker-end="url(#head)"/>')
        if label:
            (x, y), (to_x, to_y) = points[0], points[-1]
            self.text((x + to_x) / 2, (y + to_y) / 2 - 12, label, style="small")

    def numbers(
        self,
        x: float,
        y: float,
        rows: Sequence[Sequence[float | str]],
        *,
        names: Sequence[str] = (),
        title: str = "",
        colour: str = BLUE,
        strong_rows: Sequence[int] = (),
        digits: int = 2,
    ) -> tuple[float, float]:
        """Draw a matrix with names of its rows and a title. Returns the x of its right side and the y of its middle."""
        width = CELL_WIDTH * len(rows[0])
        if title:
            self.text(x + width / 2, y - 12, title, style="small")
        for index, row in enumerate(rows):
            top = y + CELL_HEIGHT * index
            if names:
                self.text(x - 8, top + CELL_HEIGHT / 2, names[index], anchor="end", style="code")
            for column, value in enumerate(row):
                label = value if isinstance(value, str) else f"{value + 0.0:.{digits}f}".replace("-", "−")
                self.box(x + CELL_WIDTH * column, top, CELL_WIDTH, CELL_HEIGHT, "", colour=colour)
                middle = x + CELL_WIDTH * (column + 0.5)
                self.text(middle, top + CELL_HEIGHT / 2, label, style="small", bold=index in strong_rows)
        return x + width, y + CELL_HEIGHT * len(rows) / 2

    def open_link(self, target: str, name: str) -> None:
        """Link everything drawn from here to `close_link` to a page; Tab reaches the first of several boxes."""
        repeated = any(part.startswith(f'<a href="{escape(target)}"') for part in self._parts)
        tab = ' tabindex="-1"' if repeated else ""
        self._parts.append(f'<a href="{escape(target)}" aria-label="{escape(name)}"{tab}>')

    def close_link(self) -> None:
        """Close a link; see `open_link`."""
        self._parts.append("</a>")

    def svg(self) -> str:
        """Return the whole picture."""
        size = f'viewBox="0 0 {self.width} {self.height}" width="{self.width}" height="{self.height}"'
        body = "\n".join(self._parts)
        role = "group" if any(part.startswith("<a ") for part in self._parts) else "img"  # an image hides its links
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="drawing" role="{role}" {size}>\n'
            f"<title>{escape(self.title)}</title>\n{_STYLE}\n{_HEAD}\n{body}\n</svg>\n"
        )
