"""Which characters words consist of, where a script puts blanks between words."""

import re
import unicodedata
from functools import cache

# Scripts that put no blanks between words: a word of them may touch its neighbours.
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")
_PLANES = 0x20000  # the others have rare Chinese characters, and no letters of other scripts


def is_in_word(character: str) -> bool:
    """Whether a character is a letter, mark or digit of a script that puts blanks between words."""
    category = unicodedata.category(character)
    return category[0] in "LMN" and not unicodedata.name(character, "").startswith(_UNSPACED)


@cache
def in_word_class() -> str:
    """The same characters, and the underscore, as a class of a regular expression."""
    inside = "".join("x" if is_in_word(chr(code)) else " " for code in range(_PLANES))
    ranges = (f"{chr(match.start())}-{chr(match.end() - 1)}" for match in re.finditer("x+", inside))
    return f"[{''.join(ranges)}_]"
