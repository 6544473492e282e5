"""The agent service `acp:NAME`: runs any agent that speaks the Agent Client Protocol, with prompts and MCP servers in its form."""

from __future__ import annotations

import shutil
from base64 import b64encode
from collections.abc import Mapping, Sequence

import anyio

from moot.agents.acp.connection import Link, SessionOptions, prepare, refusal_error
from moot.agents.acp.requests import RequestHandler, Terminals
from moot.agents.known import AcpAgent, facts_of
from moot.agents.outside.leg import TurnInput, outcome_of, record_child, run_leg
from moot.agents.outside.options import directory_of, double, launch_of, model_of, option_error, text_of
from moot.agents.outside.process import Program
from moot.agents.outside.prompts import TEXT_TYPES, earlier_messages, file_bytes, with_history
from moot.agents.outside.rpc import RpcRefused
from moot.agents.outside.turn import Turn
from moot.convert.agents.acp import Acp as Translator
from moot.errors import FenceLost, MootError
from moot.types.agent import McpServer
from moot.types.canonical import Json, JsonObject
from moot.types.context import RunContext
from moot.types.exchange import Ended, Failure
from moot.types.message import Message, Part
from moot.types.run import RunOutcome, RunRequest


async def content_of(context: RunContext, text: str, parts: Sequence[Part], takes: JsonObject) -> list[Json]:
    """Return the content blocks. `takes` are the agent's `promptCapabilities`; a file that the agent can't accept is described in text."""
    made: list[Json] = [{"type": "text", "text": text}]
    for part in parts:
        if part.get("type") == "file":
            made.append(await _file(context, part, takes))
    return made


async def _file(context: RunContext, part: Part, takes: JsonObject) -> Json:
    url, media_type = str(part.get("url", "")), str(part.get("mediaType", "application/octet-stream"))
    name = str(part.get("filename") or "file")
    if url.startswith(("http://", "https://")):
        return {"type": "resource_link", "uri": url, "name": name, "mimeType": media_type}
    try:
        data = await file_bytes(context, url)
    except (MootError, ValueError):
        data = None
    if data is None:
        return {"type": "text", "text": f"[{name}: {media_type}, is not available any more]"}
    kind = media_type.partition("/")[0]
    if kind in ("image", "audio") and takes.get(kind) is True:
        return {"type": kind, "mimeType": media_type, "data": b64encode(data).decode()}
    if media_type.startswith(TEXT_TYPES):
        words = data.decode("utf-8", "replace")
        if takes.get("embeddedContext") is True:
            return {"type": "resource", "resource": {"uri": f"file:///{name}", "mimeType": media_type, "text": words}}
        return {"type": "text", "text": f"{name}:\n{words}"}
    if takes.get("embeddedContext") is True and kind not in ("image", "audio"):
        return {"type": "resource", "resource": {"uri": f"file:///{name}", "mimeType": media_type, "blob": b64encode(data).decode()}}
    return {"type": "text", "text": f"[{name}: {media_type}, not shown: this agent does not take it]"}


def mcp_entry(server: McpServer) -> JsonObject:
    """Return one entry of `mcpServers`."""
    if server.command:
        command = shutil.which(server.command) or server.command  # the protocol requires an absolute path
        return {"name": server.name, "command": command, "args": list(server.args), "env": _pairs(server.env)}
    return {"type": server.protocol, "name": server.name, "url": server.url, "headers": _pairs(server.headers)}


def _pairs(values: Mapping[str, str]) -> list[Json]:
    return [{"name": name, "value": value} for name, value in values.items()]


OPTIONS = ("mode", "model", "patience")
WAY_OUT = (
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
    *("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"),
)
"""Environment variables that are passed to every agent in addition to its own, so that it can reach its model."""


class Acp:
    """The agent service for one agent. An agent that is not in the table of known agents needs `options.command`."""

    trials: Mapping[str, JsonObject] = {"answer": double("acp_agent.py", "echo"), "slow": double("acp_agent.py", "slow")}

    def __init__(self, name: str = "") -> None:
        self._agent = facts_of(name)

    async def run(self, request: RunRequest, context: RunContext) -> RunOutcome:
        last = ""
        """The session of the previous turn, which the next one continues."""

        async def talk(said: TurnInput) -> RunOutcome:
            nonlocal last
            leg = _Leg(self._agent, request, context, said, last)
            outcome = await leg.run()
            last = leg.session
            return outcome

        return await run_leg(request, context, talk)


