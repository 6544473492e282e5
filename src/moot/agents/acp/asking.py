"""The agent's requests in terms of moot's permissions, and its permission requests."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from moot.convert.acp import State, call_of
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.effect import Effect
from moot.types.outside import Option, OutsideCall

_EFFECTS: dict[str, frozenset[Effect]] = {
    "read": frozenset({"read"}),
    "search": frozenset({"read"}),
    "think": frozenset({"read"}),
    "edit": frozenset({"write"}),
    "delete": frozenset({"write"}),
    "move": frozenset({"write"}),
    "execute": frozenset({"execute"}),
    "fetch": frozenset({"network"}),
}
"""Kind of call → effects. A call of any other kind may have every effect."""
_ANYTHING: frozenset[Effect] = frozenset({"execute", "write", "network"})
_LIKE = {"read": "read_file", "search": "search_files", "edit": "edit_file", "execute": "shell", "fetch": "fetch_url"}
_COMMANDS = ("command", "cmd", "script")
_PATHS = ("path", "file_path", "filePath", "filepath", "absolute_path", "filename", "file")
_ADDRESSES = ("url", "uri")


@dataclass(slots=True)
class Grants:
    """Permissions granted with a call for its later requests: the file of an edit, the command of a terminal."""

    paths: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Call and absolute path."""
    commands: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Call and command line."""

    def add(self, call: OutsideCall, kind: str, places: list[str]) -> None:
        """Remember an allowed call until it has its output."""
        if kind in ("edit", "delete", "move"):
            self.paths += [(call.tool_call, os.path.normpath(place)) for place in places]
        elif kind == "execute":
            self.commands.append((call.tool_call, call.subject))

    def has_path(self, state: State, path: str) -> bool:
        """Return True if an allowed, running call is about that file."""
        return any(place == os.path.normpath(path) and _runs(state, call) for call, place in self.paths)

    def has_command(self, state: State, line: str) -> bool:
        return any(command == line and _runs(state, call) for call, command in self.commands)


def _runs(state: State, call: str) -> bool:
    return any(known.id == call and not known.settled for known in state.calls)


def permission(
    state: State, asked: JsonObject, given: Json, options: tuple[Option, ...], directory: Path
) -> tuple[OutsideCall, str, list[str]] | None:
    """Return the call that an agent asks about, its kind and the files it names, or None if the message has no such call.

    `given` is the call's input as the message shows it, which is what is authorized.
    """
    call = call_of(state, str(asked.get("toolCallId", "")))
    if call is None:
        return None
    kind = call.kind or str(asked.get("kind") or "")
    places = _places(given, asked)
    arguments: JsonObject = dict(given) if isinstance(given, dict) else {"input": given}
    if asked.get("rawInput") in (None, {}) and call.diff:
        arguments["diff"] = call.diff  # gemini shows what it would write only here
    subject = _subject(kind, arguments, call.title, places, directory)
    outside = OutsideCall(
        call.id,
        call.name,
        call.title or call.name,
        dumps(arguments),
        _EFFECTS.get(kind, _ANYTHING),
        subject,
        options,
        like=_LIKE.get(kind, ""),
    )
    return outside, kind, places


def _places(arguments: Json, asked: JsonObject) -> list[str]:
    """Return the files that a call names, in its input, locations and changes."""
    fields = arguments if isinstance(arguments, dict) else {}
    found = [str(fields[name]) for name in _PATHS if isinstance(fields.get(name), str)]
    for name in ("locations", "content"):
        items = asked.get(name)
        for item in items if isinstance(items, list) else []:
            if isinstance(item, dict) and isinstance(item.get("path"), str):
                found.append(str(item["path"]))
    return list(dict.fromkeys(found))


def _subject(kind: str, arguments: JsonObject, title: str, places: list[str], directory: Path) -> str:
    """Return what rules match: a command line, a path or a URL."""
    for name in _COMMANDS if kind == "execute" else ():
        value = arguments.get(name)
        if isinstance(value, str):
            return value
        if isinstance(value, list):
            return shlex.join(str(word) for word in value)
    if places and kind != "execute":
        return shown_path(places[0], directory)
    address = next((str(arguments[name]) for name in _ADDRESSES if isinstance(arguments.get(name), str)), "")
    return address or title


def shown_path(path: str, directory: Path) -> str:
    """Return a path in the form that rules for moot's own tools use: relative if it is below the directory."""
    whole = Path(os.path.normpath(directory / path))
    return str(whole.relative_to(directory)) if whole.is_relative_to(directory) else str(whole)


def line_of(command: str, words: list[str]) -> str:
    """Return a command with its arguments, quoted for a shell. A command without arguments counts as a command line."""
    return shlex.join([command, *words]) if words else command
