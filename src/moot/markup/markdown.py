"""Moot's Markdown parser: CommonMark with GFM tables, task lists, footnotes, strikethrough and autolinks, and with formulas.

HTML in the text is never interpreted, except `<br>`. Formulas are not typeset but treated as code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from linkify_it import LinkifyIt  # pyright: ignore[reportMissingTypeStubs]
from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, table
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.footnote.index import footnote_def
from mdit_py_plugins.tasklists import tasklists_plugin

References: TypeAlias = dict[str, dict[str, str]]
"""Link definitions with `href` and `title`, by normalized label."""

_DEEPEST = 50
"""Maximum nesting of blocks. Deeper blocks are kept as plain text."""
_BREAK = re.compile(r"<br ?/?>", re.IGNORECASE)
_INLINE_FORMULAS = (("$$", "$$"), ("\\(", "\\)"), ("\\[", "\\]"))
_BLOCK_FORMULAS = {"$$": "$$", "\\[": "\\]"}


@dataclass(slots=True)
class Block:
    """A block of a document, and the blocks inside it."""

    kind: str
    """The token type without `_open`, such as `paragraph` or `list_item`."""
    token: Token
    lines: tuple[int, int]
    """Numbers of the first line and of the line after the last one, counted from 0."""
    spaced: bool = False
    """True if a blank line comes before the block."""
    children: list[Block] = field(default_factory=list["Block"])
    inline: list[Token] = field(default_factory=list[Token])
    """The parsed text of a block that contains no other blocks."""


def new_parser() -> MarkdownIt:
    """Return a parser. Tokens carry link addresses as written, not percent-encoded."""
    parser = MarkdownIt("commonmark", {"html": False, "linkify": True, "inline_definitions": True, "maxNesting": _DEEPEST + 20})
    parser.enable(["strikethrough", "linkify"])
    parser.use(tasklists_plugin).use(footnote_plugin, inline=False, move_to_end=False)
    # `main.py` is not a link, although .py is a domain
    parser.linkify = LinkifyIt(options={"fuzzy_link": False, "fuzzy_email": False})
    parser.normalizeLink = lambda url: url
    parser.normalizeLinkText = lambda link: link
    # tried later than the library's rule, because a line that starts a heading, list or quote is not the header of a table
    parser.block.ruler.before("lheading", "pipe_table", _table, {"alt": ["paragraph", "reference"]})
    parser.block.ruler.at("footnote_def", _footnote, {"alt": ["paragraph", "reference"]})
    parser.block.ruler.before("table", "deep", _deep)
    parser.block.ruler.before("fence", "formula", _block_formula, {"alt": ["paragraph", "blockquote", "list"]})
    parser.inline.ruler.before("escape", "formula", _inline_formula)
    parser.inline.ruler.before("autolink", "break", _line_break)
    return parser


def parse_blocks(source: str, references: References | None = None) -> list[Block]:
    """Return the top-level blocks of a text.

    A link definition applies to the top-level blocks and list items after it, never to earlier ones, which may already be printed.
    `references` are the definitions of earlier texts.
    """
    state = StateCore(source, _PARSER, {"references": {}})
    for rule in _BLOCK_RULES:
        rule(state)
    known = dict(references or {})
    for unit in _units(state.tokens):
        inside = StateCore(source, _PARSER, {**state.env, "references": known})
        inside.tokens = unit
        for rule in _INLINE_RULES:
            rule(inside)
        for token in unit:
            add_definition(token, known)
    return _tree(state.tokens, source.split("\n"))


def add_definition(token: Token, references: References) -> None:
    """Add the link definition in a token, if there is one."""
    if token.type == "definition":
        meta = token.meta
        references.setdefault(meta["id"], {"title": meta["title"], "href": meta["url"]})


def _units(tokens: list[Token]) -> Iterator[list[Token]]:
    """Yield the tokens of each top-level block, and of each item of a top-level list."""
    start = 0
    for at, token in enumerate(tokens):
        if token.level == 0 and token.type in ("bullet_list_open", "ordered_list_open"):
            start = at + 1
        elif token.nesting <= 0 and (token.level == 0 or (token.level == 1 and token.type == "list_item_close")):
            yield tokens[start : at + 1]
            start = at + 1


def _tree(tokens: Sequence[Token], lines: Sequence[str]) -> list[Block]:
    root = Block("root", Token("root", "", 0), (0, len(lines)))
    path = [root]
    for token in tokens:
        if token.type == "inline":
            path[-1].inline = token.children or []
            path[-1].token.content = token.content
        elif token.nesting >= 0:
            first, end = token.map or [path[-1].lines[0]] * 2
            marks = " \t>" if any(block.kind == "blockquote" for block in path) else " \t"  # in a quote, a line with only its mark is blank
            spaced = first > 0 and not lines[first - 1].strip(marks)
            block = Block(token.type.removesuffix("_open"), token, (first, end), spaced)
            path[-1].children.append(block)
            if token.nesting > 0:
                path.append(block)
        else:
            path.pop()
    return root.children


def _table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Let a table that directly follows a list end the list's last paragraph instead of continuing it."""
    indent = state.blkIndent
    if silent and 0 <= state.sCount[start] < indent:
        state.blkIndent = 0
    try:
        return table(state, start, end, silent)
    finally:
        state.blkIndent = indent


