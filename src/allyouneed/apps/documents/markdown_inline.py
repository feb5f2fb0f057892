"""The inline content of a Markdown paragraph as pieces with their positions, which markdown-it does not report.

The rules of the parser record where each token ends. A token begins where the previous one ends.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, blockquote
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from mdit_py_plugins.admon import admon_plugin
from mdit_py_plugins.attrs import attrs_plugin
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.footnote import footnote_plugin

from ...config.language_tags import is_foreign
from ...text.tokenizer import LANGUAGE_TAG
from .encoded_text import Slice
from .pieces import BLANK_PARTS, Piece, find_notes, opaque_point, tag_partners

# CommonMark takes this for a line of HTML, which ends a paragraph but begins no HTML block.
IS_MARKER = re.compile(r"\s*<\?x*\??>\s*")

_NEXT_LINE = r"\n(?![ \t>]*(?:\n|\Z|`{3}|~{3}))"  # within a paragraph: not a fence or a blank line
_PARAGRAPH = rf"(?:.{{0,999}}+{_NEXT_LINE}){{0,99}}?.{{0,999}}?"  # a part of a paragraph, as short as possible
_GROUP = r"\{[^{}]*+(?:\{[^{}]*+(?:\{[^{}]*+\}[^{}]*+)*+\}[^{}]*+)*+\}"  # {three {braces {deep}}}
_ATTRIBUTE = rf"\s++(?:[\w:-]++(?:=(?:\"[^\"\n]*+\"|'[^'\n]*+'|{_GROUP}|[^\s\"'=<>`{{]++))?|{_GROUP})"
_TEMPLATE = rf"\{{\{{{_PARAGRAPH}\}}{{2,}}+|\{{%{_PARAGRAPH}%\}}|\{{/\*{_PARAGRAPH}\*/\}}"
_WIKI_LINK = r"!?\[\[[^\[\]\n]++\]\](?![(\[])"
_FORMULA = r"(?:(?!\\[)\]])[^\n]){0,99}?(?:(?<!\\)[\^_={}]|\\[A-Za-z,;:!])"
_DOLLARS = rf"(?:\\.|[^$\\\n]|{_NEXT_LINE}){{1,999}}+"

# A tag with an expression in braces, or without a name, which does not exist in HTML.
JSX_TAG = re.compile(rf"<(?:/?|[A-Za-z][\w.]*+(?:{_ATTRIBUTE})*+\s*+/?|/[A-Za-z][\w.]*+\s*+)>")
# Belongs to the link, word or code before it: {.class #id key=value}.
ATTRIBUTE_LIST = re.compile(r"\{(?:[:.#@/][^{}\n]*+|[\w-]++=[^{}\n]*+)\}")
OPAQUE = re.compile(
    "|".join(
        [
            rf"\$\${_DOLLARS}\$\$",
            # Not a price: no digit next to it, and no word between blanks, which a formula has in braces.
            rf"(?<![\d$])\$(?![\s$])(?![^$\n]*?[^{{\s$]\s+[a-z]{{2,}}\s+[^}}\s]){_DOLLARS}(?<!\s)\$(?![\d$])",
            # Not escaped brackets of a text: it contains a sign of a formula, or no word.
            rf"\\\((?={_FORMULA}|(?:[^\w\\]|\d|[A-Za-z]{{1,2}}(?![A-Za-z]))*\\)[^\n]{{1,999}}?\\\)",
            rf"\\\[(?={_FORMULA})[^\n]{{1,999}}?\\\]",
            _WIKI_LINK,
            rf"(?:{_TEMPLATE})++",
            r"\{[\w:+.-]++\}(?P<code>`++)[^\n]{1,999}?(?<!`)(?P=code)(?!`)",  # a MyST role
            r"\[-?@[^\[\]\n]++\](?![(\[])",  # a citation
            r"(?<![\w:]):[a-z0-9+-][\w+-]*+:(?![\w:])",  # an emoji
            r"<(?:[A-Za-z][A-Za-z0-9+.-]{1,31}:[^<>\x00-\x20]*+|[\w.!#$%&'*+/=?^`{|}~-]++@[A-Za-z0-9.-]++)>",
        ]
    )
)
# The mark of a note, or a note inside a sentence.
NOTE = re.compile(r"\[\^[^\[\]\s]++\]|\^\[(?:[^\[\]\\\n]|\\.|\[[^\[\]\n]*+\](?:\([^()\s]*+\))?)++\]")
# Begins a line whose words are text: a checkbox, a definition, a row, a title, a bullet.
LINE_SIGN = re.compile(r"\[[ xX]\][ \t]+|[:~|%•·‣◦●○▪▫][ \t]+")

FRONT_MATTER = re.compile(
    # Front matter begins with a key, a table or a comment, so that a rule before a paragraph does not match.
    r"\A(?:(?:---|\+\+\+)[ \t]*\n(?=[\"']?[\w.-]+[\"']?[ \t]*[:=]|\[|[ \t]*#)(?:.*\n)*?(?:---|\+\+\+|\.\.\.)"
    r"|\{\n(?=[ \t]*\")(?:.*\n)*?\})[ \t]*(?:\n|\Z)"
)
_BEFORE = r"(?:[ \t>]|[-+*][ \t]|\d{1,9}[.)][ \t])*+"
# The first line of an admonition or a tab, which indented text follows.
_INDENTED = re.compile(rf"^({_BEFORE})(?:(?:!!!|\?\?\?\+?)[ \t]*[\w\"]|===[+!]*[ \t]+\").*", re.MULTILINE)
_MARKER = re.compile(
    rf"^({_BEFORE})((?:"
    + "|".join(
        [
            r"\[!\w[^\[\]\n]*(?:\](?!\().*|\[.*)",  # an alert, a callout, an include
            r":{3,}[ \t]*\{.*(?:\n[ \t>]*:[\w-]+:.*)*",  # a container, with MyST options
            r"(?P<sign>[:/%@;^+])(?P=sign){2}.*",
            r"(?:---?8<---?|<<<|@\[).*",  # includes a part of a file
            r"\*\[[^\[\]\n]+\]:.*",  # an abbreviation
            # Does not enclose text.
            r"\{(?:\{[<%]|%-?)[ \t]*(?P<code>(?:code[\w-]*|comment|highlight|katex|math|mermaid)\b)"
            r"(?:.{0,999}+\n(?![ \t>]*(?:`{3}|~{3}))){0,400}?.{0,999}?(?:end|/)[ \t]*(?P=code)[^\n{}]*\}+",
            rf"(?:(?:{_TEMPLATE}|\{{[^{{}}\n]*+\}}|{_WIKI_LINK})[ \t]*+)++",
            r"\[(?i:_?toc_?)\]",
            rf"\$\${_DOLLARS}\$\$(?:[ \t]*(?:\([^()\n]+\)|\{{[^{{}}\n]+\}}))?",
            rf"\\\[(?=[ \t]*\n|{_FORMULA}){_PARAGRAPH}\\\]",
            rf"\\begin\{{(?P<name>\w+\*?)\}}{_PARAGRAPH}\\end\{{(?P=name)\}}",
            r"\\[A-Za-z]+\*?(?:\{[^{}\n]*\}|\[[^\[\]\n]*\])*",
            r"\+[-=+:]+\+(?:\n[ \t>]*[|+].*)+",  # a table drawn with characters
            rf"(?!</?(?i:pre|script|style|textarea)\b)(?=<(?:/?>|/?[A-Z][\w.]*[a-z])){JSX_TAG.pattern}",
            rf"(?<![^\n])import\s+(?:[\w$*{{](?:[^\"'\n;]{{0,999}}+{_NEXT_LINE}){{0,99}}?[^\"'\n;]{{0,999}}?\bfrom\s*)?[\"'][^\"'\n]+[\"'];?",
            rf"(?<![^\n])export\s(?=.*[={{*;(])(?:.*{_NEXT_LINE})*.*",
        ]
    )
    + r"))[ \t]*$",
    re.MULTILINE,
)
_AFTER_INDENT = re.compile(r"(?<![^\n])([ \t>]*)(\S.*)")
# An address with blanks inside a template's tag.
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
    """Replace marker lines with HTML, and drop front matter. Line ends in `text` must be single characters.

    All lines with text keep their length. Admonitions and tabs get the syntax that `admon_plugin` reads.
    """
    text = FRONT_MATTER.sub(lambda match: "\n" * match[0].count("\n"), text)
    text = _INDENTED.sub(r"\1!!! -", text)
    text = _ADDRESS.sub(lambda match: re.sub(r"[^\n]", "x", match[0]), text)
    return _MARKER.sub(lambda match: match[1] + _AFTER_INDENT.sub(_html, match[2]), text)


def _html(match: re.Match[str]) -> str:
    """Write HTML with as many characters as the match has, but at least three."""
    length = len(match[2])
    return f"{match[1]}<?{'x' * (length - 4)}{'?' if length > 3 else ''}>"


def marker_title(line: str) -> Slice | None:
    """Return the position of the title in a marker line, which is text to translate; None if it has no title."""
    match = _TITLE.fullmatch(line)
    return Slice(*match.span(match.lastgroup)) if match and match.lastgroup else None


_LANGUAGE = re.compile(r"\s(?:xml:)?lang\s*=\s*[\"']?([\w-]+)", re.IGNORECASE)
_HTML_NAME = re.compile(r"<(/?)([A-Za-z][\w.:-]*)")
_LINE_BREAKS = ("softbreak", "hardbreak")

InlineRule = Callable[[StateInline, bool], bool]


class LostPosition(Exception):  # noqa: N818  no failure of the program: the paragraph is left as it is
    """Raised if a token is not where it should be in the source."""


class Source(NamedTuple):
    """The characters from `start` to `end` of a content.

    If these are the end of a link that is named by its text, `label` is that name.
    """

    start: int
    end: int
    label: str = ""

    def read(self, content: str) -> str:
        """Return these characters."""
        return content[self.start : self.end]


def make_parser() -> MarkdownIt:
    """Make a parser of CommonMark with tables, strikethrough, definitions, notes, admonitions, attributes and JSX.

    Escapes and entities are separate tokens, and each token except text records where it ends.
    """
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("text_join")
    parser.use(admon_plugin).use(deflist_plugin).use(
        footnote_plugin, inline=False, move_to_end=False, always_match_refs=True
    )
    parser.use(attrs_plugin, after=(), spans=True)
    parser.disable("footnote_ref")  # it takes quadratic time
    parser.block.ruler.at("blockquote", _quotation, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    rules = parser.inline.ruler
    rules.before("escape", "opaque", _pattern_rule("opaque", OPAQUE))
    rules.after("opaque", "note", _pattern_rule("note", NOTE))
    rules.after("opaque", "attributes", _pattern_rule("attributes", ATTRIBUTE_LIST))
    rules.after("html_inline", "jsx", _pattern_rule("html_inline", JSX_TAG))
    for name, rule in zip(rules.get_active_rules(), rules.getRules(""), strict=True):
        rules.at(name, _with_end(rule))
    return parser


def _quotation(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """Read a block quotation, unless a line begins with the tag of a language: `>>ita<<`."""
    start = state.bMarks[first] + state.tShift[first]
    return not LANGUAGE_TAG.match(state.src, start) and blockquote(state, first, end, silent)


def _pattern_rule(kind: str, pattern: re.Pattern[str]) -> InlineRule:
    def rule(state: StateInline, silent: bool) -> bool:
        match = pattern.match(state.src, state.pos, state.posMax)
        if match and not silent:
            state.push(kind, "", 0).content = match.group()
        state.pos = match.end() if match else state.pos
        return match is not None

    return rule


def _with_end(rule: InlineRule) -> InlineRule:
    """Wrap a rule so that its last token records where it ends."""

    def noting(state: StateInline, silent: bool) -> bool:
        before = len(state.tokens)
        is_matched = rule(state, silent)
        if is_matched and not silent and len(state.tokens) > before:
            state.tokens[-1].meta["end"] = state.pos
        return is_matched

    return noting


def token_sources(content: str, tokens: Sequence[Token]) -> Iterator[tuple[Token, Source]]:
    """Yield each of the `tokens` of `content` with its position. Raises `LostPosition`."""
    position = 0
    opened: list[int] = []
    for token in tokens:
        kind = token.type.rpartition("_")[0]
        expected = {"text": token.content, "link_open": "[", "span_open": "["}.get(token.type)
        expected = token.markup if kind in ("em", "strong", "s") else expected
        if expected is not None and not content.startswith(expected, position):
            raise LostPosition
        source = Source(position, token.meta["end"] if expected is None else position + len(expected))
        position = source.end
        if token.type == "link_open":
            opened.append(position)
        elif token.type in ("link_close", "image"):
            start = opened.pop() if token.type == "link_close" else source.start + 2
            end = source.start if token.type == "link_close" else start + len(token.content)
            if content[end : source.end] in ("]", "][]"):
                source = source._replace(label=" ".join(content[start:end].split()))
        yield token, source
    if content[position:].strip():
        raise LostPosition


def inline_pieces(
    content: str, sources: Sequence[tuple[Token, Source]], languages_read: Collection[str] = ()
) -> list[Piece]:
    """Return the pieces of `content`. The `source` of each piece is a `Source`.

    Elements outside `languages_read` stay unchanged.
    """
    pieces: list[Piece] = []
    begins_line = True
    breaks = (source.end for token, source in sources if token.type in _LINE_BREAKS)
    keeps_lines = any(LINE_SIGN.match(content, at) for at in breaks)  # a poem, or terms and their definitions
    for token, source in sources:
        last = pieces[-1] if pieces else Piece("text", source=source)
        sticks = token.type == "attributes" or token.content.startswith("<!--")
        if sticks and last.kind in ("close", "point") and last.source.end == source.start:
            pieces[-1] = last._replace(source=last.source._replace(end=source.end))
            continue
        if token.type == "softbreak" and keeps_lines:
            pieces.append(Piece("boundary", source=source))
        else:
            pieces += _token_pieces(content, token, source, begins_line)
        begins_line = token.type in _LINE_BREAKS
    return _without_kept(content, pieces, languages_read)


def _without_kept(content: str, pieces: list[Piece], languages_read: Collection[str]) -> list[Piece]:
    """Replace ruby readings, marks of notes, and text in other languages with points (untranslated content)."""
    result: list[Piece] = []
    partners = tag_partners(pieces)
    notes = find_notes(pieces, partners)
    end = 0
    for index, piece in enumerate(pieces):
        last = partners.get(index, -1)
        language = _LANGUAGE.search(piece.source.read(content)) if piece.name.startswith("<") else None
        if index >= end and last > index and language and is_foreign(language[1], languages_read):
            end = last + 1
            text = "".join(one.text for one in pieces[index:end])
            result.append(opaque_point(text, Source(piece.source.start, pieces[last].source.end)))
        elif index >= end and (piece.name in ("<rt>", "<rp>") or index in notes) and last > index:
            end = last + 1
            result.append(Piece("point", source=Source(piece.source.start, pieces[last].source.end)))
        elif index >= end:
            result.append(piece)
    return result


def _token_pieces(content: str, token: Token, source: Source, begins_line: bool) -> Iterator[Piece]:
    match token.type:
        case "text":
            start = source.start
            if begins_line and (sign := LINE_SIGN.match(content, start, source.end)):
                yield Piece("boundary", source=Source(start, sign.end()))
                start = sign.end()
            for match in BLANK_PARTS.finditer(content, start, source.end):
                yield Piece("text", match.group(), source=Source(*match.span()))
        case "text_special":
            yield Piece("text", token.content, source=source)
        case "softbreak":
            yield Piece("text", " ", source=source)
        case "hardbreak":
            yield Piece("point", source=source, stands_for="break")
        case "code_inline":
            yield opaque_point(token.content, source)
        case "opaque":
            yield opaque_point(token.content.strip("$!\\()[]<>"), source)
        case "image" | "attributes":
            yield Piece("point", source=source, stands_for="word")
        case "note":
            yield Piece("point", source=source)
        case "html_inline":
            yield _html_piece(token.content, source)
        case _:
            name, _, side = token.type.rpartition("_")
            yield Piece("open" if side == "open" else "close", name=name, source=source)


def _html_piece(tag: str, source: Source) -> Piece:
    match = _HTML_NAME.match(tag)
    if not match or tag.endswith("/>") or match[2].lower() in ("br", "img", "wbr", "input"):
        return Piece("point", source=source, stands_for="break" if match and match[2].lower() == "br" else "")
    return Piece("close" if match[1] else "open", name=f"<{match[2].lower()}>", source=source)
