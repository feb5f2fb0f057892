"""Which kernel computes what: every threshold of this room, with how it was measured.

All were measured on two cores of an Intel Xeon (AVX-512, VNNI, AMX) with torch 2.13; docs/measured/decoding-speed.md
has the tables. On another processor they may be off by some factor: that costs time, and changes no result but by
rounding.
"""

INT8_MIN_PROJECTION = 1_000_000
"""Weights of the projection from which "auto" means int8.

In a smaller model PyTorch's overhead of each call outweighs the time of the product, so int8 gains nothing.
"""

FBGEMM_MAX_MULTIPLICATIONS = 8_500_000
"""Multiplications of one int8 product up to which FBGEMM is faster than oneDNN.

The crossing point of both, timed on products of 1 to 128 rows with 256 → 256 to 512 → 37,000 weights.
"""

COMPILED_FLOAT32_MAX_MULTIPLICATIONS = 20_000_000
"""Multiplications of one float32 step, times the threads, up to which the compiled step is faster than PyTorch's.

The compiled step saves the overhead of some sixty calls; above this number the library's product is faster by more.
"""


def compiled_float32_pays(*, multiplications: int, sentences: int, threads: int) -> bool:
    """Whether the compiled decoder computes a float32 step: for one sentence, whose products are small."""
    return sentences == 1 and multiplications * threads <= COMPILED_FLOAT32_MAX_MULTIPLICATIONS


def fbgemm_pays(multiplications: int) -> bool:
    """Whether FBGEMM computes an int8 product; otherwise oneDNN does. Both give the same result to the bit."""
    return multiplications <= FBGEMM_MAX_MULTIPLICATIONS


def int8_pays(projection_weights: int) -> bool:
    """Whether a model with a projection of so many weights is faster in int8."""
    return projection_weights >= INT8_MIN_PROJECTION
