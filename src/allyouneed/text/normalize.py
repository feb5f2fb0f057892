"""The normalization of all text that a model reads: a Unicode normal form, and no control characters.

`é` can be one character or an `e` and an accent; macOS and many PDFs write the second, most text has the first. A model
knows only the form it was trained on, so a bundle stores its normalization, and all input is normalized in this way.
"""

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal, Self

from ..config import CleanConfig
from ..settings import Checked

_BLANKS = re.compile(r"[\t\n\v\f\r\x85\u2028\u2029]+")
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Normalization(Checked):
    """A normalization of text: `Normalization()(text)` is `text` as training normalizes it by default."""

    unicode: Literal["NFC", "NFKC", "none"] = "NFC"
    strip_control: bool = True  # tabs and line ends become spaces, other control characters are removed

    @classmethod
    def from_config(cls, clean: CleanConfig) -> Self:
        """The normalization that `clean` sets."""
        return cls(unicode=clean.unicode, strip_control=clean.strip_control)

    def __call__(self, text: str) -> str:
        """The text, normalized; text that is normalized already is returned unchanged."""
        if text.isascii() and text.isprintable():
            return text
        return self.composed(self.without_control(text))

    def without_control(self, text: str) -> str:
        """With `strip_control`, the text with spaces for tabs and line ends and without other control characters."""
        return _CONTROLS.sub("", _BLANKS.sub(" ", text)) if self.strip_control else text

    def composed(self, text: str) -> str:
        """The text in the Unicode normal form `unicode`."""
        return text if self.unicode == "none" else unicodedata.normalize(self.unicode, text)
