"""What a message says whatever its words: the numbers in it."""

import re


def numbers_in(text: str) -> list[float]:
    """Return the numbers of a text in their order, such as [5, 0.5, 12345] for "5 updates; rate 0.5, 12,345 tokens"."""
    return [float(number.replace(",", "")) for number in re.findall(r"(?<!\w)\d+(?:,\d{3})*(?:\.\d+)?", text)]
