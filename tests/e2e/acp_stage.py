"""A moot with one ACP agent that follows a script."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio

from conformance.services import Stage, check_log, children
from moot.config.settings import Models, Permissions, Rule, Settings
from moot.engine import open_engine
from moot.testing.scripted import ScriptedServer
from moot.types.agent import Agent, McpServer
from moot.types.approval import Answer, Approval
from moot.types.canonical import JsonObject
from moot.types.event import SENT
from moot.types.message import Part, is_tool, text_of, text_part
from moot.types.run import TERMINAL, Prompt, Run

_spec = find_spec("moot.testing.acp_agent")
assert _spec is not None and _spec.origin is not None
DOUBLE = [sys.executable, "-S", "-E", _spec.origin]


@dataclass
class AcpStage(Stage):
    """`directory` is the agent's working directory."""

    seconds: float = 60
    """Maximum seconds of a run."""
    requests: Callable[[], list[dict[str, Any]]] = list
    """The requests to its model, if that is a scripted one."""

    async def run(self, text: str = "go", **prompt: Any) -> Run:
        """Run a prompt to its end. Check that the log is complete and no process is left."""
        return await self.ended(await self.begin(text, **prompt))

    async def begin(self, text: str = "go", *, files: tuple[Part, ...] = (), **prompt: Any) -> Run:
        given = Prompt((text_part(text), *files), directory=str(self.directory), agent="tried", **prompt)
        return (await self.engine.runs.submit(given)).run

    async def ended(self, run: Run) -> Run:
        with anyio.fail_after(self.seconds):
            # a waiting run is awaited too, because its process waits
            while (ended := await self.engine.runs.wait(run.id)).status not in TERMINAL:
                await anyio.sleep(0.01)
        await check_log(self, ended)
        return ended

    async def parts(self, run: Run) -> list[Part]:
        message = await self.engine.store.conversations.message(run.message)
        return [part for part in message.parts if part.get("type") != "step-start"]

    async def text(self, run: Run) -> str:
        return text_of(await self.parts(run))

    async def calls(self, run: Run) -> list[Part]:
        return [part for part in await self.parts(run) if is_tool(part)]

    async def asked(self, run: Run, count: int = 1) -> list[Approval]:
        """Return the open questions of the run, when there are `count`."""
        with anyio.fail_after(60):
            while len(found := await self.engine.store.records.approvals(run=run.id)) < count:
                assert (await self.engine.store.records.run(run.id)).status in ("queued", "running", "waiting"), "it ended before it asked"
                await anyio.sleep(0.01)
        return found

    async def answer(self, run: Run, answer: Answer) -> Approval:
        (approval,) = await self.asked(run)
        await self.engine.runs.answer(approval.id, answer)
        return approval

    async def wire(self, run: Run, *, ours: bool) -> list[dict[str, Any]]:
        """Return the logged messages of one direction."""
        events = [event for event in await self.events(run) if event.raw is not None and (event.body == SENT) is ours]
        return [json.loads(event.raw) for event in events if event.raw and event.raw.startswith(b"{")]


@asynccontextmanager
async def acp_stage(
    home: Path,
    script: dict[str, Any] | str,
    *,
    mode: Any = "auto",
    rules: tuple[Rule, ...] = (),
    name: str = "double",
    own: str = "",
    servers: tuple[McpServer, ...] = (),
    **options: Any,
) -> AsyncGenerator[AcpStage]:
    """Open the stage. A text script is one of the double's own; `own` is the agent's mode, `options` override the others."""
    directory = home / "work"
    directory.mkdir(exist_ok=True, parents=True)
    words = script
    if isinstance(script, dict):
        words = str(home / "script.json")
        Path(words).write_text(json.dumps(script))
    given: JsonObject = {"command": [*DOUBLE, str(words)], **({"mode": own} if own else {}), **options}
    before = children()
    async with ScriptedServer([]) as server:
        settings = Settings(
            home / "home",
            models=Models(main="scripted@mine"),
            providers={"mine": server.provider("mine")},
            permissions=Permissions(mode=mode, rules=rules),
            mcp={server.name: server for server in servers},
            agents={"default": Agent(), "tried": Agent("tried", agent_type=f"acp:{name}", options=given)},
        )
        async with open_engine(settings) as engine:
            yield AcpStage(engine, directory)
    assert not children() - before, "a process was left behind"
