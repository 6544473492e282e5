"""The value of truncated JSON text: what a watcher sees of tool arguments while they stream."""

from __future__ import annotations

import re

from moot.types import canonical
from moot.types.canonical import Json

_TOKEN = re.compile(r'\s+|"(?:[^"\\]|\\.)*"|[{}\[\],:]|-?\d[\d.eE+-]*|true|false|null', re.DOTALL)
_OPEN_STRING = re.compile(r'"((?:[^"\\]|\\(?:u[0-9a-fA-F]{4}|[^u]))*)', re.DOTALL)
_CLOSE = {"{": "}", "[": "]"}
_WORDS = ("true", "false", "null")


class NoValue(Exception):
    """The text has no value yet."""


def partial_json(text: str) -> Json:
    """Parse JSON text that may be truncated: close strings and brackets, drop incomplete keys and numbers.

    Raise NoValue if there is nothing to show.
    """
    try:
        return canonical.loads(text)
    except ValueError:
        pass
    try:
        return canonical.loads(_completed(text))
    except ValueError as error:
        raise NoValue from error


def _completed(text: str) -> str:
    """Return the text up to its last complete value, with all open brackets closed. Nothing after that value changes what is open."""
    stack: list[str] = []
    sound = 0
    key = False  # True if the next string of an object is a key
    position = 0
    while (match := _TOKEN.match(text, position)) is not None:
        token, position = match.group(), match.end()
        if token in _CLOSE:
            stack.append(token)
            key = token == "{"
            if len(stack) > canonical.MAX_DEPTH:
                raise NoValue
        elif token in ("}", "]"):
            if not stack:
                break
            stack.pop()
            key = False
        elif token in (",", ":"):
            key = token == "," and bool(stack) and stack[-1] == "{"
            continue
        elif token.isspace() or key:
            continue
        sound = position
    if position < len(text) and not key and (rest := _tail(text[position:])):
        return text[:position] + rest + _closed(stack)
    return _without_number_tail(text[:sound]) + _closed(stack)


def _closed(stack: list[str]) -> str:
    return "".join(_CLOSE[bracket] for bracket in reversed(stack))


def _tail(rest: str) -> str:
    """Complete a value that starts at the end of the text; return an empty string if it has no content yet."""
    if rest.startswith('"') and (match := _OPEN_STRING.match(rest)) is not None:
        return f'"{match.group(1)}"'
    return next((word for word in _WORDS if word.startswith(rest)), "")


def _without_number_tail(text: str) -> str:
    return re.sub(r"(?<=\d)[.eE+-]+$", "", text)
