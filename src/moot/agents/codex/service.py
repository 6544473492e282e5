"""The agent service `codex`. Each turn is a process: handshake, session, prompt and answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass

import anyio
from anyio.abc import TaskGroup

from moot import __version__
from moot.agents.codex.approvals import approval_request, item_asked
from moot.agents.outside.leg import TurnInput, outcome_of, record_child, run_leg
from moot.agents.outside.options import choice_of, directory_of, double, launch_of, model_of
from moot.agents.outside.process import Program
from moot.agents.outside.prompts import PromptContent, earlier_messages, prompt_content, with_history
from moot.agents.outside.rpc import METHOD_NOT_FOUND, Incoming, Rpc, RpcRefused
from moot.agents.outside.turn import Turn, unavailable_note
from moot.convert.agents.codex import CodexAppServer, call_id
from moot.convert.vendor import as_list, as_object, as_text
from moot.errors import MootError, ProviderError
from moot.types.agent import McpServer, Mode
from moot.types.approval import Session
from moot.types.canonical import Json, JsonObject
from moot.types.context import RunContext
from moot.types.exchange import Ended, Failure
from moot.types.message import Message
from moot.types.run import RunOutcome, RunRequest

HANDSHAKE = 60.0
"""Time limit in seconds for responses to moot's requests. Codex responds immediately and does the work afterwards."""
_CONNECTING = 30.0
"""Seconds to wait for MCP servers."""
INTERRUPT = 1.0
"""Number of seconds that Codex has to stop after an interrupt."""

_ANSWERS: dict[str, Json] = {
    "mcpServer/elicitation/request": {"action": "decline", "content": None},
    "item/tool/requestUserInput": {"answers": {}},
    "execCommandApproval": {"decision": "denied"},
    "applyPatchApproval": {"decision": "denied"},
}
"""Requests that moot can't show to a user, and the responses that refuse them."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The parameters of a run."""

    directory: str
    model: str
    """Name of the model; empty for Codex's default."""
    effort: str
    sandbox: str
    approval: str
    instructions: str
    schema: JsonObject | None = None
    servers: tuple[McpServer, ...] = ()

    def session(self) -> JsonObject:
        """Return the parameters for starting, resuming and forking a session."""
        facts: JsonObject = {"cwd": self.directory, "sandbox": self.sandbox, "approvalPolicy": self.approval}
        if self.model:
            facts["model"] = self.model
        if self.instructions:
            facts["developerInstructions"] = self.instructions
        if self.servers:
            servers: JsonObject = {
                server.name: {"command": server.command, "args": list(server.args), "env": dict(server.env)}
                if server.command
                else {"url": server.url, "http_headers": dict(server.headers)}
                for server in self.servers
            }
            facts["config"] = {"mcp_servers": servers}
        return facts

    def asked(self) -> JsonObject:
        """Return the parameters of each turn, except its input."""
        facts: JsonObject = {}
        if self.effort:
            facts["effort"] = self.effort
        if self.schema is not None:
            facts["outputSchema"] = self.schema
        return facts


