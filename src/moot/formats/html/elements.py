"""Elements with their attributes and text: the one place where text becomes HTML."""

from __future__ import annotations

from html import escape
from typing import NewType

__all__ = ["Safe", "address", "element", "joined", "text"]

Safe = NewType("Safe", str)
"""HTML that was made here. Whatever else is a `str` is text and has to pass `text`."""

_LINKED = ("http://", "https://", "mailto:")
_GONE = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 127), "�")
"""Control characters say nothing in a page."""


def text(value: object) -> Safe:
    """A text as it is to be read."""
    return Safe(escape(str(value).translate(_GONE), quote=True))


def joined(*pieces: Safe) -> Safe:
    return Safe("".join(pieces))


def element(name: str, /, *inside: Safe, **attributes: str | bool | None) -> Safe:
    """An element; of its attributes those that are None or False are left out. `klass` is `class`."""
    given = [
        f" {_name(key)}" if value is True else f' {_name(key)}="{text(value)}"'
        for key, value in attributes.items()
        if value is not None and value is not False
    ]
    opened = f"<{name}{''.join(given)}>"
    return Safe(opened if name in ("img", "meta", "br", "hr") else f"{opened}{''.join(inside)}</{name}>")


def address(url: str) -> str | None:
    """An address that a link may lead to; None for any other."""
    return url if url.lower().startswith(_LINKED) else None


def _name(key: str) -> str:
    return {"klass": "class"}.get(key, key.replace("_", "-"))