class _Leg:
    """One turn: a process from start to end."""

    def __init__(self, agent: AcpAgent, request: RunRequest, context: RunContext, said: TurnInput, session: str) -> None:
        self._agent = agent
        self._request = request
        self._context = context
        self._said = said
        self._launch = launch_of(request, agent.command, OPTIONS)
        patience = request.agent.options.get("patience", 120)
        if isinstance(patience, bool) or not isinstance(patience, int | float) or patience <= 0:
            raise option_error(request, "patience", f"is {patience!r}. Expected seconds, as in 120.")
        self._patience = patience
        self._unseen: tuple[Message, ...] = ()
        self.session = session

    async def run(self) -> RunOutcome:
        """Run the turn. Raise MootError for errors before the agent's first message."""
        wanted = await self._session_options()
        turn = await Turn.begin(
            self._request,
            self._context,
            Translator(),
            number=self._said.number,
            prompt=self._said.text.encode("utf-8", "replace"),
            model=wanted.model,
        )
        ended: Ended = "cancelled"
        failure: Failure | None = None
        try:
            argv, cwd, keeps = self._launch.command, directory_of(self._request), (*self._agent.keeps, *WAY_OUT)
            async with Program(argv, cwd=cwd, env=self._launch.env, hint=self._agent.install, keeps=keeps) as program:
                await record_child(self._context, self._said.number, program.child)
                failure = await self._converse(program, turn, wanted)
            ended = "eof" if failure is None else "cut"
        except MootError as error:
            ended, failure = "cut", Failure.of(error)
            raise
        finally:
            ending = await turn.close(ended, failure)
        return outcome_of(ending)

    async def _session_options(self) -> SessionOptions:
        """Return the session to request, and determine which messages are missing from it."""
        known_session = None if self.session else await self._context.session()
        if known_session is not None and not known_session.moved:
            self.session, self._unseen = known_session.id, known_session.unseen
        return SessionOptions(
            str(directory_of(self._request)),
            self.session,
            planning=self._context.mode == "plan",
            mode=text_of(self._request, "mode"),
            model=model_of(self._request, text_of(self._request, "model")),
            servers=tuple(map(mcp_entry, self._request.servers)),
        )

    async def _converse(self, program: Program, turn: Turn, wanted: SessionOptions) -> Failure | None:
        """Send the prompt and serve requests until the answer ends. Return the failure if the answer is incomplete, otherwise None."""
        async with anyio.create_task_group() as group:
            terminals = Terminals(group)
            serving = RequestHandler(turn, self._request.conversation, directory_of(self._request), terminals)
            link = Link(self._agent, program, turn, serving, self._patience)
            group.start_soon(link.pump, group)
            try:
                return await self._ask(link, wanted)
            except anyio.get_cancelled_exc_class():
                await link.interrupt(self.session)
                raise
            finally:
                link.stop()
                await terminals.close()
                group.cancel_scope.cancel()

    async def _ask(self, link: Link, wanted: SessionOptions) -> Failure | None:
        try:
            opened = await prepare(link, wanted)
            self.session = opened.session
            await self._context.set_session(opened.session)
            unseen = await earlier_messages(self._context) if opened.fresh else self._unseen
            words = with_history(unseen, self._said.text)
            if opened.fresh:  # the protocol has no field for instructions
                agent = self._request.agent
                words = "\n\n".join(filter(None, (agent.instructions, agent.rules, words)))
            prompt = await content_of(self._context, words, self._said.parts, opened.takes)
            await link.request("session/prompt", {"sessionId": opened.session, "prompt": prompt})
        except RpcRefused as error:
            return Failure.of(refusal_error(error, "answer", self._agent, None))
        except FenceLost:
            raise
        except MootError as error:
            return Failure.of(error)
        return None
