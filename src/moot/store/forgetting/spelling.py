"""Patterns for all spellings of a string: plain, JSON-escaped at any depth, percent-encoded, as HTML entities, or mixed. Pure."""

from __future__ import annotations

import re
from functools import cache
from html.entities import html5

__all__ = ["DEEP", "character", "spelled"]

DEEP = 64
"""Number of backslashes that six levels of nested JSON make of one character; bounded, because long runs would take very long."""
_CONTROLS = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}


def spelled(string: str) -> str:
    """Return a pattern for the string in any spelling."""
    pieces: list[str] = []
    for run in re.findall(r"\\+|[^\\]", string, re.DOTALL):
        if run[0] == "\\":
            # an initial run is matched only from its start: matching from each position in a long run would take very long
            plain = rf"\\{{{len(run)},{len(run) * DEEP}}}" if pieces else rf"(?<!\\)\\{{{len(run)},}}"
            pieces.append(rf"(?:{plain}|(?:\\{{1,{DEEP}}}+u005[cC]|%5[cC]|&{_entity(run[0])}){{{len(run)}}})")
        else:
            pieces.append(character(run))
    return "".join(pieces)


@cache
def character(character: str) -> str:
    """Return a pattern for one character in any spelling. Each alternative starts with a different letter, so that most fail at once."""
    first, *more = (character.encode("utf-16-be", "surrogatepass")[at : at + 2].hex() for at in range(0, 4, 2))
    units = f"u{_either(first)}" + "".join(rf"\\{{1,{DEEP}}}+u{_either(unit)}" for unit in more if unit)
    percent = "".join(f"%{_either(f'{byte:02x}')}" for byte in character.encode("utf-8", "surrogatepass"))
    entity, plain = _entity(character), re.escape(character)
    behind = [units, f"u0026{entity}"]
    if character in _CONTROLS:
        behind.append(_CONTROLS[character])
    elif character in '"/':
        behind.append(plain)
    if character == "&":  # all its entities start with it
        return rf"(?:&{entity}|\\{{1,{DEEP}}}+(?:u0026{entity}|u0026)|{percent}|&)"
    return rf"(?:{plain}|\\{{1,{DEEP}}}+(?:{'|'.join(behind)})|{percent}|&{entity})"


def _entity(character: str) -> str:
    """Return a pattern for the text after the ampersand, which may itself be escaped."""
    number = ord(character)
    names = [name for name, value in html5.items() if value == character and name.endswith(";")]
    return f"(?:amp;){{0,3}}(?:{'|'.join([*names, f'#0{{0,7}}{number};', f'#[xX]0{{0,7}}{_hexadecimal(number)};'])})"


def _hexadecimal(number: int) -> str:
    return _either(f"{number:x}")


def _either(digits: str) -> str:
    """Match hexadecimal digits in either case."""
    return "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in digits)
