"""The agent's requests during a turn: permissions, files, terminals. Everything is subject to moot's policy."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from anyio import to_thread

from moot.agents.acp import files
from moot.agents.acp.asking import Grants, line_of, permission, shown_path
from moot.agents.acp.link import Refuse, unknown
from moot.agents.acp.terminals import Terminals
from moot.agents.outside.approvals import chosen, options_of
from moot.agents.outside.rpc import INTERNAL, INVALID_PARAMS, Incoming
from moot.agents.outside.turn import Turn
from moot.convert.acp import State
from moot.errors import FenceLost, MootError
from moot.guard.paths import Paths
from moot.guard.roots import folders
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.chunk import Chunk, tool_denied, tool_error, tool_output
from moot.types.conversation import Conversation
from moot.types.effect import Effect
from moot.types.event import Event
from moot.types.outside import OutsideCall
from moot.types.part import is_tool

Handler = Callable[[JsonObject], Awaitable[Json]]


class Serving:
    """Handler of the requests of one process."""

    def __init__(self, turn: Turn, conversation: Conversation, directory: Path, terminals: Terminals) -> None:
        self._turn = turn
        self._directory = directory
        self._paths = Paths(folders(conversation.allowed_uris) or (directory,), directory)
        self._terminals = terminals
        self._grants = Grants()
        self._own = 0
        self._handlers: dict[str, Handler] = {
            "session/request_permission": self._permission,
            "fs/read_text_file": self._read,
            "fs/write_text_file": self._write,
            "terminal/create": self._create,
            "terminal/output": self._output,
            "terminal/wait_for_exit": self._wait,
            "terminal/kill": self._kill,
            "terminal/release": self._release,
        }

    async def __call__(self, incoming: Incoming) -> Json:
        """Return the response to a request. Raise Refuse."""
        handler = self._handlers.get(incoming.method)
        if handler is None:
            raise unknown(incoming)
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
        request, options = params.get("toolCall"), options_of(params.get("options"))
        fields: JsonObject = request if isinstance(request, dict) else {}
        found = permission(self._state, fields, self._input(str(fields.get("toolCallId", ""))), options, self._directory)
        if found is None:  # another session's, or before the prompt
            return {"outcome": {"outcome": "cancelled"}}
        call, kind, places = found
        answer = await self._turn.context.decide(call)
        option = chosen(answer, options)
        if option is None:
            return {"outcome": {"outcome": "cancelled"}}
        if answer.approved:
            self._grants.add(call, kind, [str(self._directory / place) for place in places])
        return {"outcome": {"outcome": "selected", "optionId": option}}

    def _input(self, vendor_id: str) -> Json:
        """Return the call's input as the message shows it."""
        ids = [call.id for call in self._state.calls if call.vendor_id == vendor_id]
        parts = [part for part in self._turn.context.message().parts if is_tool(part) and part.get("toolCallId") in ids[-1:]]
        return parts[-1].get("input") if parts else None

    # ── files ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _read(self, params: JsonObject) -> Json:
        path, line, limit = _text(params, "path"), _count(params, "line"), _count(params, "limit")
        own = await self._allowed("read_text_file", "read_file", frozenset({"read"}), shown_path(path, self._directory), {"path": path})
        text = await self._done(own, partial(files.read_text, self._paths, path, line or 1, limit))
        return {"content": text}

    async def _write(self, params: JsonObject) -> Json:
        path, content = _text(params, "path"), _text(params, "content")
        own = ""
        if not self._grants.has_path(self._state, str(self._directory / path)):
            subject = shown_path(path, self._directory)
            arguments: JsonObject = {"path": path, "content": content}
            own = await self._allowed("write_text_file", "write_file", frozenset({"write"}), subject, arguments)
        await self._done(own, partial(files.write_text, self._paths, path, content), f"Wrote {path}.")
        return {}

    async def _done(self, own: str, work: Callable[[], str | None], words: str = "") -> str | None:
        """Do the work in a thread and wait for it. Add the output if moot made the call."""
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
        args, variables = params.get("args"), params.get("env")
        words = [str(word) for word in args] if isinstance(args, list) else []
        env = (
            {str(item.get("name")): str(item.get("value")) for item in variables if isinstance(item, dict)}
            if isinstance(variables, list)
            else {}
        )
        line = line_of(command, words)
        own = ""
        if not self._grants.has_command(self._state, line):
            own = await self._allowed("terminal", "shell", frozenset({"execute"}), line, {"command": line})
        cwd = self._paths.resolve(str(params.get("cwd") or self._directory))
        id = await self._terminals.create(command, words, cwd=cwd, env=env, keep=_count(params, "outputByteLimit"))
        if own:
            await self._emit(tool_output(own, f"Runs as {id}."))
        return {"terminalId": id}

    async def _output(self, params: JsonObject) -> Json:
        return self._terminals.output(self._known(params))

    async def _wait(self, params: JsonObject) -> Json:
        return await self._terminals.wait(self._known(params))

    async def _kill(self, params: JsonObject) -> Json:
        await self._terminals.kill(self._known(params))
        return {}

    async def _release(self, params: JsonObject) -> Json:
        await self._terminals.release(self._known(params))
        return {}

    def _known(self, params: JsonObject) -> str:
        id = _text(params, "terminalId")
        if id not in self._terminals:
            raise Refuse(INVALID_PARAMS, f"terminal {id!r} not found")
        return id

    # ── what no permission was asked for ──────────────────────────────────────────────────────────────────────────────────────────

    async def _allowed(self, name: str, like: str, effects: frozenset[Effect], subject: str, arguments: JsonObject) -> str:
        """Authorize a request that belongs to no allowed call. Return the id of a call created to show it, or an empty string.

        It is shown at the running call, or else at a call of its own. Raise Refuse.
        """
        running = [call.id for call in self._state.calls if call.shown and not call.settled]
        own = "" if running else await self._start_call(name, arguments)
        answer = await self._turn.context.decide(
            OutsideCall(running[-1] if running else own, name, subject, dumps(arguments), effects, subject, like=like)
        )
        if answer.approved:
            return own
        if own:
            await self._emit(tool_denied(own))
        raise Refuse(INTERNAL, answer.reason or "the user denied it")

    async def _start_call(self, name: str, arguments: JsonObject) -> str:
        self._own += 1
        id = f"moot.{self._turn.number}.{self._own}"
        head: JsonObject = {"toolCallId": id, "toolName": name, "providerExecuted": True, "dynamic": True}
        await self._emit({"type": "tool-input-available", **head, "input": arguments})
        return id

    async def _emit(self, *chunks: Chunk) -> None:
        await self._turn.context.append(Event("chunks", chunks))


def _text(params: JsonObject, name: str) -> str:
    value = params.get(name)
    if not isinstance(value, str) or (not value and name != "content"):
        raise Refuse(INVALID_PARAMS, f"{name} is missing")
    return value


def _count(params: JsonObject, name: str) -> int | None:
    value = params.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
