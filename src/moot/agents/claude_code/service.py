"""The agent service `claude-code`: command line, prompt, and a turn from prompt to end."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence

import anyio

from moot.agents.claude_code.command import INSTALL, SessionStart, arguments_of, environment_of, kept_names, mcp_config, model_of, program
from moot.agents.claude_code.connection import Dialogue, ToolServer, own_tools
from moot.agents.outside.leg import TurnInput, outcome_of, record_child, run_leg
from moot.agents.outside.options import directory_of, double, launch_of
from moot.agents.outside.process import Program
from moot.agents.outside.prompts import earlier_messages, file_bytes, with_history
from moot.agents.outside.turn import Turn
from moot.convert.agents.claude_code import ClaudeCode as Lines
from moot.convert.vendor import as_list, as_object
from moot.errors import MootError
from moot.types.canonical import Json, JsonObject
from moot.types.context import RunContext
from moot.types.exchange import Ended, Failure
from moot.types.message import Part
from moot.types.run import RunOutcome, RunRequest

_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


async def content_of(context: RunContext, text: str, parts: Sequence[Part]) -> Json:
    """Return the text, or a list of blocks if there are files. A file that the program can't accept is described in text."""
    blocks: list[Json] = [block for part in parts if part.get("type") == "file" if (block := await _piece(context, part))]
    return [*blocks, {"type": "text", "text": text}] if blocks else text


async def _piece(context: RunContext, part: Part) -> JsonObject:
    url, media_type = str(part.get("url", "")), str(part.get("mediaType", ""))
    try:
        data = await file_bytes(context, url)
    except ValueError:
        data = None
    name = part.get("filename")
    if data is None and media_type in _PICTURES and url.startswith(("http://", "https://")):
        return {"type": "image", "source": {"type": "url", "url": url}}
    if data is not None and (media_type in _PICTURES or media_type == "application/pdf"):
        source: JsonObject = {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode()}
        return {"type": "image" if media_type in _PICTURES else "document", "source": source}
    if data is not None and (media_type.startswith("text/") or media_type == "application/json"):
        return {"type": "text", "text": f"<file name={str(name or 'file')!r}>\n{data.decode('utf-8', 'replace')}\n</file>"}
    shown = name or (url if data is None else "") or "unnamed"
    return {"type": "text", "text": f"[a file that can't be shown here: {shown}, {media_type or 'unknown'}]"}


class ClaudeCode:
    """The agent service for `claude-code`. Its options: `command`, `args`, `env`."""

    trials: Mapping[str, JsonObject] = {"answer": double("claude_program.py", "answer"), "slow": double("claude_program.py", "slow")}

    async def run(self, request: RunRequest, context: RunContext) -> RunOutcome:
        return await run_leg(request, context, _Leg(request, context).talk)


class _Leg:
    """State shared by the turns of one leg: their session."""

    def __init__(self, request: RunRequest, context: RunContext) -> None:
        self._request = request
        self._context = context
        self._session = request.run.agent_session_id or ""
        """Id of the agent's session, updated by each turn of this run; empty if there is none yet."""

    async def talk(self, said: TurnInput) -> RunOutcome:
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
                prompt = with_history(await earlier_messages(self._context), said.text)
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
        """Run one process for the prompt. Return the failure if the process did not answer at all."""
        request, context = self._request, self._context
        launch = launch_of(request, () if "command" in request.agent.options else (program(),))
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
        """Return the session in which the turn starts, and the prompt preceded by the messages that are missing from this session."""
        if self._session:
            return SessionStart(self._session), said.text
        session = await self._context.session()
        if session is None:
            return SessionStart(), with_history(await earlier_messages(self._context), said.text)
        steps = as_list(session.last.metadata.get("steps"))
        # the session's line at the end of the answer that the branch continues
        at = str(as_object(steps[-1]).get("session_at") or "") if steps else ""
        return SessionStart(session.id, session.moved, at), with_history(session.unseen, said.text)
