"""The form of all text that a model reads: how characters are composed, and no control characters.

`é` can be one character or an `e` and an accent; macOS and many PDFs write the second, most text has the first. A model
knows only the form it was trained on, so a bundle keeps it, and whatever comes in is put into it.
"""

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

from ..settings import Checked

_BLANKS = re.compile(r"[\t\n\v\f\r\x85\u2028\u2029]+")
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Normalization(Checked):
    """A form of text: `Normalization()(text)` is `text` in the form that training gives its own by default."""

    unicode: Literal["NFC", "NFKC", "none"] = "NFC"
    strip_control: bool = True  # tabs and line ends become a blank, other control characters go

    def __call__(self, text: str) -> str:
        """The text in this form; one that has it already is returned as it is."""
        if text.isascii() and text.isprintable():
            return text
        return self.composed(self.without_control(text))

    def without_control(self, text: str) -> str:
        """The text with a blank for tabs and line ends, and without other control characters, if that is wanted."""
        return _CONTROLS.sub("", _BLANKS.sub(" ", text)) if self.strip_control else text

    def composed(self, text: str) -> str:
        """The text in the Unicode form that is wanted."""
        return text if self.unicode == "none" else unicodedata.normalize(self.unicode, text)
