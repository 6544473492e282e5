"""Markdown as HTML: no HTML in it, no picture from elsewhere, no address that does something, no formula taken apart."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

from moot.formats.html.code import block
from moot.formats.html.elements import Safe, address, element, text
from moot.formats.html.formulas import formulas

__all__ = ["rendered"]

LARGEST = 1_000_000
"""Characters; a longer text is shown as it is written."""
_SHIFT = 2
"""A message's headings stand below the page's title and the message's own heading."""


def rendered(source: str) -> Safe:
    """What somebody wrote, as HTML."""
    if len(source) > LARGEST:
        return element("pre", text(source), klass="long")
    return Safe(_READER.render(source))


def _fence(_: object, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
    language = tokens[index].info.strip().partition(" ")[0]
    return block(tokens[index].content.removesuffix("\n"), language)


def _code_block(_: object, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
    return block(tokens[index].content.removesuffix("\n"))


def _image(_: object, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
    """A picture that stands in the text itself; of any other only where it would be."""
    source = str(tokens[index].attrGet("src") or "")
    words = tokens[index].content or "picture"
    if source.startswith("data:image/"):
        return element("img", src=source, alt=words, loading="lazy")
    url = address(source)
    said = text(f"{words} ({source})")
    return said if url is None else _link(url, said)


def _link_open(_: object, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
    url = address(str(tokens[index].attrGet("href") or ""))
    return "<span>" if url is None else _link(url, Safe("")).removesuffix("</a>")


def _link_close(_: object, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
    opened = index - 1
    depth = 1
    while opened >= 0:
        depth += {"link_close": 1, "link_open": -1}.get(tokens[opened].type, 0)
        if depth == 0:
            break
        opened -= 1
    return "</span>" if address(str(tokens[opened].attrGet("href") or "")) is None else "</a>"


def _heading_open(_: object, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
    return f"<{_heading(tokens[index])}>"


def _heading_close(_: object, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
    return f"</{_heading(tokens[index])}>\n"


def _table_open(_: object, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
    return '<div class="table" tabindex="0"><table>'


def _table_close(_: object, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
    return "</table></div>\n"


def _th_open(_: object, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
    return f"<th{_side(tokens[index])}>"


def _td_open(_: object, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
    return f"<td{_side(tokens[index])}>"


def _link(url: str, inside: Safe) -> Safe:
    return element("a", inside, href=url, rel="noopener noreferrer nofollow", target="_blank")


def _heading(token: Token) -> str:
    return f"h{min(int(token.tag[1:]) + _SHIFT, 6)}"


def _side(token: Token) -> str:
    """The side of a column, which the library says in a `style` that the page does not allow."""
    style = str(token.attrGet("style") or "")
    return next((f' class="{side}"' for side in ("right", "center") if style.endswith(side)), "")


def _reader() -> MarkdownIt:
    reader = MarkdownIt("commonmark", {"html": False, "maxNesting": 60}).enable(["table", "strikethrough"])
    formulas(reader)
    for name, rule in _RULES.items():
        reader.add_render_rule(name, rule)
    return reader


_RULES = {
    "fence": _fence,
    "code_block": _code_block,
    "image": _image,
    "link_open": _link_open,
    "link_close": _link_close,
    "heading_open": _heading_open,
    "heading_close": _heading_close,
    "table_open": _table_open,
    "table_close": _table_close,
    "th_open": _th_open,
    "td_open": _td_open,
}
"""What the library would write otherwise."""

_READER = _reader()
