"""The agent service `claude-code`: command line, prompt, and a turn from prompt to end."""

from __future__ import annotations

import base64
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import anyio

from moot.agents.claude_code.command import INSTALL, SessionStart, arguments_of, environment_of, kept_names, mcp_config, model_of, program
from moot.agents.claude_code.connection import Dialogue
from moot.agents.claude_code.tools import ToolServer, own_tools
from moot.agents.outside.leg import TurnInput, outcome_of, record_child, run_leg
from moot.agents.outside.options import directory_of, launch_of
from moot.agents.outside.process import Program
from moot.agents.outside.prompts import with_history
from moot.agents.outside.turn import Turn
from moot.convert.agents.claude_code import ClaudeCode as Lines
from moot.errors import MootError
from moot.types.approval import Session
from moot.types.canonical import Json, JsonObject
from moot.types.context import RunContext
from moot.types.exchange import Ended, Failure
from moot.types.message import Message, Part
from moot.types.run import RunOutcome, RunRequest

_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


async def content_of(context: RunContext, text: str, parts: Sequence[Part]) -> Json:
    """Return the text, or a list of blocks if there are files. A file that the program can't accept is described in text."""
    blocks: list[Json] = [block for part in parts if part.get("type") == "file" if (block := await _piece(context, part))]
    return [*blocks, {"type": "text", "text": text}] if blocks else text


async def _piece(context: RunContext, part: Part) -> JsonObject:
    url, media_type = str(part.get("url", "")), str(part.get("mediaType", ""))
    encoded = await _encoded(context, url)
    if encoded is None:
        return _link(part, url, media_type)
    if media_type in _PICTURES:
        return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": encoded}}
    if media_type == "application/pdf":
        return {"type": "document", "source": {"type": "base64", "media_type": media_type, "data": encoded}}
    if media_type.startswith("text/") or media_type == "application/json":
        text = base64.b64decode(encoded).decode("utf-8", "replace")
        return {"type": "text", "text": f"<file name={str(part.get('filename') or 'file')!r}>\n{text}\n</file>"}
    return _link(part, "", media_type)


def _link(part: Part, url: str, media_type: str) -> JsonObject:
    if media_type in _PICTURES and url.startswith(("http://", "https://")):
        return {"type": "image", "source": {"type": "url", "url": url}}
    return {
        "type": "text",
        "text": f"[a file that can't be shown here: {part.get('filename') or url or 'unnamed'}, {media_type or 'unknown'}]",
    }


async def _encoded(context: RunContext, url: str) -> str | None:
    """Return the bytes in base64, or None if they are stored elsewhere."""
    if url.startswith("blob:"):
        data = await context.ports.blobs.get(url.removeprefix("blob:"))
        return base64.b64encode(data).decode()
    head, comma, body = url.partition(",")
    return body if comma and head.startswith("data:") and head.endswith(";base64") else None


_EARLIER = 20_000
"""Maximum number of tokens of earlier messages included for a new session."""


def _double(behaviour: str) -> JsonObject:
    """Return options that run a test double of the program."""
    spec = find_spec("moot")
    folder = Path(spec.origin).parent if spec is not None and spec.origin is not None else Path()
    return {"command": [sys.executable, "-S", "-E", str(folder / "testing" / "claude_program.py"), behaviour]}


class ClaudeCode:
    """The agent service for `claude-code`. Its options: `command`, `args`, `env`."""

    trials: Mapping[str, JsonObject] = {"answer": _double("answer"), "slow": _double("slow")}

    async def run(self, request: RunRequest, context: RunContext) -> RunOutcome:
        return await _Leg(request, context).run()


class _Leg:
    """State shared by the turns of one leg: their session."""

    def __init__(self, request: RunRequest, context: RunContext) -> None:
        self._request = request
        self._context = context
        self._session = request.run.agent_session_id or ""
        """Set by earlier turns of this run."""

    async def run(self) -> RunOutcome:
        return await run_leg(self._request, self._context, self._talk)

    async def _talk(self, said: TurnInput) -> RunOutcome:
        tools = own_tools(self._request.agent)
        begins, prompt = await self._session_start(said)
        turn = await Turn.begin(
            self._request,
            self._context,
            Lines(),
            number=said.number,
            prompt=prompt.encode("utf-8", "replace"),
            model=model_of(self._request),
            extra={"resumed": bool(begins.session)},
        )
        ended: Ended = "cut"
        failure: Failure | None = None
        try:
            dialogue, failure = await self._process(turn, said, begins, prompt, ToolServer(self._context, tools, said.number))
            if dialogue.lost and begins.session:
                prompt = with_history(await self._earlier_messages(), said.text)
                dialogue, failure = await self._process(turn, said, SessionStart(), prompt, ToolServer(self._context, tools, said.number))
            self._session = dialogue.session or self._session
            ended = "eof" if dialogue.results else "cut"
        except MootError as error:
            failure = Failure.of(error)
            raise
        except anyio.get_cancelled_exc_class():
            ended = "cancelled"
            raise
        finally:
            ending = await turn.close(ended, failure)
        return outcome_of(ending)

    async def _process(
        self, turn: Turn, said: TurnInput, begins: SessionStart, prompt: str, served: ToolServer
    ) -> tuple[Dialogue, Failure | None]:
        """Run one process for the prompt. Return the failure if it did not answer at all."""
        request, context = self._request, self._context
        launch = launch_of(request, (program(),)) if "command" not in request.agent.options else launch_of(request, ())
        words = arguments_of(request, launch, context.mode, begins, serves=bool(served.tools))
        content = await content_of(context, prompt, said.parts)
        runs = Program(words, cwd=directory_of(request), env=environment_of(launch), hint=INSTALL, keeps=kept_names())
        async with runs:
            await record_child(context, said.number, runs.child)
            dialogue = Dialogue(context, turn, runs, served)
            await dialogue.run(
                {"type": "user", "message": {"role": "user", "content": content}, "parent_tool_use_id": None, "session_id": ""},
                mcp_config(request.servers),
            )
            if dialogue.results:
                return dialogue, None
            return dialogue, Failure.of(runs.died("exited before it answered", await runs.ended()))

    async def _session_start(self, said: TurnInput) -> tuple[SessionStart, str]:
        """Return where the turn starts, and the prompt with the messages that its session lacks."""
        if self._session:
            return SessionStart(self._session), said.text
        session = await self._context.session()
        if session is None:
            return SessionStart(), with_history(await self._earlier_messages(), said.text)
        return SessionStart(session.id, session.moved, _place(session)), with_history(session.unseen, said.text)

    async def _earlier_messages(self) -> list[Message]:
        """Return the branch before the prompt."""
        messages = await self._context.history(_EARLIER)
        while messages and messages[-1].role == "user":
            messages = messages[:-1]
        return messages


def _place(session: Session) -> str:
    """Return the line of the session that ends the answer which the branch continues."""
    steps = session.last.metadata.get("steps")
    last: Json = steps[-1] if isinstance(steps, list) and steps else None
    facts: JsonObject = last if isinstance(last, dict) else {}
    return str(facts.get("session_at") or "")