def _footnote(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Add the lines of a footnote, which the plugin leaves out, to its token."""
    at = len(state.tokens)
    if not footnote_def(state, start, end, silent):
        return False
    if not silent:
        state.tokens[at].map = [start, state.line]
    return True


def _deep(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Keep text that is nested too deeply as a code block. The library would drop it."""
    if silent or state.level < _DEEPEST:
        return False
    token = state.push("code_block", "code", 0)
    token.content = state.getLines(start, end, state.blkIndent, False) + "\n"
    token.map = [start, end]
    state.line = end
    return True


def _line_break(state: StateInline, silent: bool) -> bool:
    found = _BREAK.match(state.src, state.pos)
    if found is None:
        return False
    if not silent:
        state.push("hardbreak", "br", 0)
    state.pos = found.end()
    return True


def _inline_formula(state: StateInline, silent: bool) -> bool:
    """Read a formula between `$`, `$$`, `\\(…\\)` or `\\[…\\]`."""
    end = _formula_end(state.src, state.pos, state.posMax)
    if end is None:
        return False
    if not silent:
        token = state.push("code_inline", "code", 0)
        token.content = state.src[state.pos : end]
        token.attrSet("class", "formula")
    state.pos = end
    return True


def _formula_end(source: str, begin: int, limit: int) -> int | None:
    for opening, closing in _INLINE_FORMULAS:
        if source.startswith(opening, begin):
            found = source.find(closing, begin + len(opening), limit)
            if found < 0 or not source[begin + len(opening) : found].strip() or source.startswith("(", found + len(closing)):
                return None  # `\\[text\\](address)` is an escaped link
            return found + len(closing)
    if not source.startswith("$", begin) or not source[begin + 1 : begin + 2].strip():
        return None
    found = source.find("$", begin + 1, limit)
    # no space before the end and no digit after it; otherwise two prices in a line would be a formula
    if found < 0 or source[found - 1].isspace() or source[found + 1 : found + 2].isdigit() or "\n" in source[begin:found]:
        return None
    return found + 1


def _block_formula(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Read a formula between `$$` and `$$`, or until a blank line.

    After a line with only `$$`, the closing `$$` may be missing, because the text may still be streaming.
    """
    first = _line(state, start).strip()
    closing = _BLOCK_FORMULAS.get(first[:2])
    if closing is None or (len(first) > 2 and closing in first[2:] and not first.endswith(closing)) or state.is_code_block(start):
        return False
    last = start
    if len(first) < 4 or not first.endswith(closing):
        last, is_closed = _last_line(state, start + 1, end, closing)
        if not is_closed and len(first) > 2:
            return False
    if silent:
        return True
    token = state.push("fence", "code", 0)
    token.info = "latex"
    token.content = "\n".join(_line(state, number) for number in range(start, last + 1)) + "\n"
    token.map = [start, last + 1]
    state.line = last + 1
    return True


def _last_line(state: StateBlock, start: int, end: int, closing: str) -> tuple[int, bool]:
    """Return the line that ends a formula, and True.

    If there is none before a blank line, return the line before the blank line, and False.
    """
    for number in range(start, end):
        if state.isEmpty(number) or state.sCount[number] < state.blkIndent:
            return number - 1, False
        if _line(state, number).strip().endswith(closing):
            return number, True
    return end - 1, False


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]]


_PARSER = new_parser()
_INLINE = _PARSER.core.ruler.get_active_rules().index("inline")
_BLOCK_RULES = _PARSER.core.ruler.getRules("")[:_INLINE]
_INLINE_RULES = _PARSER.core.ruler.getRules("")[_INLINE:]
