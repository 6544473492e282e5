"""Convert Markdown paragraphs to styled text, and highlight code."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from urllib.parse import urlsplit

from markdown_it.token import Token
from pygments.token import Comment, Generic, Keyword, Literal, Name, Number, Operator, String

from moot.cli.terminal.look import Look, tidy, tidy_line
from moot.cli.terminal.text import (
    ADDED,
    BOLD,
    CODE,
    COMMENT,
    CONSTANT,
    DIM,
    ITALIC,
    KEYWORD,
    LINK,
    PLAIN,
    REMOVED,
    STRIKE,
    STRING,
    Line,
    Style,
    expanded,
)
from moot.markup.code import CodeLine, StreamHighlighter, TokenType

_STYLES: dict[str, Style] = {"em": ITALIC, "strong": BOLD, "s": STRIKE}


def inline_pieces(look: Look, tokens: Sequence[Token], style: Style = 0) -> Line:
    """Return the text as styled pieces; a line break is a separate piece. Without colour, the marks of emphasis and code are kept."""
    return _Inline(look, style).read(tokens)


class _Inline:
    def __init__(self, look: Look, style: Style) -> None:
        self._look = look
        self._styles = [style]
        self._links: list[tuple[Token, int]] = []
        """Open links, each with the index of its first piece."""
        self._pieces: Line = []
        self._task = False

    def read(self, tokens: Sequence[Token]) -> Line:
        for token in tokens:
            kind, _, side = token.type.rpartition("_")
            mark = "" if self._look.colour else token.markup
            if kind not in _STYLES:
                self._token(token)
            elif side == "open":
                self._styles.append(self._styles[-1] | _STYLES[kind])
                self._add(mark)
            else:
                self._add(mark)
                self._styles.pop()
        return self._pieces

    def _token(self, token: Token) -> None:
        match token.type:
            case "text" | "text_special":
                text = self._fit(token.content)
                self._add(text.removeprefix(" ") if self._task else text)
                self._task = False
            case "code_inline":
                mark = "" if self._look.colour else token.markup
                self._add(mark + self._fit(token.content) + mark, CODE)
            case "softbreak" | "hardbreak":
                self._pieces.append(("\n", 0))
            case "link_open":
                self._links.append((token, len(self._pieces)))
                self._styles.append(self._styles[-1] | LINK)
            case "link_close":
                link, begin = self._links.pop()
                self._styles.pop()
                self._address(link, begin, "href")
            case "image":
                self._add("[image] ", DIM)
                begin = len(self._pieces)
                self._styles.append(self._styles[-1] | LINK)
                self.read(token.children or [])
                self._styles.pop()
                self._address(token, begin, "src")
            case "footnote_ref":
                self._add(tidy_line(self._look, f"[^{token.meta['label']}]"))
            case "html_inline":  # a task's checkbox: the list item shows it, so drop the space that follows
                self._task = True
            case _:
                self._add(self._fit(token.content))

    def _add(self, text: str, style: Style = 0) -> None:
        if text:
            self._pieces.append((text, self._styles[-1] | style))

    def _fit(self, text: str) -> str:
        """Clean text, including the characters that entities such as `&#10;` represent."""
        return tidy(self._look, text).replace("\t", "    ").replace("\n", " ")

    def _address(self, token: Token, begin: int, attribute: str) -> None:
        """Add a link's address unless its text is that address, and its host if the address could be misread."""
        address, title = str(token.attrGet(attribute) or ""), str(token.attrGet("title") or "")
        label = "".join(text for text, _ in self._pieces[begin:])
        shown = "" if token.info == "auto" or label == address else f" ({address})"
        host = _hidden_host(address)
        self._add(_spaced(self._look, f"{shown} [host: {host}]" if host else shown), DIM)
        if title:
            self._add(_spaced(self._look, f' "{title}"' if title.isascii() else f" “{title}”"), DIM)


def _spaced(look: Look, text: str) -> str:
    """Return untrusted text as one clean line with a leading space, or an empty string if the text is empty."""
    return " " + tidy_line(look, text) if text else ""


def _hidden_host(address: str) -> str:
    """Return the host if it could be mistaken for another host, otherwise an empty string."""
    try:
        parts = urlsplit(unicodedata.normalize("NFKC", address))
        host = parts.hostname or ""
    except ValueError:
        return "unreadable"
    if not parts.netloc:
        return ""
    if "@" in parts.netloc or "\\" in address or "%" in parts.netloc:
        return _ascii(host)
    return "" if address.partition("://")[2].partition("/")[0].isascii() else _ascii(host)


def _ascii(host: str) -> str:
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        return host.encode("ascii", "backslashreplace").decode()


_CODE_STYLES: tuple[tuple[TokenType, Style], ...] = (
    (Keyword.Constant, CONSTANT),
    (Name.Builtin.Pseudo, CONSTANT),
    (Keyword, KEYWORD),
    (Operator.Word, KEYWORD),
    (Name.Tag, KEYWORD),
    (Name.Attribute, LINK),
    (Number, CONSTANT),
    (String, STRING),
    (Literal, STRING),
    (Comment, COMMENT),
    (Operator, LINK),
    (Generic.Inserted, ADDED),
    (Generic.Deleted, REMOVED),
    (Generic.Heading, COMMENT),
    (Generic.Subheading, COMMENT),
)


def highlighted(text: str, language: str) -> list[Line]:
    """Return the highlighted lines of a complete text."""
    return [styled(line) for line in StreamHighlighter(language).add([expanded(line) for line in text.split("\n")])]


def styled(line: CodeLine) -> Line:
    """Return a highlighted line in terminal styles."""
    return [(text, _style(kind)) for kind, text in line]


@lru_cache(maxsize=256)
def _style(kind: TokenType) -> Style:
    return next((style for one, style in _CODE_STYLES if kind in one), PLAIN)
