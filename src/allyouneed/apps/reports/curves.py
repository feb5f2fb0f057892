"""Draw curves of a run's numbers over its updates, as SVG, without any library."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, isfinite, log10

Points = Sequence[tuple[float, float]]

WIDTH, HEIGHT = 440, 270
LEFT, RIGHT, TOP, BOTTOM = 56, 14, 34, 44
MOST_POINTS = 400  # in a curve; if there are more, neighbours are averaged
ROUNDING = 1e-9  # values that differ by less, such as means of equal values, count as equal


@dataclass(frozen=True, slots=True)
class Curve:
    """A line in a figure. `number` chooses its colour, and `dashed` its stroke."""

    name: str
    points: Points
    number: int = 1
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Axis:
    """The conversion from numbers to pixels: the range, its ticks, and whether the axis is logarithmic."""

    ticks: tuple[float, ...]
    low: float
    high: float
    start: float  # pixel of `low`
    end: float  # pixel of `high`
    logarithmic: bool = False

    def to_pixel(self, value: float) -> float:
        """Return the pixel of a value. Values beyond the ends are drawn at the ends."""
        scale: Callable[[float], float] = log10 if self.logarithmic else float
        value = min(max(value, self.low), self.high)
        share = (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low))
        return round(self.start + share * (self.end - self.start), 1)


def draw_curves(title: str, curves: Sequence[Curve], *, y_title: str, log: bool = False, warmup: int = 0) -> str:
    """Draw curves with their legend, in the colours of the page's style. Points that are not finite are omitted.

    The page shows one of two drawings: with linear axes, or with a logarithmic axis of updates. In the second drawing,
    the vertical axis is also logarithmic if `log` is set and all values are positive. The first `warmup` updates are
    shaded.
    """
    curves = [_finite(curve) for curve in curves]
    curves = [curve for curve in curves if curve.points]
    if not curves:
        return ""
    legend = "".join(
        f'<span class="c{curve.number}{" dashed" * curve.dashed}">{escape(curve.name)} '
        f"<b>{round(curve.points[-1][1], 4):.4g}</b></span>"
        for curve in curves
    )
    drawings = [
        _draw(title, curves, y_title, log=log and logarithmic, log_x=logarithmic, warmup=warmup)
        for logarithmic in (False, True)
    ]
    return f"<figure><figcaption><b>{escape(title)}</b>{legend}</figcaption>{''.join(drawings)}</figure>"


def _draw(title: str, curves: Sequence[Curve], y_title: str, *, log: bool, log_x: bool, warmup: int) -> str:
    edge = WIDTH - RIGHT
    xs = [x for curve in curves for x, _ in curve.points]
    x_axis = _x_axis(xs, edge, logarithmic=log_x)
    parts = []
    if 0 < warmup < x_axis.high:
        start, end = x_axis.start, x_axis.to_pixel(warmup)
        parts.append(
            f'<rect class="band" x="{start}" y="{TOP}" width="{end - start:.1f}" height="{HEIGHT - TOP - BOTTOM}"/>'
        )
        anchor, x = ("end", end - 4) if end - start > 70 else ("start", end + 4)
        parts.append(f'<text x="{x}" y="{HEIGHT - BOTTOM - 6}" text-anchor="{anchor}">warmup</text>')
    y_axis = _y_axis([y for curve in curves for _, y in curve.points], logarithmic=log)
    for tick in y_axis.ticks:
        y = y_axis.to_pixel(tick)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{edge}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{tick:g}</text>')
    y_title += " (log)" * y_axis.logarithmic
    parts.append(f'<text class="axis" x="4" y="16" text-anchor="start">{escape(y_title)}</text>')
    for tick in x_axis.ticks:
        x = x_axis.to_pixel(tick)
        anchor = "end" if x > WIDTH - 30 else "middle"
        parts.append(f'<text x="{x}" y="{HEIGHT - BOTTOM + 17}" text-anchor="{anchor}">{tick:,.10g}</text>')
    x_title = "updates (log)" if log_x else "updates"
    parts.append(f'<text class="axis" x="{(LEFT + edge) / 2}" y="{HEIGHT - 6}" text-anchor="middle">{x_title}</text>')
    for curve in curves:
        parts.append(_line(curve, x_axis, y_axis))
    names = ", ".join(curve.name for curve in curves)
    return (
        f'<svg class="{"logarithmic" if log_x else "linear"}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title)} over {x_title}: {escape(names)}">{"".join(parts)}</svg>'
    )


def _line(curve: Curve, x_axis: Axis, y_axis: Axis) -> str:
    pixels = [(x_axis.to_pixel(x), y_axis.to_pixel(y)) for x, y in curve.points]
    path = " ".join(f"{x},{y}" for x, y in pixels)
    x, y = pixels[-1]
    style = f"c{curve.number}" + " dashed" * curve.dashed
    return f'<polyline class="line {style}" points="{path}"/><circle class="dot {style}" cx="{x}" cy="{y}" r="3"/>'


def _finite(curve: Curve) -> Curve:
    points = [(x, y) for x, y in curve.points if isfinite(y)]
    size = ceil(len(points) / MOST_POINTS) or 1
    parts = [points[i : i + size] for i in range(0, len(points), size)] if size > 1 else []
    thin = [(part[-1][0], sum(y for _, y in part) / len(part)) for part in parts] if parts else points
    return Curve(curve.name, thin, curve.number, curve.dashed)


def _x_axis(xs: Sequence[float], edge: float, *, logarithmic: bool) -> Axis:
    high = max(xs)
    if logarithmic and (low := max(1.0, min(xs))) < high:
        return Axis(tuple(log_ticks(low, high)), low, high, LEFT, edge, logarithmic=True)
    high = high or 1.0
    return Axis(tuple(tick for tick in ticks(0, high, 4) if tick <= high), 0, high, LEFT, edge)


def _y_axis(values: Sequence[float], *, logarithmic: bool) -> Axis:
    low, high = min(values), max(values)
    if logarithmic and 0 < low * (1 + ROUNDING) < high:
        low, high = low / (high / low) ** 0.05, high * (high / low) ** 0.05
        return Axis(tuple(log_ticks(low, high)), low, high, HEIGHT - BOTTOM, TOP, logarithmic=True)
    marks = ticks(low, high, 4)
    return Axis(tuple(marks), marks[0], marks[-1], HEIGHT - BOTTOM, TOP)


def ticks(low: float, high: float, count: int) -> list[float]:
    """Return about `count` round numbers, from `low` or below to `high` or above."""
    if high - low <= 1e-8 * abs(low):  # equal except for rounding, such as a BLEU of 100
        high = low + (abs(low) or 1.0)
    step = _round_step((high - low) / count)
    first = floor(low / step)
    values = [first * step]
    while values[-1] < high - step * 1e-9:
        values.append((first + len(values)) * step)
    return [float(f"{tick:.10g}") for tick in values]


def log_ticks(low: float, high: float) -> list[float]:
    """Return round numbers between two positive numbers: powers of ten, or also their 2- and 5-fold, or even steps."""
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    for factors in ((1,), (1, 2, 5)):
        marks = [float(f"{factor}e{power}") for power in powers for factor in factors]
        marks = [mark for mark in marks if low <= mark <= high]
        if len(marks) >= 3:
            return marks[:: ceil(len(marks) / 6)]
    return [mark for mark in ticks(low, high, 4) if low <= mark <= high]


def _round_step(size: float) -> float:
    power = 10.0 ** floor(log10(size))
    return next((factor * power for factor in (1, 2, 5) if factor * power >= size), 10 * power)
