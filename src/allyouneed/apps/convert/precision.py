"""The precisions of exported weights."""

from typing import Literal

ExportPrecision = Literal["float32", "float16", "int8"]