class CodexTurn:
    """One turn. An instance can be used only once. Every line is recorded in the log, no matter how it is handled."""

    def __init__(self, request: RunRequest, context: RunContext, program: Program, plan: Plan, said: TurnInput) -> None:
        self._request = request
        self._context = context
        self._program = program
        self._plan = plan
        self._said = said
        self._rpc = Rpc(self._send, envelope={})
        self._items: dict[str, JsonObject] = {}
        self._pending: dict[str, anyio.CancelScope] = {}
        """Pending decisions, keyed by the id of the request. They are cancelled if Codex continues without an answer."""
        self._servers: dict[str, str] = {}
        """Startup status of each MCP server, keyed by name."""
        self._news = anyio.Event()
        """Set after each change of a status and then replaced with a new event, so that each wait is for the next change."""
        self._over = anyio.Event()
        self._cut: ProviderError | None = None
        self._ids = ("", "")
        """Ids of Codex's session and turn; empty until they have started."""
        self._turn: Turn

    async def hold(self) -> RunOutcome:
        """Run the turn and return its outcome. If cancelled, ask Codex to stop before returning."""
        prompt = await prompt_content(self._context, self._said.parts)
        self._turn = await Turn.begin(
            self._request, self._context, CodexAppServer(), number=self._said.number, prompt=prompt.text.encode(), model=self._plan.model
        )
        ended: Ended = "cancelled"
        failure: Failure | None = None
        try:
            await record_child(self._context, self._said.number, self._program.child)
            await self._work(prompt)
            ended = "eof"
        except ProviderError as error:
            ended, failure = "cut", Failure.of(error)
        except anyio.get_cancelled_exc_class():
            await self._interrupt()
            raise
        finally:
            await self._turn.close(ended, failure)
        assert self._turn.ending is not None
        return outcome_of(self._turn.ending)

    async def _work(self, prompt: PromptContent) -> None:
        """Run the turn. Raise ProviderError if it did not reach its end. Errors of the store are raised in an exception group."""
        failed: ProviderError | None = None
        async with anyio.create_task_group() as group:
            group.start_soon(self._listen, group)
            try:
                await self._speak(prompt)
            except ProviderError as error:
                failed = error
            group.cancel_scope.cancel()
        if failed is not None:
            raise failed

    # ── sending ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _send(self, line: bytes) -> None:
        await self._turn.record_sent(line)
        await self._program.write(line)

    async def _speak(self, prompt: PromptContent) -> None:
        about: JsonObject = {"name": "moot", "title": "moot", "version": __version__}
        await self._rpc.request("initialize", {"clientInfo": about, "capabilities": None}, seconds=HANDSHAKE)
        await self._rpc.notify("initialized")
        session, unseen = await self._open_session()
        await self._context.set_session(session)
        text = with_history(unseen, prompt.text)
        pictures: list[Json] = [{"type": "image", "url": url} for url in prompt.pictures]
        pieces: list[Json] = [{"type": "text", "text": text, "text_elements": []}, *pictures]
        self._ids = (session, "")
        await self._connected()
        started = await self._rpc.request("turn/start", {"threadId": session, "input": pieces, **self._plan.asked()}, seconds=HANDSHAKE)
        self._ids = (session, as_text(as_object(as_object(started).get("turn")).get("id")))
        await self._over.wait()
        if self._cut is not None:
            raise self._cut

    async def _open_session(self) -> tuple[str, Sequence[Message]]:
        """Return the session to continue, and the messages that are missing from it."""
        known = await self._context.session()
        if known is not None:
            try:
                return await self._known(known), known.unseen
            except RpcRefused:
                pass  # the session no longer exists or can't be forked: start a new one with the whole history
        started = await self._rpc.request("thread/start", self._plan.session(), seconds=HANDSHAKE)
        return _id_of(started), await earlier_messages(self._context) if self._said.first else ()

    async def _known(self, session: Session) -> str:
        facts: JsonObject = {"threadId": session.id, "excludeTurns": True, **self._plan.session()}
        if not session.moved:
            return _id_of(await self._rpc.request("thread/resume", facts, seconds=HANDSHAKE))
        steps = as_list(session.last.metadata.get("steps"))
        turn = as_text(as_object(steps[-1]).get("turn_id")) if steps else ""
        return _id_of(await self._rpc.request("thread/fork", {**facts, "lastTurnId": turn or None}, seconds=HANDSHAKE))

    # ── receiving ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _listen(self, group: TaskGroup) -> None:
        """Record and handle every line until the end."""
        try:
            await self._read(group)
            raise self._program.died("exited before its answer was complete", await self._program.ended())
        except ProviderError as error:
            self._cut = error
            self._rpc.fail(error)
            self._over.set()
            self._news.set()

    async def _read(self, group: TaskGroup | None) -> None:
        async with aclosing(self._program.reads()) as reads:
            async for lines in reads:
                await self._turn.record_received(*lines)
                for line in lines:
                    if (incoming := self._rpc.take(line)) is not None:
                        self._heed(incoming, group)
                if self._over.is_set():
                    return

    def _heed(self, incoming: Incoming, group: TaskGroup | None) -> None:
        params = incoming.params
        if incoming.asks:
            if group is not None:
                group.start_soon(self._answer, incoming)
        elif incoming.method == "item/started":
            item = as_object(params.get("item"))
            self._items[as_text(item.get("id"))] = item
        elif incoming.method == "item/completed":
            self._items.pop(as_text(as_object(params.get("item")).get("id")), None)
        elif incoming.method == "mcpServer/startupStatus/updated":
            name = as_text(params.get("name"))
            self._servers[name] = as_text(params.get("status"))
            if self._servers[name] == "failed" and group is not None:
                group.start_soon(self._context.append, unavailable_note(name, as_text(params.get("error"))))
            self._news.set()
            self._news = anyio.Event()
        elif incoming.method == "serverRequest/resolved":
            scope = self._pending.get(str(params.get("requestId")))
            if scope is not None:
                scope.cancel()
        elif incoming.method == "turn/completed" and params.get("threadId") == self._ids[0]:
            self._over.set()

    async def _connected(self) -> None:
        """Wait for the provided MCP servers, because a server that isn't ready before the model call is not available in this turn."""
        names = [server.name for server in self._plan.servers]
        with anyio.move_on_after(_CONNECTING):
            while any(self._servers.get(name, "starting") == "starting" for name in names) and not self._over.is_set():
                await self._news.wait()

    async def _answer(self, incoming: Incoming) -> None:
        item = item_asked(incoming.params, self._items)
        request = approval_request(incoming.method, incoming.params, self._items.get(item, {}), call_id(self._turn.state, item))
        if request is None and incoming.method in _ANSWERS:
            await self._reply(incoming, _ANSWERS[incoming.method])
            return
        if request is None:
            await self._rpc.refuse(incoming, METHOD_NOT_FOUND, f"Unknown method {incoming.method}.")
            return
        with anyio.CancelScope() as scope:
            self._pending[str(incoming.id)] = scope
            answer = await self._context.decide(request.call)
            del self._pending[str(incoming.id)]
            await self._reply(incoming, request.reply(answer))

    async def _reply(self, incoming: Incoming, result: Json) -> None:
        try:
            await self._rpc.reply(incoming, result)
        except ProviderError:
            return  # it has exited, which the reader reports

    async def _interrupt(self) -> None:
        """Ask Codex to stop. Messages that it sends in the meantime are recorded."""
        session, turn = self._ids
        with anyio.CancelScope(shield=True), anyio.move_on_after(INTERRUPT):
            try:
                if turn and not self._over.is_set():
                    async with anyio.create_task_group() as group:
                        group.start_soon(self._read, None)
                        await self._rpc.request("turn/interrupt", {"threadId": session, "turnId": turn})
            except BaseExceptionGroup as errors:
                if errors.split(MootError)[1] is not None:
                    raise
                # it has exited


