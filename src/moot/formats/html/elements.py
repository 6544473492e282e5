"""HTML elements: the only place where text becomes HTML."""

from __future__ import annotations

from html import escape
from typing import NewType

__all__ = ["Safe", "address", "element", "joined", "text"]

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
