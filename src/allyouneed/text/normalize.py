"""Normalize all text that a model reads: put it into a Unicode normal form, and remove invisible characters.

`é` can be one character, or an `e` and an accent. macOS and many PDFs write two characters, most other text one. A
model only knows the form that it was trained on. So a bundle stores its normalization and applies it to all input.
"""

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self

from ..config.settings import Checked

if TYPE_CHECKING:
    from ..config import CleanConfig

_BLANKS = re.compile(r"[\t\n\v\f\r\x85\u2028\u2029]+")
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")
# Soft hyphens, spaces without width, direction marks, byte order marks, invisible signs of formulas and annotations.
_WITHOUT_WIDTH = r"[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
# Scripts whose letters change shape next to a joiner or non-joiner: Arabic, Syriac, and scripts of India and nearby.
_SHAPED = (
    r"[\u0600-\u061b\u061d-\u0dff\u0f00-\u109f\u1780-\u180d\u180f-\u18af\u1900-\u1cff\ua840-\uabff\ufb50-\ufdff\ufe70-\ufefc"
    r"\U00010a00-\U00011fff\U0001e900-\U0001e95f]"
)
_PICTURE = r"[\u2190-\u2bff\U0001f000-\U0001faff"  # a joiner combines several emoji into one
# Matches a joiner or non-joiner that has no effect.
_JOINERS = rf"(?<!{_SHAPED})\u200c|(?<!{_SHAPED})(?:(?<!{_PICTURE}\ufe0f])\u200d|\u200d(?!{_PICTURE}]))"
UNSEEN = re.compile(f"{_WITHOUT_WIDTH}|{_JOINERS}")


def without_unseen(text: str) -> str:
    """Remove characters without width, such as soft hyphens. Joiners stay where a script needs them."""
    return text if text.isascii() else UNSEEN.sub("", text)


@dataclass(frozen=True, kw_only=True, slots=True)
class Normalization(Checked):
    """A way to normalize text. By default, `Normalization()(text)` is what training does."""

    unicode: Literal["NFC", "NFKC", "none"] = "NFC"
    strip_control: bool = True  # turns tabs and line ends into spaces, and removes control and invisible characters

    @classmethod
    def from_config(cls, clean: "CleanConfig") -> Self:
        """Make the normalization that `clean` sets."""
        return cls(unicode=clean.unicode, strip_control=clean.strip_control)

    def __call__(self, text: str) -> str:
        """Normalize a text. A text that is already normalized does not change."""
        if text.isascii() and text.isprintable():
            return text
        return self.composed(self.without_control(text))

    def without_control(self, text: str) -> str:
        """Turn tabs and line ends into spaces and drop other invisible characters, if `strip_control` is set."""
        return without_unseen(_CONTROLS.sub("", _BLANKS.sub(" ", text))) if self.strip_control else text

    def composed(self, text: str) -> str:
        """Put a text into the Unicode normal form `unicode`."""
        return text if self.unicode == "none" else unicodedata.normalize(self.unicode, text)
