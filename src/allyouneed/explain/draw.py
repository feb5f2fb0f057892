"""Pictures of what was recorded."""

import io
from collections.abc import Sequence
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from torch import Tensor

from ..errors import InputError
from ..files import write_whole


def draw_attention(
    weights: Tensor, *, source: Sequence[str], target: Sequence[str], path: Path, title: str = ""
) -> None:
    """One square a head: which piece of the source each piece of the target looks at. Writes a PNG.

    Shapes: weights (H, T, S), for S pieces of the source and T of the target.
    """
    heads, rows, columns = weights.shape
    if (rows, columns) != (len(target), len(source)):
        raise InputError(
            f"weights of shape {tuple(weights.shape)} need {rows} target and {columns} source pieces; "
            f"got {len(target)} and {len(source)}"
        )
    wide = min(heads, 4)
    tall = -(-heads // wide)
    figure = Figure(figsize=(0.28 * columns * wide + 1.2, 0.28 * rows * tall + 0.5 * tall + 0.8), layout="constrained")
    for head, axes in enumerate(figure.subplots(tall, wide, squeeze=False).flat):
        if head >= heads:
            axes.axis("off")
            continue
        image = axes.imshow(weights[head].float().cpu().numpy(), cmap="viridis", vmin=0, vmax=1)
        axes.set_title(f"head {head + 1}", fontsize=10)
        axes.set_xticks(range(columns), source, rotation=90, fontsize=8, family="monospace")
        axes.set_yticks(range(rows), target, fontsize=8, family="monospace")
        axes.tick_params(length=0)
    figure.colorbar(image, ax=figure.axes, shrink=0.6, label="weight")
    figure.suptitle(title, fontsize=11)
    picture = io.BytesIO()
    FigureCanvasAgg(figure).print_png(picture)  # type: ignore[no-untyped-call]
    write_whole(path, picture.getvalue())
