"""Round numbers of rows, so that batches of many lengths have products of few shapes.

On a CPU, oneDNN generates machine code for every new shape of a product in bfloat16. That takes about 4 ms, longer than
most products of a small model.
"""


def round_up(rows: int) -> int:
    """The next multiple of 16, and of an eighth of the largest power of two that is not above `rows`."""
    step = _step(rows)
    return -(-rows // step) * step


def round_down(rows: int) -> int:
    """The largest such number that is not above `rows`; `rows` itself if there is none."""
    return rows // _step(rows) * _step(rows) or rows


def _step(rows: int) -> int:
    return max(16, 1 << max(0, rows.bit_length() - 4))
