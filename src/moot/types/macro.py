"""Macros in the text of a prompt: `@{NAME}` stands for another text, and `@{define NAME, TEXT}` defines one."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping

SIGN = re.compile(r"(?<![\w@/])@")
"""The start of a reference. E-mail addresses don't contain it."""
_FENCE = re.compile(r"^ {0,3}(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})[^\n]*$.*?(?:^ {0,3}(?P=fence)[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_PARAGRAPHS = re.compile(r"(\n[ \t]*\n)")
_TICKS = re.compile(r"`+")

_MACRO = re.compile(r"\{([A-Za-z_][\w-]*)\}")
_DEFINITION = re.compile(r"\{define[ \t]+([A-Za-z_][\w-]*)[ \t]*,((?:[^{}]++|\{[^{}]*+\})*+)\}")
"""The text of a macro can contain other macros and pairs of braces, but no braces within braces."""


def macros_in(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the start, end and name of each macro that a text uses outside of definitions."""
    if "@{" not in text:
        return
    defined = deque(definitions(text))
    for sign in SIGN.finditer(without_code(text)):
        while defined and defined[0][1] <= sign.start():
            defined.popleft()
        inside = bool(defined) and defined[0][0] <= sign.start()
        if not inside and (match := _MACRO.match(text, sign.end())) is not None:
            yield sign.start(), match.end(), match[1]


def definitions(text: str) -> Iterator[tuple[int, int, str, str]]:
    """Yield the start, end, name and text of each `@{define NAME, TEXT}`."""
    at = 0
    for sign in SIGN.finditer(without_code(text)) if "@{define" in text else ():
        if sign.start() >= at and (found := definition(text, sign.end())) is not None:
            name, value, at = found
            yield sign.start(), at, name, value


def definition(text: str, at: int) -> tuple[str, str, int] | None:
    """Return the name, text and end of the definition whose `@` ends at this position; None if there is none or it is not closed."""
    match = _DEFINITION.match(text, at)
    return (match[1], match[2].strip(), match.end()) if match is not None else None


def cycles(macros: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """Yield each macro that contains itself, as a path from its name back to the same name. Macros on an earlier path are skipped."""
    uses = {name: list(dict.fromkeys(used for _, _, used in macros_in(text) if used in macros)) for name, text in macros.items()}
    found: set[str] = set()
    for name in macros:
        path = () if name in found else _path_back(name, uses)
        found.update(path)
        if path:
            yield path


def _path_back(name: str, uses: Mapping[str, list[str]]) -> tuple[str, ...]:
    """Return the shortest path from a macro back to itself through the macros that it uses; empty if there is none."""
    waiting: deque[tuple[str, ...]] = deque([(name,)])
    seen: set[str] = set()
    while waiting:
        path = waiting.popleft()
        for used in uses[path[-1]]:
            if used == name:
                return (*path, used)
            if used not in seen:
                seen.add(used)
                waiting.append((*path, used))
    return ()


def without_code(text: str) -> str:
    """Return the text with spaces in place of Markdown code, so that all positions stay the same."""
    if "`" in text or "~~~" in text:
        text = _FENCE.sub(lambda fence: " " * len(fence[0]), text)
        text = "".join(map(_without_spans, _PARAGRAPHS.split(text)))
    return text


def _without_spans(paragraph: str) -> str:
    ticks = list(_TICKS.finditer(paragraph))
    closing: list[int | None] = [None] * len(ticks)
    """For each run of backticks, the next one of the same length."""
    later: dict[int, int] = {}
    for number in range(len(ticks) - 1, -1, -1):
        length = len(ticks[number][0])
        closing[number] = later.get(length)
        later[length] = number
    pieces: list[str] = []
    at = number = 0
    while number < len(ticks):
        if (end := closing[number]) is not None:
            pieces += [paragraph[at : ticks[number].start()], " " * (ticks[end].end() - ticks[number].start())]
            at, number = ticks[end].end(), end
        number += 1
    return "".join([*pieces, paragraph[at:]])
