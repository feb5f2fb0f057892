"""The character map of a SentencePiece model, which replaces characters before a text is encoded.

The map consists of the size of a trie in bytes, the trie, and the replacements, each ended by a zero byte. The trie is
a double array as in Darts-clone. In each unit, bits 0 to 7 and 31 are the label; bit 8 says that a value follows; bits
10 to 30 are the offset of the children, shifted by 8 if bit 9 is set. The value of a key is the position of its
replacement.
"""

import struct
from collections.abc import Sequence

LONGEST_REPLACEMENT = 64  # bytes; the longest of Unicode's own compatibility mappings has 33


class CharacterMap:
    """Replaces characters as SentencePiece does: at every position, the longest key that matches.

    The tokenizers library takes the shortest key instead, and may drop a combining mark after it. Refuses, as a
    ValueError, a map that `check_character_map` refuses.
    """

    def __init__(self, content: bytes) -> None:
        check_character_map(content)
        self.content = content
        size = int.from_bytes(content[:4], "little")
        self._units: Sequence[int] = struct.unpack_from(f"<{size // 4}I", content, 4)
        self._replacements = content[4 + size :]
        self._changes_ascii = self._has_ascii_key()

    def __call__(self, text: str) -> str:
        """Apply all replacements to a text."""
        if not self._changes_ascii and text.isascii() and text.isprintable():
            return text
        content = text.encode()
        position = 0
        made = bytearray()
        while position < len(content):
            length, replacement = self._longest(content, position)
            if not length:  # no key matches: keep the character
                length = 1
                while position + length < len(content) and content[position + length] & 0xC0 == 0x80:
                    length += 1
                replacement = content[position : position + length]
            made += replacement
            position += length
        return made.decode(errors="replace")

    def _longest(self, content: bytes, start: int) -> tuple[int, bytes]:
        """Find the longest key at a position. Returns its length in bytes, or 0, and its replacement."""
        units = self._units
        node = _children(0, self._units[0])
        value = -1
        length = 0
        for position in range(start, len(content)):
            byte = content[position]
            node ^= byte
            unit = units[node]
            if unit & 0x800000FF != byte or not byte:
                break
            node = _children(node, unit)
            if unit & 256:
                value = units[node] & (2**31 - 1)
                length = position + 1 - start
        if not length:
            return 0, b""
        return length, self._replacements[value : self._replacements.find(b"\0", value) % (len(self._replacements) + 1)]

    def _has_ascii_key(self) -> bool:
        """Return True if some key consists of printable ASCII characters."""
        nodes = [_children(0, self._units[0])]
        seen = set[int]()
        while nodes:
            first = nodes.pop()
            if first in seen:  # the nodes of a damaged trie may form circles
                continue
            seen.add(first)
            for byte in range(32, 127):
                unit = self._units[first ^ byte]
                if unit & 0x800000FF == byte:
                    if unit & 256:
                        return True
                    nodes.append(_children(first ^ byte, unit))
        return False


def check_character_map(content: bytes) -> None:
    """Refuse, as a ValueError, a damaged trie and a replacement that is too long.

    A trie is damaged if it points outside itself or into the middle of a replacement.
    """
    size = int.from_bytes(content[:4], "little")
    if size % 1024 or not 0 < size <= len(content) - 4:
        raise ValueError("the trie of its character map has an impossible size")
    units = struct.unpack_from(f"<{size // 4}I", content, 4)
    replacements = content[4 + size :]
    replacements.decode()
    if (longest := max(map(len, replacements.split(b"\0")))) > LONGEST_REPLACEMENT:
        raise ValueError(f"a replacement of its character map has {longest:,} bytes, more than {LONGEST_REPLACEMENT}")
    for node, unit in enumerate(units):
        if unit >> 31:  # the unit is a value
            continue
        child = _children(node, unit)
        if child | 255 >= len(units):
            raise ValueError("the trie of its character map points out of it")
        value = units[child] & (2**31 - 1)
        if unit & 256 and (value >= len(replacements) or (value and replacements[value - 1])):
            raise ValueError("a replacement of its character map does not begin where one begins")


def _children(node: int, unit: int) -> int:
    return node ^ (unit >> 10 << ((unit & 512) >> 6))
