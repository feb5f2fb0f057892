"""The common parts of all figures, and the figure of attention weights."""

import io
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from torch import Tensor

from ...errors import InputError
from ...machine.files import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which colour-blind readers can distinguish, on light and dark pages.
BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#E69F00", "#009E73", "#CC79A7"
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, "#56B4E9", "#D55E00")
SHARES = "cividis"  # for values from 0 to 1; made for the colour-blind
SIGNED = "PuOr"
MONOSPACE = ("DejaVu Sans Mono", "DejaVu Sans", "monospace")  # characters missing in one font are taken from the next

_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "allyouneed",  # makes the same picture the same file
    "font.size": 10,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.monospace": ["DejaVu Sans Mono"],
}

_BY_ITSELF = "<style>svg{color:#222}@media (prefers-color-scheme:dark){svg{color:#ddd}}</style>"


def new_figure(width: float, height: float) -> "Figure":
    """Make an empty figure in the common style; width and height in inches."""
    import matplotlib as mpl  # imported here, because a page and the server draw without it
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        return Figure(figsize=(width, height), layout="constrained")


def to_svg(figure: "Figure") -> str:
    """Write a figure as SVG.

    Black becomes the text colour of the page, so that the figure fits light and dark pages.
    """
    import matplotlib as mpl

    written = io.StringIO()
    _without_frames(figure)
    with mpl.rc_context(_STYLE):
        figure.patch.set_alpha(0)
        for axes in figure.axes:
            axes.patch.set_alpha(0)
        _write(figure, written, format="svg", metadata={"Date": None, "Creator": None})  # the reader chooses the fonts
    svg = written.getvalue()
    svg = svg[svg.index("<svg") :]
    # Text without a fill is black in SVG; setting a fill on the whole drawing changes that too.
    svg = re.sub(r"(stroke|fill): ?#000000", r"\1: currentColor", svg)
    return compact(svg.replace("<svg ", '<svg fill="currentColor" class="drawing" ', 1))


def compact(svg: str) -> str:
    """Remove parts of an SVG that draw nothing, and round coordinates to a hundredth of a point."""
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->|\s*\n\s*(?=<)|(?<=>)\n\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\.\d\d)\d+", r"\1", tag[0]), svg)
    used = set(re.findall(r"#(\w+)", svg))
    svg = re.sub(r' id="(\w+)"', lambda name: name[0] if name[1] in used else "", svg)
    return re.sub(r"<g/>|(?<= ) +", "", svg)


def _without_frames(figure: "Figure") -> None:
    for axes in figure.axes:
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)


def _write(figure: "Figure", file: IO[Any], **options: Any) -> bool:
    """Write a figure without warnings about fonts. Returns True if Matplotlib's fonts have all its characters."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figure.savefig(file, **options)
    others = [one for one in caught if not re.match(r"Glyph .* missing from", str(one.message), re.DOTALL)]
    for one in others:
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    return len(others) == len(caught)


def save(figure: "Figure", path: Path) -> bool:
    """Write a figure as SVG or PNG, by the ending of the path.

    Returns False if a PNG has boxes for missing characters.
    """
    if path.suffix == ".svg":
        svg = to_svg(figure)
        start = svg.index(">", svg.index("<svg")) + 1
        write_whole(path, svg[:start] + _BY_ITSELF + svg[start:])
        return True
    _without_frames(figure)
    picture = io.BytesIO()
    has_all_letters = _write(figure, picture, format="png")
    write_whole(path, picture.getvalue())
    return has_all_letters


def draw_attention(
    weights: Tensor, *, source: Sequence[str], target: Sequence[str], path: Path, title: str = ""
) -> None:
    """Draw the attention weights of every head to a PNG or SVG file.

    Rows are queries, and columns are keys. Shapes: weights (H, T, S), for T target tokens and S source tokens.
    """
    _, rows, columns = weights.shape
    if (rows, columns) != (len(target), len(source)):
        raise InputError(
            f"weights of shape {tuple(weights.shape)} need {rows} target and {columns} source tokens; "
            f"got {len(target)} and {len(source)}"
        )
    if not save(attention_figure(weights, source=source, target=target, title=title), path):
        warnings.warn(f"{path.name} has boxes for letters that the fonts lack; write an SVG file instead", stacklevel=2)


def attention_figure(weights: Tensor, *, source: Sequence[str], target: Sequence[str], title: str = "") -> "Figure":
    """Draw the figure of `draw_attention`."""
    heads, rows, columns = weights.shape
    wide = min(heads, 4 if columns <= 11 else 2)
    tall = -(-heads // wide)
    longest = 0.09 * max(map(len, [*source, *target]))
    figure = new_figure(max(4.0, 0.18 * columns * wide + longest + 1.4), (0.18 * rows + longest + 0.4) * tall + 0.8)
    panels = figure.subplots(tall, wide, squeeze=False, sharey=True)
    for head, axes in enumerate(panels.flat):
        if head >= heads:
            axes.axis("off")
            continue
        image = matrix(axes, weights[head], low=0, high=1, colours=SHARES)
        axes.set_title(f"head {head + 1}", fontsize=10)
        label_columns(axes, source)
        axes.set_yticks(range(rows), target, fontsize=9, family=MONOSPACE, parse_math=False)
    figure.colorbar(image, ax=panels, shrink=0.6, label="weight")
    if title:
        figure.suptitle(title, fontsize=11, parse_math=False, wrap=True)
    figure.supxlabel("key (is looked at)", fontsize=10)
    figure.supylabel("query (asks)", fontsize=10)
    return figure


def label_columns(axes: "Axes", pieces: Sequence[str]) -> None:
    """Write a token under each column. Short tokens are upright, longer ones are turned."""
    axes.set_xticks(range(len(pieces)), pieces, fontsize=9, family=MONOSPACE, parse_math=False)
    for label, piece in zip(axes.get_xticklabels(), pieces, strict=True):
        label.set_rotation(turned(piece))


def turned(piece: str) -> int:
    """Return by how many degrees a token must be rotated to fit under its column."""
    return 90 if len(piece) > 2 else 0


def matrix(axes: "Axes", values: Tensor, *, low: float, high: float, colours: str) -> Any:
    """Draw a matrix as coloured squares, without tick marks and frame."""
    image = axes.imshow(
        values.float().cpu().numpy(), cmap=colours, vmin=low, vmax=high, aspect="auto", interpolation="nearest"
    )
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return image
