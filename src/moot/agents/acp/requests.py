"""Handle an agent's requests during a turn: permissions, files and terminals. All of them are subject to moot's policy."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import get_args

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from moot.agents.acp.connection import Refuse
from moot.agents.outside.rpc import INTERNAL, INVALID_PARAMS, METHOD_NOT_FOUND, Incoming
from moot.agents.outside.turn import Turn
from moot.convert.agents.acp import State, call_of
from moot.convert.vendor import as_list, as_object, count
from moot.errors import FenceLost, MootError, NotFound
from moot.guard.paths import Paths
from moot.guard.processes import Child, child_environment, forbidden, spawn
from moot.guard.roots import allowed_folders
from moot.guard.sandbox.protected import Watch
from moot.types.approval import Effect, Option, OptionKind, OutsideAnswer, OutsideCall
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.chunk import Chunk, tool_denied, tool_error, tool_output
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.message import is_tool
from moot.types.sandbox import Confinement

NOT_FOUND = -32002
LARGEST = 10_000_000
"""Maximum size of a file to read, in bytes."""


def read_text(paths: Paths, path: str, line: int, limit: int | None) -> str:
    """Return at most `limit` lines of a file, starting at line number `line` (from 1). Raise Refuse if the file can't be read."""
    try:
        with paths.open_read(path) as stream:
            data = stream.read(LARGEST + 1)
    except NotFound as error:
        raise Refuse(NOT_FOUND, f"Resource not found: {path}") from error
    except MootError as error:
        raise Refuse(INVALID_PARAMS, error.message) from error
    except OSError as error:
        raise Refuse(INTERNAL, f"{path}: {error.strerror or error}") from error
    if len(data) > LARGEST:
        raise Refuse(INVALID_PARAMS, f"{path} has more than {LARGEST:,} bytes.")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refuse(INVALID_PARAMS, f"{path} is not UTF-8 text.") from error
    if line <= 1 and limit is None:
        return text
    first = max(line, 1) - 1
    return "".join(islice(text.splitlines(keepends=True), first, None if limit is None else first + limit))


def write_text(paths: Paths, path: str, content: str) -> None:
    """Replace the file's content atomically; missing folders are created. Raise Refuse if that fails."""
    try:
        with paths.open_write(path) as stream:
            stream.write(content.encode("utf-8", "replace"))
    except MootError as error:
        raise Refuse(INVALID_PARAMS, error.message) from error
    except OSError as error:
        raise Refuse(INTERNAL, f"{path}: {error.strerror or error}") from error


KEPT, MOST_KEPT = 1_000_000, 8_000_000
"""Default and maximum number of bytes of output to keep. The last bytes are kept."""
_READ = 1 << 16


class _Terminal:
    """A terminal: one command and its output."""

    def __init__(self, child: Child, keep: int, watch: Watch | None = None) -> None:
        self.child = child
        self._watch = watch
        self.ended = anyio.Event()
        self.code: int | None = None
        self._keep = keep
        self._output = bytearray()
        self._dropped = False

    async def read(self) -> None:
        """Read until the command has ended and its pipe is closed, or until cancelled."""
        stdout = self.child.stdout
        assert stdout is not None
        while data := await stdout.read(_READ):
            self._output += data
            if len(self._output) > self._keep:
                self._dropped = True
                del self._output[: len(self._output) - self._keep]
        self.code = await self.child.wait()
        await self._check()
        self.ended.set()

    async def _check(self) -> None:
        """Restore protected files, and report that in the output."""
        watch, self._watch = self._watch, None
        if watch is not None:
            with anyio.CancelScope(shield=True):
                self._output += "".join(f"\n{line}" for line in await to_thread.run_sync(watch.finish)).encode()

    def told(self) -> JsonObject:
        """Return the output so far, without an incomplete character at the end."""
        data = bytes(self._output)
        while self._dropped and data and data[0] & 0xC0 == 0x80:
            data = data[1:]
        result: JsonObject = {"output": data.decode("utf-8", "replace"), "truncated": self._dropped}
        return {**result, "exitStatus": self.status()} if self.ended.is_set() else result

    async def kill(self) -> None:
        await self.child.kill(0)
        self.code = self.child.process.returncode
        await self._check()
        self.ended.set()

    def status(self) -> JsonObject:
        if self.code is None or self.code >= 0:
            return {"exitCode": self.code, "signal": None}
        return {"exitCode": None, "signal": str(-self.code)}


