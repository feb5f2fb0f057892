"""What Markdown has beyond CommonMark and is no text: marker lines (`::: tip`) and parts of lines (`[[page]]`).

Each program that shows Markdown adds markers of its own. A pattern here is a marker in one of them, and hardly ever
text in any.
"""

import re

from .encoded_text import Slice

IS_MARKER = re.compile(r"\s*<\?x*\??>\s*")  # a line of HTML to CommonMark, which ends a paragraph, and no block of HTML

_NEXT_LINE = r"\n(?![ \t>]*(?:\n|\Z|`{3}|~{3}))"  # of a paragraph: no fence or blank line
_PARAGRAPH = rf"(?:.{{0,999}}+{_NEXT_LINE}){{0,99}}?.{{0,999}}?"  # a part of it, as short as it may be
_GROUP = r"\{[^{}]*+(?:\{[^{}]*+(?:\{[^{}]*+\}[^{}]*+)*+\}[^{}]*+)*+\}"  # {three {braces {deep}}}
_ATTRIBUTE = rf"\s++(?:[\w:-]++(?:=(?:\"[^\"\n]*+\"|'[^'\n]*+'|{_GROUP}|[^\s\"'=<>`{{]++))?|{_GROUP})"
_TEMPLATE = rf"\{{\{{{_PARAGRAPH}\}}{{2,}}+|\{{%{_PARAGRAPH}%\}}|\{{/\*{_PARAGRAPH}\*/\}}"
_WIKI_LINK = r"!?\[\[[^\[\]\n]++\]\](?![(\[])"
_FORMULA = r"(?:(?!\\[)\]])[^\n]){0,99}?(?:(?<!\\)[\^_={}]|\\[A-Za-z,;:!])"
_DOLLARS = rf"(?:\\.|[^$\\\n]|{_NEXT_LINE}){{1,999}}+"

# A tag with an expression in braces, or without a name, which HTML does not have.
JSX_TAG = re.compile(rf"<(?:/?|[A-Za-z][\w.]*+(?:{_ATTRIBUTE})*+\s*+/?|/[A-Za-z][\w.]*+\s*+)>")
# What belongs to the link, word or code before it: {.class #id key=value}.
ATTRIBUTE_LIST = re.compile(r"\{(?:[:.#@/][^{}\n]*+|[\w-]++=[^{}\n]*+)\}")
OPAQUE = re.compile(
    "|".join(
        [
            rf"\$\${_DOLLARS}\$\$",
            # No prices: no digit beside it, and no word between blanks, which a formula has in braces.
            rf"(?<![\d$])\$(?![\s$])(?![^$\n]*?[^{{\s$]\s+[a-z]{{2,}}\s+[^}}\s]){_DOLLARS}(?<!\s)\$(?![\d$])",
            # No escaped brackets of a text: there is a sign of a formula, or no word.
            rf"\\\((?={_FORMULA}|(?:[^\w\\]|\d|[A-Za-z]{{1,2}}(?![A-Za-z]))*\\)[^\n]{{1,999}}?\\\)",
            rf"\\\[(?={_FORMULA})[^\n]{{1,999}}?\\\]",
            _WIKI_LINK,
            rf"(?:{_TEMPLATE})++",
            r"\{[\w:+.-]++\}(?P<code>`++)[^\n]{1,999}?(?<!`)(?P=code)(?!`)",  # a role of MyST
            r"\[-?@[^\[\]\n]++\](?![(\[])",  # a citation
            r"(?<![\w:]):[a-z0-9+-][\w+-]*+:(?![\w:])",  # an emoji
            r"<(?:[A-Za-z][A-Za-z0-9+.-]{1,31}:[^<>\x00-\x20]*+|[\w.!#$%&'*+/=?^`{|}~-]++@[A-Za-z0-9.-]++)>",
        ]
    )
)
# The mark of a note, or a note inside a sentence.
NOTE = re.compile(r"\[\^[^\[\]\s]++\]|\^\[(?:[^\[\]\\\n]|\\.|\[[^\[\]\n]*+\](?:\([^()\s]*+\))?)++\]")
# What begins a line whose words are text: a box to tick, a definition, a row, a title, a bullet.
LINE_SIGN = re.compile(r"\[[ xX]\][ \t]+|[:~|%•·‣◦●○▪▫][ \t]+")

