"""The control protocol of Claude Code for one turn: lines in both directions, requests, interrupts and the end.

Reading continues during a cancellation: a request of the protocol interrupts the program, which then has a second to stop. moot's tools are
an MCP server whose messages are embedded in the protocol.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress

import anyio
from anyio.abc import TaskGroup

from moot.agents.claude_code.command import SERVER
from moot.agents.claude_code.permissions import QUESTION, answers_to, call_of, reply_to, with_questions
from moot.agents.outside.process import Program
from moot.agents.outside.turn import Turn, unavailable_note
from moot.convert.agents.claude_code import call_id
from moot.convert.vendor import as_list, as_object
from moot.errors import MootError
from moot.tools.catalogue import provided_tool as tool_named
from moot.tools.schema import definition, parse
from moot.types.agent import Agent
from moot.types.canonical import Json, JsonObject, dumps, loads, loads_exact
from moot.types.context import Parked, Result, RunContext, Unknown
from moot.types.tool import Tool, ToolOutput

_GRACE = 1.0
"""Number of seconds that the program has to exit after its turn has ended or was interrupted."""
_CONNECTING = 60.0
"""Seconds to wait for MCP servers. Slower servers continue connecting during the answer."""
_TASKS = frozenset({"local_agent", "local_workflow"})
_TASK_OVER = frozenset({"completed", "failed", "killed", "stopped"})
_LOST = ("No conversation found with session ID", "No message found with message.uuid")


class Dialogue:
    """One process and one prompt. `run` returns when the turn has ended, and raises moot's own errors."""

    def __init__(self, context: RunContext, turn: Turn, program: Program, served: ToolServer) -> None:
        self.results = 0
        """Number of results received."""
        self.session = ""
        self.lost = False
        """True if the program can't find the session that it should continue."""
        self._context = context
        self._turn = turn
        self._program = program
        self._served = served
        self._state: Json = None
        self._tasks: set[str] = set()
        self._open: dict[str, tuple[anyio.CancelScope, anyio.Event]] = {}
        """Requests from the program that have no response yet."""
        self._requests = 0
        self._over = anyio.Event()
        self._answered = anyio.Event()
        """Set by the next result and at the end."""
        self._awaited_id = ""
        """Id of moot's request that is waiting for a response."""
        self._server_names: tuple[str, ...] = ()
        """The MCP servers that moot provides."""
        self._response_event = anyio.Event()
        """Set when the awaited response arrives or the connection ends."""
        self._reading = anyio.CancelScope(shield=True)
        self._failure: MootError | None = None

    async def run(self, prompt: JsonObject, servers: JsonObject) -> None:
        """Provide the MCP servers, send the prompt and serve requests until the turn ends.
        If cancelled, interrupt the program before returning.
        """
        async with anyio.create_task_group() as group:
            group.start_soon(self._guard, self._read, group)
            try:
                await self._guard(self._begin, prompt, servers)
                await self._over.wait()
            except anyio.get_cancelled_exc_class():
                with anyio.CancelScope(shield=True):
                    await self._interrupt()
                raise
            finally:
                self._over.set()
                group.cancel_scope.cancel()
        if self._failure is not None:
            raise self._failure

    async def _begin(self, prompt: JsonObject, servers: JsonObject) -> None:
        await self._send_line(self.request(subtype="initialize", hooks=None, forwardSubagentText=True))
        if servers:  # before the prompt, so that it starts with these tools
            request = self.request(subtype="mcp_set_servers", servers=servers)
            self._awaited_id, self._server_names = str(request["request_id"]), tuple(servers)
            await self._send_line(request)
            with anyio.move_on_after(_CONNECTING):
                await self._response_event.wait()
        await self._send_line(prompt)

    async def _connected(self, message: JsonObject) -> None:
        """Handle the response about the MCP servers: report those that are not connected."""
        response = as_object(message.get("response"))
        if not self._awaited_id or response.get("request_id") != self._awaited_id:
            return
        self._awaited_id = ""
        missing = as_object(as_object(response.get("response")).get("errors"))
        if response.get("subtype") == "error":  # a version that does not accept servers this way
            missing = dict.fromkeys(self._server_names, response.get("error"))
        for name, why in missing.items():
            await self._context.append(unavailable_note(name, str(why or "")))
        self._response_event.set()

    def request(self, **fields: Json) -> JsonObject:
        """Create a request from moot to the program."""
        self._requests += 1
        return {"type": "control_request", "request_id": f"moot-{self._requests}", "request": fields}

    async def _guard(self, work: Callable[..., Awaitable[None]], *arguments: object) -> None:
        """Run `work` and keep its error, if any. The error ends the dialogue and is then raised once, not inside an exception group."""
        try:
            await work(*arguments)
        except MootError as error:
            self._failure = self._failure or error
            self._over.set()
            self._answered.set()

    async def _read(self, group: TaskGroup) -> None:
        with self._reading:
            async for lines in self._program.reads():
                for batch in _batches(lines):
                    await self._turn.record_received(*batch)
                    for line in batch:
                        await self._act(line, group)
                self._close_when_done()
        self._over.set()
        self._answered.set()
        self._response_event.set()

    def _close_when_done(self) -> None:
        """Close stdin if nothing more will come: a result ends a turn, but a sub-agent in the background starts another."""
        if self.results and self._state in (None, "idle") and not self._tasks and not self._open:
            self._program.close_stdin()
            self._reading.deadline = min(self._reading.deadline, anyio.current_time() + _GRACE)

    async def _act(self, line: bytes, group: TaskGroup) -> None:
        try:
            message = loads(line)
        except ValueError:
            return  # output that is not a message
        if not isinstance(message, dict):
            return
        match message.get("type"):
            case "control_request":
                scope, over = self._open[str(message.get("request_id", ""))] = anyio.CancelScope(), anyio.Event()
                with suppress(ValueError):  # arguments are sent back unchanged, so integers must be exact
                    message = as_object(loads_exact(line)) or message
                group.start_soon(self._guard, self._answer, message, scope, over)
            case "control_response":
                await self._connected(message)
            case "control_cancel_request":
                if (request := self._open.get(str(message.get("request_id", "")))) is not None:
                    scope, over = request
                    scope.cancel()
                    await over.wait()  # the withdrawal must be in the log, because the call's output may come next
            case "system":
                await self._system(message)
            case "result":
                self.results += 1
                self._answered.set()
                self.lost = any(lost in str(error) for error in as_list(message.get("errors")) for lost in _LOST)
            case _:
                pass

    async def _system(self, message: JsonObject) -> None:
        id, subtype = str(message.get("task_id", "")), message.get("subtype")
        if subtype == "session_state_changed":
            self._state = message.get("state")
        elif subtype == "init" and isinstance(session := message.get("session_id"), str) and session != self.session:
            self.session = session
            await self._context.set_session(session)
        elif subtype == "task_started" and message.get("task_type") in _TASKS:
            self._tasks.add(id)
        elif subtype == "task_notification" or (subtype == "task_updated" and as_object(message.get("patch")).get("status") in _TASK_OVER):
            self._tasks.discard(id)

    async def _answer(self, message: JsonObject, scope: anyio.CancelScope, over: anyio.Event) -> None:
        id, request = str(message.get("request_id", "")), as_object(message.get("request"))
        with scope:
            try:
                match request.get("subtype"):
                    case "can_use_tool":
                        response: JsonObject = {"subtype": "success", "response": await self._decide(request)}
                    case "mcp_message" if isinstance(inner := request.get("message"), dict):
                        meta = as_object(as_object(inner.get("params")).get("_meta"))
                        call = call_id(self._turn.state, str(meta.get("claudecode/toolUseId", "")))
                        response = {"subtype": "success", "response": {"mcp_response": await self._served.answer(inner, call)}}
                    case other:
                        response = {"subtype": "error", "error": f"Unknown request {other!r}."}
            finally:
                self._open.pop(id, None)
                over.set()
            await self._send_line({"type": "control_response", "response": {**response, "request_id": id}})
        self._close_when_done()

    async def _decide(self, request: JsonObject) -> JsonObject:
        id = call_id(self._turn.state, str(request.get("tool_use_id", "")))
        call = call_of(request, id, self._served.tools)
        if request.get("tool_name") == QUESTION:
            answer = await self._context.decide(with_questions(call, request))
            return answers_to(request, answer)
        answer = await self._context.decide(call)
        if answer.approved:
            self._served.decided(id)
        return reply_to(request, answer)

    async def _send_line(self, message: JsonObject) -> None:
        line = dumps(message) + b"\n"
        await self._turn.record_sent(line)
        await self._program.write(line)

    async def _interrupt(self) -> None:
        with anyio.move_on_after(_GRACE):
            await self._guard(self._send_line, self.request(subtype="interrupt"))
            self._answered = anyio.Event()
            await self._answered.wait()
        self._reading.cancel()


