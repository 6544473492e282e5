"""Rendering of HTML elements, Markdown and source code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import NewType

from markdown_it import MarkdownIt
from markdown_it.common.normalize_url import normalizeLink
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter

from moot.markup.code import LARGEST, find_lexer
from moot.markup.markdown import new_parser

Safe = NewType("Safe", str)
"""HTML built by this module. Any other `str` is plain text and must be passed through `text`."""

_SCHEMES = ("http://", "https://", "mailto:")
_REPLACED = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 127), "�")
"""Control characters, which are not valid in HTML."""


def text(value: object) -> Safe:
    """Escape plain text as HTML."""
    return Safe(escape(str(value).translate(_REPLACED), quote=True))


def joined(*pieces: Safe) -> Safe:
    return Safe("".join(pieces))


def element(tag: str, /, *inside: Safe, **attributes: str | bool | None) -> Safe:
    """Return an element. Attributes that are None or False are left out; `klass` is written as `class`."""
    rendered = [
        f" {name}" if value is True else f' {name}="{text(value)}"'
        for key, value in attributes.items()
        if value is not None and value is not False and (name := "class" if key == "klass" else key.replace("_", "-"))
    ]
    start = f"<{tag}{''.join(rendered)}>"
    return Safe(start if tag in ("img", "meta", "br", "hr") else f"{start}{''.join(inside)}</{tag}>")


def address(url: str) -> str | None:
    """Return the URL if links to it are allowed, otherwise None."""
    return url if url.lower().startswith(_SCHEMES) else None


_FORMATTER = HtmlFormatter[str](nowrap=True)


def block(source: str, language: str = "") -> Safe:
    """Return a block of code, labelled with its language."""
    lexer = find_lexer(language) if len(source) <= LARGEST else None
    body = text(source) if lexer is None else Safe(highlight(source.replace("\x00", "\ufffd"), lexer, _FORMATTER))
    return element("pre", element("code", body), klass="code", data_language=language or None, tabindex="0")


LARGEST_TEXT = 1_000_000
"""Maximum number of characters of a text to render as Markdown. A longer text is shown as plain text."""
_SHIFT = 2
"""Number to add to heading levels in Markdown, because these headings are below the page's title and the message's heading."""


def rendered(source: str) -> Safe:
    """Return Markdown as HTML."""
    if len(source) > LARGEST_TEXT:
        return element("pre", text(source), klass="long")
    return Safe(_RENDERER.render(source))


def _code(token: Token, language: str = "") -> str:
    return block(token.content.removesuffix("\n"), language)


def _footnote(token: Token) -> str:
    return element("sup", text(f"[{token.meta['label']}]"))


def _image(tokens: Sequence[Token], index: int) -> str:
    """Return an embedded picture, or a link if the picture would have to be downloaded."""
    source = str(tokens[index].attrGet("src") or "")
    words = tokens[index].content or "picture"
    if source.startswith("data:image/"):
        return element("img", src=source, alt=words, loading="lazy")
    url = address(source)
    label = text(f"{words} ({source})")
    return label if url is None else _link(url, label)


def _link_open(tokens: Sequence[Token], index: int) -> str:
    url = address(str(tokens[index].attrGet("href") or ""))
    return "<span>" if url is None else _link(url, Safe("")).removesuffix("</a>")


def _link_close(tokens: Sequence[Token], index: int) -> str:
    start = index - 1
    depth = 1
    while start >= 0:
        depth += {"link_close": 1, "link_open": -1}.get(tokens[start].type, 0)
        if depth == 0:
            break
        start -= 1
    return "</span>" if address(str(tokens[start].attrGet("href") or "")) is None else "</a>"


def _link(url: str, inside: Safe) -> Safe:
    return element("a", inside, href=normalizeLink(url), rel="noopener noreferrer nofollow", target="_blank")


def _heading(token: Token) -> str:
    return f"h{min(int(token.tag[1:]) + _SHIFT, 6)}"


def _alignment(token: Token) -> str:
    """Return the alignment of a table column as a class, because the page's policy forbids the `style` that the library writes."""
    style = str(token.attrGet("style") or "")
    return next((f' class="{side}"' for side in ("right", "center") if style.endswith(side)), "")


_RULES: dict[str, Callable[[Sequence[Token], int], str]] = {
    "fence": lambda tokens, index: _code(tokens[index], tokens[index].info.strip().partition(" ")[0]),
    "code_block": lambda tokens, index: _code(tokens[index]),
    "image": _image,
    "link_open": _link_open,
    "link_close": _link_close,
    "heading_open": lambda tokens, index: f"<{_heading(tokens[index])}>",
    "heading_close": lambda tokens, index: f"</{_heading(tokens[index])}>\n",
    "table_open": lambda tokens, index: '<div class="table" tabindex="0"><table>',
    "table_close": lambda tokens, index: "</table></div>\n",
    "th_open": lambda tokens, index: f"<th{_alignment(tokens[index])}>",
    "td_open": lambda tokens, index: f"<td{_alignment(tokens[index])}>",
    "definition": lambda tokens, index: "",
    "footnote_ref": lambda tokens, index: _footnote(tokens[index]),
    "footnote_reference_open": lambda tokens, index: f'<div class="footnote">{_footnote(tokens[index])}',
    "footnote_reference_close": lambda tokens, index: "</div>\n",
}
"""Token type → renderer that replaces the Markdown library's own HTML."""


def _new_renderer() -> MarkdownIt:
    parser = new_parser()
    for name, rule in _RULES.items():
        parser.add_render_rule(name, _render_rule(rule))
    return parser


def _render_rule(rule: Callable[[Sequence[Token], int], str]) -> Callable[..., str]:
    """Return a render rule that takes the Markdown library's arguments: renderer, tokens, index, options and environment."""

    def render(_: object, tokens: Sequence[Token], index: int, *rest: object) -> str:
        return rule(tokens, index)

    return render


_RENDERER = _new_renderer()
