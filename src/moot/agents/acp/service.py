"""The agent service `acp:NAME`: runs any agent that speaks the Agent Client Protocol."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import anyio

from moot.agents.acp.link import Link
from moot.agents.acp.opening import Wanted, prepare
from moot.agents.acp.prompts import content_of
from moot.agents.acp.servers import handed
from moot.agents.acp.serving import Serving
from moot.agents.acp.terminals import Terminals
from moot.agents.acp.words import refused
from moot.agents.known.acp import AcpAgent, facts_of
from moot.agents.outside.leg import Said, note_child, outcome_of, run_leg
from moot.agents.outside.options import directory_of, launch_of, text_of
from moot.agents.outside.process import Program
from moot.agents.outside.rpc import RpcRefused
from moot.agents.outside.told import told
from moot.agents.outside.turn import Turn
from moot.convert.acp import Acp as Translator
from moot.errors import ConfigError, FenceLost, MootError
from moot.types.canonical import JsonObject
from moot.types.context import RunContext
from moot.types.exchange import Ended, Failure
from moot.types.message import Message
from moot.types.run import RunOutcome, RunRequest

OPTIONS = ("mode", "model", "patience")
WAY_OUT = (
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
    *("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"),
)
"""Environment variables that every agent gets in addition to its own, to reach its model."""
_TYPES = frozenset({"main", "small", "compaction", "image", "transcription", "fallback"})
_EARLIER = 20_000
"""Tokens of earlier messages included for a session that does not have them."""


def _double(*words: str) -> JsonObject:
    """Return options that run moot's own test agent."""
    spec = find_spec("moot")
    folder = Path(spec.origin).parent if spec is not None and spec.origin is not None else Path()
    return {"command": [sys.executable, "-S", "-E", str(folder / "testing" / "acp_agent.py"), *words]}


class Acp:
    """The agent service for one agent; an agent that is not in the table needs `options.command`."""

    trials: Mapping[str, JsonObject] = {"answer": _double("echo"), "slow": _double("slow")}

    def __init__(self, name: str = "") -> None:
        self._agent = facts_of(name)

    async def run(self, request: RunRequest, context: RunContext) -> RunOutcome:
        last = ""
        """The session of the previous turn, which the next one continues."""

        async def talk(said: Said) -> RunOutcome:
            nonlocal last
            leg = _Leg(self._agent, request, context, said, last)
            outcome = await leg.run()
            last = leg.session
            return outcome

        return await run_leg(request, context, talk)


class _Leg:
    """One turn: a process from start to end."""

    def __init__(self, agent: AcpAgent, request: RunRequest, context: RunContext, said: Said, session: str) -> None:
        self._agent = agent
        self._request = request
        self._context = context
        self._said = said
        self._launch = launch_of(request, agent.command, OPTIONS)
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
                await note_child(self._context, self._said.number, program.child)
                failure = await self._converse(program, turn, wanted)
            ended = "eof" if failure is None else "cut"
        except MootError as error:
            ended, failure = "cut", Failure.of(error)
            raise
        finally:
            ending = await turn.close(ended, failure)
        return outcome_of(ending)

    async def _session_options(self) -> Wanted:
        """Return the requested session. From here on it is known which messages it lacks."""
        known_session = None if self.session else await self._context.session()
        if known_session is not None and not known_session.moved:
            self.session, self._unseen = known_session.id, known_session.unseen
        patience = self._request.agent.options.get("patience", 120)
        if isinstance(patience, bool) or not isinstance(patience, int | float) or patience <= 0:
            raise ConfigError(f"agents.{self._request.agent.name}.options.patience is {patience!r}; expected seconds, as in 120")
        return Wanted(
            str(directory_of(self._request)),
            self.session,
            planning=self._context.mode == "plan",
            mode=text_of(self._request, "mode"),
            model=self._model(),
            servers=tuple(map(handed, self._request.servers)),
            patience=float(patience),
        )

    def _model(self) -> str:
        """Return the requested model by the agent's own name; empty for its default."""
        wanted = self._request.run.model or text_of(self._request, "model") or self._request.agent.model
        return "" if wanted in _TYPES else wanted.rpartition("@")[0] or wanted

    async def _converse(self, program: Program, turn: Turn, wanted: Wanted) -> Failure | None:
        """Send the prompt and serve requests until the answer is complete. Return why it is not, or None."""
        async with anyio.create_task_group() as group:
            terminals = Terminals(group)
            serving = Serving(turn, self._request.conversation, directory_of(self._request), terminals)
            link = Link(program, turn, serving)
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

    async def _ask(self, link: Link, wanted: Wanted) -> Failure | None:
        try:
            opened = await prepare(link, self._agent, wanted)
            self.session = opened.session
            await self._context.set_session(opened.session)
            unseen = await self._earlier_messages() if opened.fresh else self._unseen
            words = told(unseen, self._said.text)
            if opened.fresh:  # the protocol has no field for instructions
                agent = self._request.agent
                words = "\n\n".join(filter(None, (agent.instructions, agent.rules, words)))
            prompt = await content_of(self._context, words, self._said.parts, opened.takes)
            await link.request("session/prompt", {"sessionId": opened.session, "prompt": prompt})
        except RpcRefused as error:
            return Failure.of(refused(error, "answer", self._agent, None))
        except FenceLost:
            raise
        except MootError as error:
            return Failure.of(error)
        return None

    async def _earlier_messages(self) -> tuple[Message, ...]:
        """Return the messages that a new session needs: the conversation before the prompt."""
        history = await self._context.history(_EARLIER)
        return tuple(history[:-1] if history and history[-1].role == "user" else history)