class Terminals:
    """The terminals of one process."""

    def __init__(self, group: TaskGroup) -> None:
        self._group = group
        self._terminals: dict[str, _Terminal] = {}
        self._made = 0

    async def create(
        self,
        command: str,
        words: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        keep: int | None,
        sandbox: Confinement | None = None,
    ) -> str:
        """Run a command and return its terminal's id. Raise Refused if it can't be started."""
        argv = [command, *words]
        variables = {**child_environment(), **{name: value for name, value in env.items() if not forbidden(name)}}
        if not words and shutil.which(command, path=variables["PATH"]) is None:
            argv = ["/bin/sh", "-c", command]  # some agents send a whole command line
        watch = None if sandbox is None else await to_thread.run_sync(Watch.start, sandbox)
        child = await spawn(argv, cwd=cwd, env=variables, stderr="stdout", sandbox=sandbox)
        terminal = _Terminal(child, min(KEPT if keep is None else keep, MOST_KEPT), watch)
        self._made += 1
        id = f"terminal-{self._made}"
        self._terminals[id] = terminal
        self._group.start_soon(terminal.read)
        return id

    async def request(self, method: str, params: JsonObject) -> Json:
        """Return the response to a request about one terminal. Raise Refuse if the terminal is unknown."""
        id = _text(params, "terminalId")
        if (terminal := self._terminals.get(id)) is None:
            raise Refuse(INVALID_PARAMS, f"Terminal {id!r} not found.")
        match method:
            case "terminal/output":
                return terminal.told()
            case "terminal/wait_for_exit":
                await terminal.ended.wait()
                return terminal.status()
            case _:  # after a kill, the output stays available
                await terminal.kill()
                if method == "terminal/release":
                    del self._terminals[id]
                return {}

    async def close(self) -> None:
        """Kill all commands. Shielded from cancellation."""
        with anyio.CancelScope(shield=True):
            while self._terminals:
                await self._terminals.popitem()[1].kill()


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
"""Kind of a call → the effects that it may have. Calls of other kinds may have any effect."""
_ANYTHING: frozenset[Effect] = frozenset({"execute", "write", "network"})
_LIKE = {"read": "read_file", "search": "search_files", "edit": "edit_file", "execute": "shell", "fetch": "fetch_url"}
_COMMANDS = ("command", "cmd", "script")
_PATHS = ("path", "file_path", "filePath", "filepath", "absolute_path", "filename", "file")
_ADDRESSES = ("url", "uri")


@dataclass(slots=True)
class Grants:
    """Permissions that result from allowed calls: an allowed edit lets later requests write its file, an allowed command lets them
    run it.
    """

    paths: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Pairs of a call's id and an absolute path."""
    commands: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Pairs of a call's id and a command line."""

    def add(self, call: OutsideCall, kind: str, places: list[str]) -> None:
        """Remember an allowed call until its output is known."""
        if kind in ("edit", "delete", "move"):
            self.paths += [(call.tool_call, os.path.normpath(place)) for place in places]
        elif kind == "execute":
            self.commands.append((call.tool_call, call.subject))

    def has_path(self, state: State, path: str) -> bool:
        """Return True if an allowed call that is still running is about this file."""
        return any(place == os.path.normpath(path) and _runs(state, call) for call, place in self.paths)

    def has_command(self, state: State, line: str) -> bool:
        return any(command == line and _runs(state, call) for call, command in self.commands)


def _runs(state: State, call: str) -> bool:
    return any(known.id == call and not known.settled for known in state.calls)