_FRONT_MATTER = re.compile(
    # It begins with a key, a table or a comment, so that a rule and a paragraph are none.
    r"\A(?:(?:---|\+\+\+)[ \t]*\n(?=[\"']?[\w.-]+[\"']?[ \t]*[:=]|\[|[ \t]*#)(?:.*\n)*?(?:---|\+\+\+|\.\.\.)"
    r"|\{\n(?=[ \t]*\")(?:.*\n)*?\})[ \t]*(?:\n|\Z)"
)
_BEFORE = r"(?:[ \t>]|[-+*][ \t]|\d{1,9}[.)][ \t])*+"
# The first line of an admonition or a tab, whose text is indented.
_INDENTED = re.compile(rf"^({_BEFORE})(?:(?:!!!|\?\?\?\+?)[ \t]*[\w\"]|===[+!]*[ \t]+\").*", re.MULTILINE)
_MARKER = re.compile(
    rf"^({_BEFORE})((?:"
    + "|".join(
        [
            r"\[!\w[^\[\]\n]*(?:\](?!\().*|\[.*)",  # an alert, a callout, an include
            r":{3,}[ \t]*\{.*(?:\n[ \t>]*:[\w-]+:.*)*",  # a container, with the options of MyST
            r"(?P<sign>[:/%@;^+])(?P=sign){2}.*",
            r"(?:---?8<---?|<<<|@\[).*",  # a part of a file
            r"\*\[[^\[\]\n]+\]:.*",  # an abbreviation
            r"\{(?:\{[<%]|%-?)[ \t]*(?P<code>(?:code[\w-]*|comment|highlight|katex|math|mermaid)\b)"  # around no text
            r"(?:.{0,999}+\n(?![ \t>]*(?:`{3}|~{3}))){0,400}?.{0,999}?(?:end|/)[ \t]*(?P=code)[^\n{}]*\}+",
            rf"(?:(?:{_TEMPLATE}|\{{[^{{}}\n]*+\}}|{_WIKI_LINK})[ \t]*+)++",
            r"\[(?i:_?toc_?)\]",
            rf"\$\${_DOLLARS}\$\$(?:[ \t]*(?:\([^()\n]+\)|\{{[^{{}}\n]+\}}))?",
            rf"\\\[(?=[ \t]*\n|{_FORMULA}){_PARAGRAPH}\\\]",
            rf"\\begin\{{(?P<name>\w+\*?)\}}{_PARAGRAPH}\\end\{{(?P=name)\}}",
            r"\\[A-Za-z]+\*?(?:\{[^{}\n]*\}|\[[^\[\]\n]*\])*",
            r"\+[-=+:]+\+(?:\n[ \t>]*[|+].*)+",  # a table that is drawn
            rf"(?!</?(?i:pre|script|style|textarea)\b)(?=<(?:/?>|/?[A-Z][\w.]*[a-z])){JSX_TAG.pattern}",
            rf"(?<![^\n])import\s+(?:[\w$*{{](?:[^\"'\n;]{{0,999}}+{_NEXT_LINE}){{0,99}}?[^\"'\n;]{{0,999}}?\bfrom\s*)?[\"'][^\"'\n]+[\"'];?",
            rf"(?<![^\n])export\s(?=.*[={{*;(])(?:.*{_NEXT_LINE})*.*",
        ]
    )
    + r"))[ \t]*$",
    re.MULTILINE,
)
_AFTER_INDENT = re.compile(r"(?<![^\n])([ \t>]*)(\S.*)")
# An address with blanks, which are inside a tag of a template.
_ADDRESS = re.compile(rf"(?:(?<=\]\()|(?<=\]: ))(?:[^\s(){{}}]*(?:{_TEMPLATE}))+[^\s(){{}}]*(?=[)\s]|\Z)")
_TITLED = (
    "abstract|attention|bug|caution|danger|details|error|example|failure|hint|important|info|note|question|quote|"
    "spoiler|success|summary|tip|todo|warning"
)
_TITLE = re.compile(
    rf"{_BEFORE}(?:"
    + "|".join(
        [
            r"\[!\w+\][-+]?[ \t]+(?P<callout>.+?)",
            r":{3,}[ \t]*[\w-]+\[(?P<label>[^\[\]]+)\].*",
            rf":{{3,}}[ \t]*(?i:{_TITLED})[ \t]+(?P<container>[^{{}}=]*[^{{}}=\s])(?:[ \t]*\{{.*\}})?",
            r":{3,}\{(?:admonition|card|dropdown|tab-item)\}[ \t]+(?P<directive>.+?)",
            r"(?:!!!|\?\?\?|===)[^\"]*\"(?P<quoted>.+)\"",
            r"(?:!!!|\?\?\?\+?)[ \t]*(?P<shout>(?=.*[^\w\s-])[^\"]+?)",
            r"/{3,}[^|]*\|[ \t]*(?P<block>.+?)",
            r"\*\[[^\[\]]+\]:[ \t]*(?P<abbreviation>.+?)",
        ]
    )
    + r")[ \t]*"
)


def without_markers(text: str) -> str:
    """The text, whose line ends are single characters, with HTML in place of marker lines, and no front matter.

    All lines with text stay as long as they are. Admonitions and tabs begin as `admon_plugin` reads them.
    """
    text = _FRONT_MATTER.sub(lambda match: "\n" * match[0].count("\n"), text)
    text = _INDENTED.sub(r"\1!!! -", text)
    text = _ADDRESS.sub(lambda match: re.sub(r"[^\n]", "x", match[0]), text)
    return _MARKER.sub(lambda match: match[1] + _AFTER_INDENT.sub(_html, match[2]), text)


def _html(match: re.Match[str]) -> str:
    """As many characters, but three at least."""
    length = len(match[2])
    return f"{match[1]}<?{'x' * (length - 4)}{'?' if length > 3 else ''}>"


def marker_title(line: str) -> Slice | None:
    """Where a marker line has a title, which is text."""
    match = _TITLE.fullmatch(line)
    return Slice(*match.span(match.lastgroup)) if match and match.lastgroup else None
