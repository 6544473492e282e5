"""Detection of plain requests to act: to run a command, write a file or replace text.

A very small model chooses badly among many tools. So a tool with side effects is offered only if the user's message clearly asks for it,
and then it is the only one. Whether the call may run is decided like any other.
"""

from __future__ import annotations

import re

from moot.types.canonical import JsonObject

# a word that looks like a file name; with this hint, half a billion parameters choose the right tool
FILE = re.compile(r"(?<![\w/.:-])[\w/.-]*\w\w\.[A-Za-z]\w{0,5}\b(?!/)")
ACTING = ("shell", "write_file", "edit_file")
"""The tools that a request may ask for."""
EXAMPLES: dict[str, tuple[tuple[str, JsonObject], ...]] = {
    "shell": (
        ("run `ls -l docs`", {"command": "ls -l docs"}),
        ("Please run make test for me", {"command": "make test"}),
    ),
    "write_file": (
        ("create a file list.txt with the text red", {"path": "list.txt", "content": "red"}),
        ("Write the line PORT=80 into .settings", {"path": ".settings", "content": "PORT=80"}),
    ),
    "edit_file": (
        ("replace cat by dog in pets.py", {"path": "pets.py", "edits": [{"old_text": "cat", "new_text": "dog"}]}),
        ("In a.ini change size = 5 to size = 7", {"path": "a.ini", "edits": [{"old_text": "size = 5", "new_text": "size = 7"}]}),
    ),
}
"""Tool → example requests and their arguments."""
OUTCOMES: tuple[tuple[str, str], ...] = (
    ("run `make test`\n\nOutput of shell:\n3 passed in 0.2 s", "The tests were run: 3 passed."),
    (
        "create a file list.txt with the text red\n\nOutput of write_file:\nWrote list.txt: 1 line, 3 bytes.",
        "I wrote the text red into list.txt.",
    ),
    ("run `rm old.txt`\n\nOutput of shell:\nError: The user denied this call.", "You did not allow it, so nothing was done."),
)
"""Example outcomes and how to report them."""
_LONGEST = 600
"""Longer messages are not plain requests."""
_POLITE = re.compile(
    r"(?:(?:ok|okay|now|then|please|hey|moot|(?:can|could|would|will) you|i want you to|i(?:'d| would) like you to|use the shell to"
    r"|in the shell|go and)[ ,]+)*",
    re.IGNORECASE,
)
_PLACE = re.compile(r"in (?:the file )?`?[\w/.-]{1,200}`?[ ,:]+", re.IGNORECASE)
_RUN = re.compile(r"(?:run|execute)\s+(?!(?:me|us|through|over|away|out)\b)\S", re.IGNORECASE)
_WRITE = re.compile(r"(?:create|write|make|save|put|store|generate)\b", re.IGNORECASE)
_EDIT = re.compile(r"(?:replace|change|rename|substitute|swap|turn)\b", re.IGNORECASE)
_INSTEAD = re.compile(r"\s(?:by|with|to|into|for|->|→)\s", re.IGNORECASE)
_NAMED = re.compile(r"(?<![\w/.])(?:[\w-]+/)*(?:\w[\w-]*)?\.[a-zA-Z][\w.-]{0,30}\b")
"""A file name where one is expected: also short ones, and those that start with a dot."""


def wish_of(text: str) -> str | None:
    """Return the tool that the text plainly asks for, or None."""
    words = " ".join(text[: _LONGEST + 1].split())
    if len(words) > _LONGEST:
        return None
    words = words[_after(_POLITE, words) :]
    if _RUN.match(words):
        return "shell"
    rest = words[_after(_PLACE, words) :]
    named = FILE.search(words) or _NAMED.search(words)
    if named and _EDIT.match(rest) and _INSTEAD.search(rest):
        return "edit_file"
    return "write_file" if named and _WRITE.match(rest) else None


def _after(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.match(text)
    return found.end() if found else 0
