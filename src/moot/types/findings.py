"""Findings of a review: problems with a file and a line, read from an answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

FINDINGS = "findings"
"""The key in `Run.settings` that asks for the findings of an answer, and the name of their data part."""

MAX_FINDINGS = 200
_CHARACTERS = 2_000
"""Maximum length of a finding's text."""

_PLACE = re.compile(
    r"^[ \t]{0,20}(?:(?:[-*+]|\d{1,4}[.)]|#{1,6})[ \t]{1,4})?[*_`\[(]{0,6}"  # a list item, heading or emphasis
    r"(?P<path>[^\s:*`\[\]()<>|]{1,300}):(?P<line>[1-9]\d{0,6})(?!\d)(?:[-–:]\d{1,7}){0,2}"
    r"[*_`\])]{0,6}[ \t]{0,4}(?:[:.,–—-](?=\s))?",
    re.MULTILINE,
)
_FENCE = re.compile(r"^[ \t]{0,20}(```|~~~).*?(?:^[ \t]{0,20}\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem in a file."""

    path: str
    line: int
    text: str


def findings_in(answer: str) -> Iterator[Finding]:
    """Yield the findings in an answer: its paragraphs and list items that start with `path:line`. Code blocks are ignored."""
    answer = _FENCE.sub(lambda found: " " * len(found[0]), answer)
    places = [place for place in _PLACE.finditer(answer) if set(place["path"]) & {".", "/"}][:MAX_FINDINGS]  # not a host with a port
    ends = [*(place.start() for place in places[1:]), len(answer)]
    for place, end in zip(places, ends, strict=False):
        text = re.split(r"\n[ \t]*\n", answer[place.end() : end], maxsplit=1)[0]
        yield Finding(place["path"], int(place["line"]), " ".join(text.split())[:_CHARACTERS])