def _batches(lines: Sequence[bytes]) -> Iterator[tuple[bytes, ...]]:
    """Split the lines of one read after each withdrawn question, because the following lines may contain its outcome."""
    begin = 0
    for at, line in enumerate(lines, 1):
        if b'"control_cancel_request"' in line or at == len(lines):
            yield tuple(lines[begin:at])
            begin = at


_PROTOCOL = "2025-06-18"
_METHOD_NOT_FOUND, _INVALID_PARAMS = -32601, -32602
_ASKS = "This tool asks the user a question, which is not possible here."
_UNKNOWN = "moot was stopped while this call ran. Whether it took effect is unknown, and it was not repeated."


def own_tools(agent: Agent) -> dict[str, Tool]:
    """Return the tools of moot that are listed in the agent's definition, keyed by their names in Claude Code.
    Raise UsageError for an unknown tool.
    """
    tools = [tool_named(name) for name in agent.tools or ()]
    return {f"mcp__{SERVER}__{tool.name}": tool for tool in tools if agent.role == "write" or tool.effects <= {"read"}}


class ToolServer:
    """The MCP server of one turn.

    A call is authorized when the agent asks for permission; a call made without asking is authorized here.
    """

    def __init__(self, context: RunContext, tools: Mapping[str, Tool], number: int) -> None:
        self.tools = tools
        self._context = context
        self._number = number
        self._calls = 0
        self._decided: set[str] = set()

    def decided(self, id: str) -> None:
        """Record that the call with this id was allowed."""
        self._decided.add(id)

    async def answer(self, message: JsonObject, call_id: str) -> JsonObject:
        """Return the response to one JSON-RPC message. For a notification, it is an empty result, which the control protocol requires."""
        result = await self._result(str(message.get("method", "")), as_object(message.get("params")), call_id)
        return {"jsonrpc": "2.0", "id": message.get("id"), **result} if "id" in message else {"jsonrpc": "2.0", "result": {}}

    async def _result(self, method: str, params: JsonObject, call_id: str) -> JsonObject:
        match method:
            case "initialize":
                version = params.get("protocolVersion")
                about: JsonObject = {"name": SERVER, "version": "1"}
                return {"result": {"protocolVersion": version or _PROTOCOL, "capabilities": {"tools": {}}, "serverInfo": about}}
            case "tools/list":
                defined = [definition(tool) for tool in self.tools.values()]
                tools: list[Json] = [{"name": one.name, "description": one.description, "inputSchema": one.schema} for one in defined]
                return {"result": {"tools": tools}}
            case "tools/call":
                return await self._call(params, call_id)
            case "ping":
                return {"result": {}}
            case _ if method.startswith("notifications/"):
                return {"result": {}}
            case _:
                return {"error": {"code": _METHOD_NOT_FOUND, "message": f"The method {method!r} is not supported."}}

    async def _call(self, params: JsonObject, call_id: str) -> JsonObject:
        name, arguments = str(params.get("name", "")), as_object(params.get("arguments"))
        tool = self.tools.get(f"mcp__{SERVER}__{name}")
        if tool is None:
            return {"error": {"code": _INVALID_PARAMS, "message": f"Tool {name!r} not found."}}
        if call_id not in self._decided:
            request: JsonObject = {"tool_name": f"mcp__{SERVER}__{name}", "input": arguments}
            answer = await self._context.decide(call_of(request, call_id, self.tools))
            if not answer.approved:
                return _told(answer.reason or "The call is not allowed.", error=True)
        self._calls += 1
        return await self._run(tool, arguments, f"tool:{self._number}.{self._calls}", call_id)

    async def _run(self, tool: Tool, arguments: JsonObject, key: str, call_id: str) -> JsonObject:
        parsed = parse(tool, arguments)
        if isinstance(parsed, str):
            return _told(parsed, error=True)

        async def work() -> Result:
            try:
                output = await tool.run(parsed, self._context.tool_context(tool, key, call_id))
            except Parked:
                output = ToolOutput(_ASKS, error=True)
            except MootError as error:
                output = ToolOutput(error.message, error=True)
            return Result({"text": output.text, "error": output.error})

        body: JsonObject = {"tool": tool.name, "call": call_id, "input": arguments}
        done = await self._context.once(key, idempotent=tool.idempotent, work=work, body=body)
        value = None if isinstance(done, Unknown) else done.value
        if not isinstance(value, dict):
            return _told(_UNKNOWN, error=True)
        return _told(str(value.get("text", "")), error=value.get("error") is True)


def _told(text: str, *, error: bool) -> JsonObject:
    return {"result": {"content": [{"type": "text", "text": text}], "isError": error}}
