"""Translate regular expressions from Python to JavaScript, so that a page reads texts with the same patterns."""

import re
from binascii import crc32

_TOKEN = re.compile(
    r"""(?P<class>\[\^?\]?(?:\\.|[^\]\\])*\])
    | (?P<escape>\\(?:U[\da-f]{8}|.))
    | (?P<opening>\((?:\?(?::|<?[=!]))?)
    | (?P<closing>\))
    | (?P<repeats>[*+?]|\{\d+(?:,\d*)?\})(?P<how>[+?]?)
    | (?P<dot>\.)
    | .""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:U[\da-f]{8}|.)", re.IGNORECASE | re.DOTALL)
_BLANK = r"\p{White_Space}\x1c-\x1f"  # str.isspace
_WORD = r"\p{L}\p{N}_"  # str.isalnum, and the underscore
_INSIDE = {"w": _WORD, "d": r"\p{Nd}", "s": _BLANK}  # inside a character class
_LETTERS = r"\p{L}\p{Nl}\p{No}"  # `\w` without digits and the underscore
_KEPT = frozenset(r"^$\.*+?()[]{}|/-")  # characters that JavaScript allows after a backslash


def to_javascript(pattern: str) -> str:
    """Translate a Python pattern to JavaScript, for a regular expression with the flag `u`.

    JavaScript has no possessive quantifiers, and greedy quantifiers would take quadratic time. A lookahead is never
    entered again once it has matched. So a possessive quantifier becomes a lookahead that captures its match, followed
    by a reference to the capture.
    """
    parts: list[str] = []  # so far; a quantifier repeats the last part
    groups: list[int] = []  # where the open groups began
    name = f"p{crc32(pattern.encode()):x}_"  # patterns may be joined, so their group names must differ
    for match in _TOKEN.finditer(pattern):
        match match.lastgroup:
            case "opening":
                groups.append(len(parts))
                parts.append(match[0])
            case "closing":
                first = groups.pop()
                parts[first:] = ["".join(parts[first:]) + ")"]
            case "how" if match["how"] == "+":
                noted = f"{name}{match.start()}"
                parts[-1] = rf"(?=(?<{noted}>{parts[-1]}{match['repeats']}))\k<{noted}>"
            case "how":
                parts[-1] += match[0]
            case "class":
                parts.append(_class(match[0]))
            case "escape":
                parts.append(_outside(match[0]))
            case "dot":
                parts.append(r"[^\n]")
            case _:
                parts.append(match[0])
    return "".join(parts)


def _class(text: str) -> str:
    if text in (r"[^\W\d_]", r"[\W\d_]"):
        return f"[{'' if '^' in text else '^'}{_LETTERS}]"
    return _ESCAPE.sub(lambda match: _INSIDE.get(match[0][1:]) or _escape(match[0]), text)


def _outside(escape: str) -> str:
    match escape[1:]:
        case "w" | "d" | "s" as name:
            return f"[{_INSIDE[name]}]"
        case "W" | "D" | "S" as name:
            return f"[^{_INSIDE[name.lower()]}]"
        case "b":
            return rf"(?:(?<=[{_WORD}])(?![{_WORD}])|(?<![{_WORD}])(?=[{_WORD}]))"
        case "Z":
            return "$"
    return _escape(escape)


def _escape(escape: str) -> str:
    if escape.startswith(r"\U"):
        return rf"\u{{{escape[2:].lstrip('0')}}}"
    return escape if escape[1].isalnum() or escape[1] in _KEPT else escape[1]
