"""Templates: texts with variables in double braces, `{{name}}`, or `{{field.path}}` for the fields of a JSON value.

In a shell line, each value is quoted so that it stays one word.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping

from moot.types.canonical import Json, dumps

_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_FIELD = re.compile(r"\{\{\s*([\w.-]+)\s*\}\}")

# contexts in which a quoted value could still be expanded, or could end the construct
_UNSAFE = ("`", "$(", "${", "$'", '$"', "<<", "((", "[[", "#")


def variables_in(value: Json) -> Iterator[str]:
    """Yield the variables in all texts of a value, in order."""
    if isinstance(value, str):
        yield from _VARIABLE.findall(value)
    elif isinstance(value, list):
        for item in value:
            yield from variables_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from variables_in(item)


def fill(value: Json, variables: Mapping[str, str]) -> Json:
    """Return the value with all variables replaced. Raise KeyError for an unknown variable."""
    if isinstance(value, str):
        return _VARIABLE.sub(lambda found: variables[found[1]], value)
    if isinstance(value, list):
        return [fill(item, variables) for item in value]
    return {name: fill(item, variables) for name, item in value.items()} if isinstance(value, dict) else value


def fill_line(line: str, variables: Mapping[str, str]) -> str:
    """Return a shell line with all variables replaced by their values, which are quoted as their context requires.

    Raise KeyError for an unknown variable, and ValueError if `check_line` raises it.
    """
    check_line(line)
    pieces, quote, at = list[str](), "", 0
    for found in _VARIABLE.finditer(line):
        quote = _quote_after(line[at : found.start()], quote)
        value = variables[found[1]].replace("\0", "")
        pieces += [line[at : found.start()], _quoted(value, quote)]
        at = found.end()
    return "".join([*pieces, line[at:]])


def check_line(line: str) -> None:
    """Raise ValueError if the line has both variables and constructs in which no quoting is safe."""
    if _VARIABLE.search(line) is None:
        return
    for sign in _UNSAFE:
        if sign in line:
            raise ValueError(f"A command with variables can't contain {sign!r}, because their values could not be quoted safely.")
    if re.search(r"\\\{\{", line):
        raise ValueError("A variable can't follow a backslash, because its value could not be quoted safely.")


def _quote_after(text: str, quote: str) -> str:
    """Return the quote that is open after the text, if `quote` was open before it."""
    escaped = False
    for letter in text:
        if escaped:
            escaped = False
        elif letter == "\\" and quote != "'":
            escaped = True
        elif letter == quote:
            quote = ""
        elif not quote and letter in "'\"":
            quote = letter
    return quote


def _quoted(value: str, quote: str) -> str:
    if quote == "'":
        return value.replace("'", "'\\''")
    if quote == '"':
        return re.sub(r'([\\"$`])', r"\\\1", value)
    return shlex.quote(value)


def fields_in(template: str) -> list[str]:
    """Return the paths of the fields in a template, in order."""
    return _FIELD.findall(template)


def fill_fields(template: str, payload: Json) -> str:
    """Replace each `{{field.path}}` with that field of the payload, and `{{body}}` with the whole payload. A missing field becomes empty.

    Values are not expanded again.
    """
    return _FIELD.sub(lambda match: _text(payload if match[1] == "body" else _field(payload, match[1].split("."))), template)


def _field(value: Json, path: list[str]) -> Json:
    for step in path:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


def _text(value: Json) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else dumps(value).decode()
