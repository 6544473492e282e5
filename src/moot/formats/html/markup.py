"""HTML elements, Markdown and source code."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from html import escape
from typing import Any, NewType

from markdown_it import MarkdownIt
from markdown_it.common.normalize_url import normalizeLink
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from pygments import highlight
from pygments.formatters import HtmlFormatter

from moot.markup.code import LARGEST, find_lexer
from moot.markup.markdown import new_parser

__all__ = ["Safe", "address", "block", "element", "joined", "rendered", "text"]


Safe = NewType("Safe", str)
"""HTML built by this module. Any other `str` is text and must go through `text`."""

_SCHEMES = ("http://", "https://", "mailto:")
_REPLACED = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 127), "�")
"""Control characters, which have no meaning in a page."""


def text(value: object) -> Safe:
    """Escape a text."""
    return Safe(escape(str(value).translate(_REPLACED), quote=True))


def joined(*pieces: Safe) -> Safe:
    return Safe("".join(pieces))


def element(name: str, /, *inside: Safe, **attributes: str | bool | None) -> Safe:
    """Return an element. Attributes that are None or False are left out; `klass` stands for `class`."""
    rendered = [
        f" {_name(key)}" if value is True else f' {_name(key)}="{text(value)}"'
        for key, value in attributes.items()
        if value is not None and value is not False
    ]
    start = f"<{name}{''.join(rendered)}>"
    return Safe(start if name in ("img", "meta", "br", "hr") else f"{start}{''.join(inside)}</{name}>")


def address(url: str) -> str | None:
    """Return the address if a link may point to it."""
    return url if url.lower().startswith(_SCHEMES) else None


def _name(key: str) -> str:
    return {"klass": "class"}.get(key, key.replace("_", "-"))


_FORMATTER = HtmlFormatter[str](nowrap=True)


def block(source: str, language: str = "") -> Safe:
    """Return a block of code, labelled with its language."""
    lexer = find_lexer(language) if len(source) <= LARGEST else None
    body = text(source) if lexer is None else Safe(highlight(source.replace("\x00", "\ufffd"), lexer, _FORMATTER))
    return element("pre", element("code", body), klass="code", data_language=language or None, tabindex="0")


LARGEST_TEXT = 1_000_000
"""Maximum number of characters; a longer text is shown as plain text."""
_SHIFT = 2
"""Added to heading levels, because a message is below the title of the page and its own heading."""


def rendered(source: str) -> Safe:
    """Return Markdown as HTML."""
    if len(source) > LARGEST_TEXT:
        return element("pre", text(source), klass="long")
    return Safe(_RENDERER.render(source))


def _fence(_: object, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
    language = tokens[index].info.strip().partition(" ")[0]
    return block(tokens[index].content.removesuffix("\n"), language)


def _code_block(_: object, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
    return block(tokens[index].content.removesuffix("\n"))


def _image(_: object, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
    """Return an embedded picture, or a link to any other."""
    source = str(tokens[index].attrGet("src") or "")
    words = tokens[index].content or "picture"
    if source.startswith("data:image/"):
        return element("img", src=source, alt=words, loading="lazy")
    url = address(source)
    label = text(f"{words} ({source})")
    return label if url is None else _link(url, label)


def _link_open(_: object, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
    url = address(str(tokens[index].attrGet("href") or ""))
    return "<span>" if url is None else _link(url, Safe("")).removesuffix("</a>")


def _link_close(_: object, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
    start = index - 1
    depth = 1
    while start >= 0:
        depth += {"link_close": 1, "link_open": -1}.get(tokens[start].type, 0)
        if depth == 0:
            break
        start -= 1
    return "</span>" if address(str(tokens[start].attrGet("href") or "")) is None else "</a>"


def _heading_open(_: object, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
    return f"<{_heading(tokens[index])}>"


def _heading_close(_: object, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
    return f"</{_heading(tokens[index])}>\n"


def _table_open(_: object, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
    return '<div class="table" tabindex="0"><table>'


def _table_close(_: object, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
    return "</table></div>\n"


def _th_open(_: object, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
    return f"<th{_alignment(tokens[index])}>"


def _td_open(_: object, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
    return f"<td{_alignment(tokens[index])}>"


def _nothing(_: object, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
    return ""


def _footnote_ref(_: object, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
    return element("sup", text(f"[{tokens[index].meta['label']}]"))


def _footnote_open(_: object, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
    label = element("sup", text(f"[{tokens[index].meta['label']}]"))
    return f'<div class="footnote">{label}'


def _footnote_close(_: object, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
    return "</div>\n"


def _link(url: str, inside: Safe) -> Safe:
    return element("a", inside, href=normalizeLink(url), rel="noopener noreferrer nofollow", target="_blank")


def _heading(token: Token) -> str:
    return f"h{min(int(token.tag[1:]) + _SHIFT, 6)}"


def _alignment(token: Token) -> str:
    """Return the alignment of a column as a class, because the page's policy forbids the `style` that the library writes."""
    style = str(token.attrGet("style") or "")
    return next((f' class="{side}"' for side in ("right", "center") if style.endswith(side)), "")


def _new_renderer() -> MarkdownIt:
    parser = new_parser()
    for name, rule in _RULES.items():
        parser.add_render_rule(name, rule)
    return parser


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
    "definition": _nothing,
    "footnote_ref": _footnote_ref,
    "footnote_reference_open": _footnote_open,
    "footnote_reference_close": _footnote_close,
}
"""Replacements for the Markdown library's own HTML."""

_RENDERER = _new_renderer()