def permission(
    state: State, asked: JsonObject, given: Json, options: tuple[Option, ...], directory: Path
) -> tuple[OutsideCall, str, list[str]] | None:
    """Return the call that an agent requests permission for, its kind,
    and the paths in its arguments, or None if the message has no such call.

    `given` is the call's input as shown in the message. The permission is for this input.
    """
    call = call_of(state, str(asked.get("toolCallId", "")))
    if call is None:
        return None
    kind = call.kind or str(asked.get("kind") or "")
    places = _places(given, asked)
    arguments: JsonObject = dict(given) if isinstance(given, dict) else {"input": given}
    if asked.get("rawInput") in (None, {}) and call.diff:
        arguments["diff"] = call.diff  # gemini includes the new content only here
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


def _options(offered: Json) -> tuple[Option, ...]:
    """Parse the options of a request. Options of unknown kinds are omitted, because their effect is unknown."""
    return tuple(
        Option(id := str(item.get("optionId", "")), str(item.get("name", id)), kind)
        for item in as_list(offered)
        if isinstance(item, dict)
        for kind in get_args(OptionKind)
        if kind == item.get("kind")
    )


def _chosen(answer: OutsideAnswer, options: tuple[Option, ...]) -> str | None:
    """Return the id of the option that matches the answer. If no option matches, return None; the call must then be refused."""
    if answer.option is not None:
        return answer.option.id
    kinds: tuple[OptionKind, ...] = ("allow_once", "allow_always") if answer.approved else ("reject_once", "reject_always")
    return next((option.id for kind in kinds for option in options if option.kind == kind), None)


def _places(arguments: Json, asked: JsonObject) -> list[str]:
    """Return the paths in a call's input, locations and changes."""
    fields = as_object(arguments)
    found = [str(fields[name]) for name in _PATHS if isinstance(fields.get(name), str)]
    for name in ("locations", "content"):
        for item in as_list(asked.get(name)):
            if isinstance(item, dict) and isinstance(item.get("path"), str):
                found.append(str(item["path"]))
    return list(dict.fromkeys(found))


def _subject(kind: str, arguments: JsonObject, title: str, places: list[str], directory: Path) -> str:
    """Return the text that rules match: a command line, a path or a URL."""
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


Handler = Callable[[JsonObject], Awaitable[Json]]


