"""Curves as SVG: a few numbers over the updates of a run, drawn without any library."""

from collections.abc import Mapping, Sequence
from html import escape
from math import floor, isfinite, log10

Points = Sequence[tuple[float, float]]

WIDTH, HEIGHT = 420, 230
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 12, 26


def draw_curves(title: str, curves: Mapping[str, Points]) -> str:
    """A figure of some curves with their legend; colours come from the page's style. Points not finite are left out."""
    finite = {name: [(x, y) for x, y in points if isfinite(y)] for name, points in curves.items()}
    finite = {name: points for name, points in finite.items() if points}
    if not finite:
        return ""
    xs = [x for points in finite.values() for x, _ in points]
    ys = [y for points in finite.values() for _, y in points]
    x_ticks, y_ticks = ticks(0, max(xs), 4), ticks(min(ys), max(ys), 4)
    low, high = y_ticks[0], y_ticks[-1]

    def to_pixels(x: float, y: float) -> tuple[float, float]:
        right = (x / (max(xs) or 1)) * (WIDTH - LEFT - RIGHT)
        down = (high - y) / (high - low) * (HEIGHT - TOP - BOTTOM)
        return round(LEFT + right, 1), round(TOP + down, 1)

    parts = []
    for tick in y_ticks:
        _, y = to_pixels(0, tick)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{tick:g}</text>')
    for tick in x_ticks:
        if tick <= max(xs):
            x, _ = to_pixels(tick, low)
            anchor = "end" if x > WIDTH - 30 else "middle"
            parts.append(f'<text x="{x}" y="{HEIGHT - 8}" text-anchor="{anchor}">{tick:,.10g}</text>')
    for number, points in enumerate(finite.values(), start=1):
        path = " ".join(f"{x},{y}" for x, y in (to_pixels(*point) for point in points))
        parts.append(f'<polyline class="line c{number}" points="{path}"/>')
        x, y = to_pixels(*points[-1])
        parts.append(f'<circle class="dot c{number}" cx="{x}" cy="{y}" r="3"/>')
    legend = "".join(
        f'<span class="c{number}">{escape(name)} <b>{points[-1][1]:.4g}</b></span>'
        for number, (name, points) in enumerate(finite.items(), start=1)
    )
    return (
        f"<figure><figcaption><b>{escape(title)}</b>{legend}</figcaption>"
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)} over updates">'
        f"{''.join(parts)}</svg></figure>"
    )


def ticks(low: float, high: float, count: int) -> list[float]:
    """About `count` round numbers from at most `low` to at least `high`."""
    if high <= low:
        high = low + (abs(low) or 1.0)
    step = _round_step((high - low) / count)
    first = floor(low / step)
    values = [first * step]
    while values[-1] < high - step * 1e-9:
        values.append((first + len(values)) * step)
    return [float(f"{tick:.10g}") for tick in values]


def _round_step(size: float) -> float:
    power = 10.0 ** floor(log10(size))
    return next((factor * power for factor in (1, 2, 5) if factor * power >= size), 10 * power)
