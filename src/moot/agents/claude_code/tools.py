"""moot's tools for Claude Code: an MCP server whose messages are embedded in the control protocol.

A call is authorized when the agent asks for permission; a call made without asking is authorized here.
"""

from __future__ import annotations

from collections.abc import Mapping

from moot.agents.claude_code.command import SERVER
from moot.agents.claude_code.permissions import call_of
from moot.convert.vendor import as_object
from moot.errors import MootError
from moot.tools.catalogue import provided_tool as tool_named
from moot.tools.schema import definition, parse
from moot.types.agent import Agent
from moot.types.canonical import Json, JsonObject
from moot.types.context import Parked, Result, RunContext, Unknown
from moot.types.tool import Tool, ToolOutput

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
    """The MCP server of one turn."""

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