class RequestHandler:
    """Handler of the requests from one agent process."""

    def __init__(self, turn: Turn, conversation: Conversation, directory: Path, terminals: Terminals) -> None:
        self._turn = turn
        self._directory = directory
        self._paths = Paths(allowed_folders(conversation, directory), directory)
        self._terminals = terminals
        self._grants = Grants()
        self._own = 0
        self._handlers: dict[str, Handler] = {
            "session/request_permission": self._permission,
            "fs/read_text_file": self._read,
            "fs/write_text_file": self._write,
            "terminal/create": self._create,
            **{
                f"terminal/{name}": partial(terminals.request, f"terminal/{name}")
                for name in ("output", "wait_for_exit", "kill", "release")
            },
        }

    async def __call__(self, incoming: Incoming) -> Json:
        """Return the response to a request. Raise Refuse if the request is unknown, invalid or denied."""
        handler = self._handlers.get(incoming.method)
        if handler is None:
            raise Refuse(METHOD_NOT_FOUND, f"Method not found: {incoming.method}")
        try:
            return await handler(incoming.params)
        except FenceLost:
            raise
        except MootError as error:
            raise Refuse(INTERNAL, error.message) from error

    @property
    def _state(self) -> State:
        state = self._turn.state
        assert isinstance(state, State)
        return state

    async def _permission(self, params: JsonObject) -> Json:
        fields, options = as_object(params.get("toolCall")), _options(params.get("options"))
        ids = [call.id for call in self._state.calls if call.vendor_id == str(fields.get("toolCallId", ""))]
        shown = [part for part in self._turn.context.message().parts if is_tool(part) and part.get("toolCallId") in ids[-1:]]
        found = permission(self._state, fields, shown[-1].get("input") if shown else None, options, self._directory)
        if found is None:  # from another session, or sent before the prompt
            return {"outcome": {"outcome": "cancelled"}}
        call, kind, places = found
        answer = await self._turn.context.decide(call)
        option = _chosen(answer, options)
        if option is None:
            return {"outcome": {"outcome": "cancelled"}}
        if answer.approved:
            self._grants.add(call, kind, [str(self._directory / place) for place in places])
        return {"outcome": {"outcome": "selected", "optionId": option}}

    # ── files ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _read(self, params: JsonObject) -> Json:
        path, line, limit = _text(params, "path"), count(params.get("line")), count(params.get("limit"))
        own = await self._allowed("read_text_file", "read_file", frozenset({"read"}), shown_path(path, self._directory), {"path": path})
        text = await self._done(own, partial(read_text, self._paths, path, line or 1, limit))
        return {"content": text}

    async def _write(self, params: JsonObject) -> Json:
        path, content = _text(params, "path"), _text(params, "content")
        own = ""
        if not self._grants.has_path(self._state, str(self._directory / path)):
            subject = shown_path(path, self._directory)
            arguments: JsonObject = {"path": path, "content": content}
            own = await self._allowed("write_text_file", "write_file", frozenset({"write"}), subject, arguments)
        await self._done(own, partial(write_text, self._paths, path, content), f"Wrote {path}.")
        return {}

    async def _done(self, own: str, work: Callable[[], str | None], words: str = "") -> str | None:
        """Do the work in a thread. If moot created a call to show the request (`own`), add the result to the call as its output."""
        try:
            result = await to_thread.run_sync(work)
        except Refuse as refusal:
            if own:
                await self._emit(tool_error(own, refusal.message))
            raise
        if own:
            await self._emit(tool_output(own, words or result or ""))
        return result

    # ── terminals ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _create(self, params: JsonObject) -> Json:
        command = _text(params, "command")
        words = [str(word) for word in as_list(params.get("args"))]
        env = {str(item.get("name")): str(item.get("value")) for item in as_list(params.get("env")) if isinstance(item, dict)}
        line = shlex.join([command, *words]) if words else command  # a command without arguments counts as a command line
        own = ""
        if not self._grants.has_command(self._state, line):
            own = await self._allowed("terminal", "shell", frozenset({"execute"}), line, {"command": line})
        cwd = self._paths.resolve(str(params.get("cwd") or self._directory))
        sandbox = await self._turn.context.confinement(line, cwd)
        id = await self._terminals.create(command, words, cwd=cwd, env=env, keep=count(params.get("outputByteLimit")), sandbox=sandbox)
        if own:
            await self._emit(tool_output(own, f"Runs as {id}."))
        return {"terminalId": id}

    # ── requests without a permission ─────────────────────────────────────────────────────────────────────────────────────────────

    async def _allowed(self, name: str, like: str, effects: frozenset[Effect], subject: str, arguments: JsonObject) -> str:
        """Authorize a request that doesn't belong to an allowed call.
        Return the id of the call created to show the request, or an empty string.

        The request is shown with the running call, or as a separate call if none is running. Raise Refuse if the request is denied.
        """
        running = [call.id for call in self._state.calls if call.shown and not call.settled]
        own = ""
        if not running:
            self._own += 1
            own = f"moot.{self._turn.number}.{self._own}"
            head: JsonObject = {"toolCallId": own, "toolName": name, "providerExecuted": True, "dynamic": True}
            await self._emit({"type": "tool-input-available", **head, "input": arguments})
        answer = await self._turn.context.decide(
            OutsideCall(running[-1] if running else own, name, subject, dumps(arguments), effects, subject, like=like)
        )
        if answer.approved:
            return own
        if own:
            by_rule = answer.by in ("policy", "moot")
            await self._emit(tool_error(own, answer.reason) if by_rule else tool_denied(own, approval=own, reason=answer.reason))
        raise Refuse(INTERNAL, answer.reason or "The user denied the request.")

    async def _emit(self, *chunks: Chunk) -> None:
        await self._turn.context.append(Event("chunks", chunks))


def _text(params: JsonObject, name: str) -> str:
    value = params.get(name)
    if not isinstance(value, str) or (not value and name != "content"):
        raise Refuse(INVALID_PARAMS, f"The parameter {name} is missing.")
    return value
