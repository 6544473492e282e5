"""What must be settled before the arguments are parsed: an option whose value may be left out."""

from __future__ import annotations

import re
from collections.abc import Sequence

from moot.plugins import TOOLS

LATEST = "@latest"
"""What `-c` without an id means: the newest conversation of this directory."""

PREVIOUS = "@previous"
"""What `--reply` means: the conversation that was used last, anywhere."""

ALL_TOOLS = "@all"
"""What `--tools` without names means."""

_PROMPTING = ("run", "chat")
"""Commands with such options; elsewhere `-c` is an option like any other."""

_NAMES = re.compile(r"[a-z][\w-]*(,[a-z][\w-]*)*")
_REFERENCE = re.compile(r"[0-9]{1,4}|0[0-9a-f]{3}[0-9a-f-]{0,32}")


def settle(arguments: Sequence[str]) -> list[str]:
    """The arguments with `-c` given its value: the next word when it looks like an id or a list index, else the latest.

    `--continue=TITLE` takes anything. `--tools` takes the next word when that can only be names of tools, else it means all of them.
    """
    if not arguments or arguments[0] not in _PROMPTING:
        return list(arguments)
    settled: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--":
            return [*settled, word, *rest]
        if word in ("-c", "--continue"):
            value = rest.pop(0) if rest and _REFERENCE.fullmatch(rest[0]) else LATEST
            word = f"--continue={value}"
        elif word == "--tools":
            value = rest.pop(0) if rest and _names_tools(rest[0]) else ALL_TOOLS
            word = f"--tools={value}"
        settled.append(word)
    return settled


def _names_tools(word: str) -> bool:
    """Whether it is one that exists, or has the look of one: `hello` behind `--tools` is a prompt."""
    return bool(_NAMES.fullmatch(word)) and (word in TOOLS or "," in word or "_" in word)


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether a script reads stdout, so that errors too must be documents there."""
    before = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return any(word in ("--json", "--jsonl") for word in before)
