"""The spellings of a string: as it is, escaped in JSON however deep, in percent signs, as entities of HTML, or a mixture. Pure."""

from __future__ import annotations

import re
from functools import cache
from html.entities import html5

__all__ = ["DEEP", "character", "spelled"]

DEEP = 64
"""Backslashes that six levels of JSON in JSON make of one character; without a bound a long run of them would take for ever."""
_CONTROLS = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}


def spelled(string: str) -> str:
    """A pattern for the string in any spelling."""
    pieces: list[str] = []
    for run in re.findall(r"\\+|[^\\]", string, re.DOTALL):
        if run[0] == "\\":
            # a first run is looked for where it begins alone: from each place in a long one it would take for ever
            plain = rf"\\{{{len(run)},{len(run) * DEEP}}}" if pieces else rf"(?<!\\)\\{{{len(run)},}}"
            pieces.append(rf"(?:{plain}|(?:\\{{1,{DEEP}}}+u005[cC]|%5[cC]|&{_entity(run[0])}){{{len(run)}}})")
        else:
            pieces.append(character(run))
    return "".join(pieces)


@cache
def character(character: str) -> str:
    """A pattern for one character in any spelling. Each way begins with a letter of its own, by which the others are passed over."""
    first, *more = (character.encode("utf-16-be", "surrogatepass")[at : at + 2].hex() for at in range(0, 4, 2))
    units = f"u{_either(first)}" + "".join(rf"\\{{1,{DEEP}}}+u{_either(unit)}" for unit in more if unit)
    percent = "".join(f"%{_either(f'{byte:02x}')}" for byte in character.encode("utf-8", "surrogatepass"))
    entity, plain = _entity(character), re.escape(character)
    behind = [units, f"u0026{entity}"]
    if character in _CONTROLS:
        behind.append(_CONTROLS[character])
    elif character in '"/':
        behind.append(plain)
    if character == "&":  # which all that stands for it begins with
        return rf"(?:&{entity}|\\{{1,{DEEP}}}+(?:u0026{entity}|u0026)|{percent}|&)"
    return rf"(?:{plain}|\\{{1,{DEEP}}}+(?:{'|'.join(behind)})|{percent}|&{entity})"


def _entity(character: str) -> str:
    """Behind the ampersand, which may be one itself."""
    number = ord(character)
    names = [name for name, value in html5.items() if value == character and name.endswith(";")]
    return f"(?:amp;){{0,3}}(?:{'|'.join([*names, f'#0{{0,7}}{number};', f'#[xX]0{{0,7}}{_hexadecimal(number)};'])})"


def _hexadecimal(number: int) -> str:
    return _either(f"{number:x}")


def _either(digits: str) -> str:
    """Hexadecimal digits in either case."""
    return "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in digits)
