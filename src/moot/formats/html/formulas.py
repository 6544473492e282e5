"""Formulas in Markdown: nobody sets them here, so they are shown as code, as they are written and not as Markdown would have them."""

from __future__ import annotations

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

__all__ = ["formulas"]

_INLINE = (("$$", "$$"), ("\\(", "\\)"), ("\\[", "\\]"))
_BLOCKS = {"$$": "$$", "\\[": "\\]"}


def formulas(reader: MarkdownIt) -> None:
    """Lets a reader know formulas between `$`, `$$`, `\\(…\\)` and `\\[…\\]`."""
    reader.inline.ruler.before("escape", "formula", _inline)
    reader.block.ruler.before("fence", "formula", _block, {"alt": ["paragraph", "blockquote", "list"]})


def _inline(state: StateInline, silent: bool) -> bool:
    end = _end(state.src, state.pos, state.posMax)
    if end is None:
        return False
    if not silent:
        token = state.push("code_inline", "code", 0)
        token.content = state.src[state.pos : end]
        token.attrSet("class", "formula")
    state.pos = end
    return True


def _end(source: str, begin: int, most: int) -> int | None:
    """Where the formula that begins there ends."""
    for opening, closing in _INLINE:
        if source.startswith(opening, begin):
            found = source.find(closing, begin + len(opening), most)
            return None if found < 0 or not source[begin + len(opening) : found].strip() else found + len(closing)
    if not source.startswith("$", begin) or source[begin + 1 : begin + 2].strip() == "":
        return None
    found = source.find("$", begin + 1, most)
    # as everywhere: no space before the end, no digit behind it, or two prices in a line would make a formula
    if found < 0 or source[found - 1].isspace() or source[found + 1 : found + 2].isdigit() or "\n" in source[begin:found]:
        return None
    return found + 1


def _block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Whole lines between `$$` and `$$`."""
    first = _line(state, start).strip()
    closing = _BLOCKS.get(first[:2])
    if closing is None or (len(first) > 2 and closing in first[2:] and not first.endswith(closing)):
        return False
    last = start
    if not (len(first) > 3 and first.endswith(closing)):
        last = next((number for number in range(start + 1, end) if _line(state, number).strip().endswith(closing)), -1)
        if last < 0:
            return False
    if silent:
        return True
    token = state.push("fence", "code", 0)
    token.info, token.markup = "latex", "```"
    token.content = "\n".join(_line(state, number) for number in range(start, last + 1)) + "\n"
    token.map = [start, last + 1]
    state.line = last + 1
    return True


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]]
