"""Regular expressions of Python → regular expressions of JavaScript, so that a page reads with the same patterns."""

import re

_TOKEN = re.compile(
    r"""(?P<class>\[\^?\]?(?:\\.|[^\]\\])*\])
    | (?P<escape>\\(?:U[\da-f]{8}|.))
    | (?P<possessive>[*+?}])\+
    | (?P<dot>\.)""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:U[\da-f]{8}|.)", re.IGNORECASE | re.DOTALL)
_BLANK = r"\p{White_Space}\x1c-\x1f"  # str.isspace
_WORD = r"\p{L}\p{N}_"  # str.isalnum, and the underscore
_INSIDE = {"w": _WORD, "d": r"\p{Nd}", "s": _BLANK}  # of a class
_LETTERS = r"\p{L}\p{Nl}\p{No}"  # those of `\w` that are neither a digit nor the underscore
_KEPT = frozenset(r"^$\.*+?()[]{}|/-")  # signs that JavaScript lets a backslash stand before


def to_javascript(pattern: str) -> str:
    """Translate a pattern for the flag `u`. Possessive quantifiers become greedy: the match is the same, but slower."""

    def token(match: re.Match[str]) -> str:
        if possessive := match["possessive"]:
            return possessive
        if match["dot"]:
            return r"[^\n]"
        return _class(match["class"]) if match["class"] else _outside(match["escape"])

    return _TOKEN.sub(token, pattern)


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