def _id_of(begun: Json) -> str:
    """Return the session's id. Raise ProviderError if the response has none."""
    id = as_text(as_object(as_object(begun).get("thread")).get("id"))
    if not id:
        raise ProviderError("Codex did not start a session, or its response is in an unknown format.", kind="protocol")
    return id


HINT = "npm install --global @openai/codex"
NEEDS = (
    *("CODEX_HOME", "CODEX_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR"),
)
"""Environment variables that are passed on to Codex: its folder, account and network settings."""

SANDBOXES = ("read-only", "workspace-write", "danger-full-access")
APPROVALS = ("untrusted", "on-request", "never")
_BY_MODE: dict[Mode, str] = {"plan": "read-only", "ask": "workspace-write", "edits": "workspace-write", "auto": "danger-full-access"}
"""Codex's sandbox for each mode of moot. In every mode,
Codex asks about actions that it does not consider harmless, and moot's policy decides.
"""
_EFFORTS = {"none": "minimal", "low": "low", "medium": "medium", "high": "high", "max": "xhigh"}


class Codex:
    """Codex with its own model, login, settings and tools. Its options: `command`, `args`, `env`, `sandbox`, `approval`."""

    trials: Mapping[str, JsonObject] = {"answer": double("codex_program.py", "answer"), "slow": double("codex_program.py", "slow")}

    async def run(self, request: RunRequest, context: RunContext) -> RunOutcome:
        launch = launch_of(request, ("codex",), known=("sandbox", "approval"))
        plan = await _plan(request, context)

        async def talk(said: TurnInput) -> RunOutcome:
            command = (*launch.command, "app-server")
            async with Program(command, cwd=directory_of(request), env=launch.env, hint=HINT, keeps=NEEDS) as program:
                return await CodexTurn(request, context, program, plan, said).hold()

        return await run_leg(request, context, talk)


async def _plan(request: RunRequest, context: RunContext) -> Plan:
    """Return the parameters of this run. Raise ConfigError if an option is invalid."""
    agent, options = request.agent, request.settings
    effort = str(options.get("effort") or agent.effort or "")
    schema = options.get("schema")
    return Plan(
        directory=str(directory_of(request)),
        model=model_of(request),
        effort=_EFFORTS.get(effort, ""),
        sandbox=choice_of(request, "sandbox", SANDBOXES) or _BY_MODE[context.mode],
        approval=choice_of(request, "approval", APPROVALS) or "untrusted",
        instructions="\n\n".join(filter(None, (agent.instructions, agent.rules))),
        schema=schema if isinstance(schema, dict) else None,
        servers=request.servers,
    )
