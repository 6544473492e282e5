"""Repeat a run of moot's own loop offline, with the recorded model answers and tool outputs.

Nothing is stored or sent, and no tool runs. The requests that the loop creates now are compared with the recorded ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Literal, cast

from moot.agents.journal import is_hand_over
from moot.agents.window import summary_message
from moot.convert.comparison import Difference, differences
from moot.convert.fold import Folder
from moot.errors import MootError, NotFound, ProviderError, UsageError
from moot.plugins import AGENTS, DIALECTS
from moot.providers.pool import Providers
from moot.runtime.journal import Journal
from moot.runtime.runtime import Runtime
from moot.runtime.setup import find_agent, in_project, options_of, step_setup
from moot.types import chunk
from moot.types.blob import Blob, Blobs, StagedBlobs
from moot.types.canonical import Json, JsonObject, dumps, loads
from moot.types.context import AgentService, Choice, Result, RunContext, StepSetup, ToolHooks, Verdict, Work
from moot.types.conversation import STEP_SETTINGS, Conversation, Project
from moot.types.event import REFUSED, Event, Raw
from moot.types.exchange import Exchange, Failure
from moot.types.hooks import HookAnswer
from moot.types.knowledge import Documents
from moot.types.message import Message
from moot.types.model import Model, ModelId, ModelRole
from moot.types.provider import ModelRequest, Provider, Quirks
from moot.types.run import Run, RunRequest
from moot.types.store import Change, InboxItem, OwnerStore
from moot.types.tool import Tool
from moot.types.workflow import WORKFLOW

MOST = 20
"""Maximum number of differences to report for a run."""


class RecordingCancelled(Exception):
    """The recorded exchange was cancelled at this point."""


@dataclass(slots=True)
class _Recorded:
    exchange: Exchange
    raws: list[Raw] = field(default_factory=list[Raw])
    refusal: Raw = b""
    failure: Failure | None = None
    ended: str = ""
    ended_at: int = 0
    requested: bool = False


class Tape:
    """All exchanges of a run, keyed by id, and the differences found."""

    def __init__(self, exchanges: dict[str, _Recorded], holdings: OwnerStore) -> None:
        self.exchanges = exchanges
        self.reported: list[str] = []
        self.requests = 0
        self._omitted = 0
        self._holdings = holdings

    @classmethod
    async def of(cls, holdings: OwnerStore, events: Sequence[Event]) -> Tape:
        found: dict[str, _Recorded] = {}
        for event in events:
            if event.exchange is None:
                continue
            if event.exchange not in found:
                exchange = await holdings.records.exchange(event.exchange)
                if exchange is None or exchange.purpose != "answer":
                    continue
                if "redacted" in exchange.request:
                    raise UsageError("The recorded answer was redacted, so it can't be played back.")
                found[event.exchange] = _Recorded(exchange)
            recorded = found[event.exchange]
            if event.kind == "raw" and event.raw is not None:
                if event.body == REFUSED:
                    recorded.refusal = event.raw
                else:
                    recorded.raws.append(event.raw)
            elif event.phase == "end" and isinstance(event.body, dict):
                error = event.body.get("error")
                recorded.failure = Failure.from_json(error) if isinstance(error, dict) else None
                recorded.ended, recorded.ended_at = str(event.body.get("ended", "")), event.at
        return cls(found, holdings)

    def differs(self, difference: str) -> None:
        if len(self.reported) < MOST:
            self.reported.append(difference)
            return
        self._omitted += 1
        self.reported[-1] = f"and {self._omitted + 1} more differences"

    def unasked(self) -> list[str]:
        return [name.rpartition(":")[2] for name, recorded in self.exchanges.items() if not recorded.requested]

    async def check(self, recorded: _Recorded, request: ModelRequest) -> None:
        """Compare a request with the recorded one."""
        self.requests += 1
        recorded.requested = True
        name = recorded.exchange.id.rpartition(":")[2]
        pieces = recorded.exchange.request.get("pieces")
        try:
            then = b"".join([await self._holdings.blobs.get(str(piece)) for piece in pieces]) if isinstance(pieces, list) else b""
        except NotFound:
            self.differs(f"the request of {name} was not stored, so it could not be compared")
            return
        if then == request.body:
            return
        try:
            found = list(differences(loads(then), loads(request.body)))
        except ValueError:
            self.differs(f"the request of {name} differs")
            return
        if not found:
            self.differs(f"the request of {name} differs only in its formatting")
        for difference in found:
            self.differs(f"the request of {name} differs at {where(difference)}")


class _Playback:
    def __init__(self, name: str, dialect: str, quirks: Quirks, tape: Tape) -> None:
        self.name = name
        self.dialect = dialect
        self.quirks = quirks
        self._tape = tape

    async def stream(self, request: ModelRequest) -> AsyncGenerator[tuple[Raw, ...], None]:
        recorded = self._tape.exchanges.get(request.idempotency_key)
        if recorded is None:
            name = request.idempotency_key.rpartition(":")[2]
            raise UsageError(f"The model call {name} was not made in the recorded run.")
        await self._tape.check(recorded, request)
        for raw in recorded.raws:
            yield (raw,)
        failure = recorded.failure
        if recorded.ended == "cancelled":
            raise RecordingCancelled
        if recorded.ended == "":  # interrupted by a crash
            raise ProviderError("interrupted", kind="transport", retryable=True)
        if recorded.ended == "cut" and failure is not None:
            raise ProviderError(
                failure.message,
                fix=failure.fix,
                kind=failure.kind,
                retryable=failure.retryable,
                retry_after=failure.retry_after,
                raw=recorded.refusal,
            )

    async def models(self) -> Sequence[Model]:
        return ()

    async def close(self) -> None:
        return


class RecordedPool:
    """The models of the run, whose providers play back recorded answers."""

    def __init__(self, providers: Providers, tape: Tape) -> None:
        self._providers = providers
        self._tape = tape

    async def choice(self, text: str, *, role: ModelRole = "main") -> Choice:
        return (await self.choices(text, role=role))[0]

    async def choices(self, text: str, fallback: Sequence[str] = (), *, role: ModelRole = "main") -> tuple[Choice, ...]:
        try:
            found = await self._providers.choices(text, fallback, role=role)
        except UsageError:
            first = next(iter(self._tape.exchanges.values()), None)
            if first is None:
                raise UsageError("The model of the recorded run is unknown.", fix="See `moot providers list`.") from None
            exchange = first.exchange  # only the recorded answers of the provider are needed
            model = Model(ModelId(exchange.model, exchange.provider), exchange.model)
            return (Choice(model, self._playback(exchange.provider, exchange.dialect, Quirks()), DIALECTS.make(exchange.dialect)),)
        return tuple(replace(one, provider=self._playback(one.provider.name, one.provider.dialect, one.provider.quirks)) for one in found)

    def _playback(self, name: str, dialect: str, quirks: Quirks) -> Provider:
        return cast("Provider", _Playback(name, dialect, quirks, self._tape))


def where(difference: Difference) -> str:
    """Describe where two requests differ."""
    return f"{difference.where or 'the whole'}: was {difference.expected}, now {difference.found}"


_PAGE = 512


@dataclass(frozen=True, slots=True)
class Rerun:
    """The result of a repetition."""

    run: Run
    ran: bool
    """False if the run can't be repeated. Then `differences` is empty, and `why` contains the reason."""
    requests: int = 0
    calls: int = 0
    differences: tuple[str, ...] = ()
    why: str = ""

    def to_json(self) -> JsonObject:
        return {
            "run": self.run.id,
            "agent_type": self.run.agent_type,
            "model": self.run.model,
            "ran": self.ran,
            "requests": self.requests,
            "calls": self.calls,
            "differences": list[Json](self.differences),
            "why": self.why,
        }


async def rerun(runtime: Runtime, holdings: OwnerStore, conversation: Conversation, run: Run) -> Rerun:
    """Repeat a run with its own recording. Raise StoreError if the recording can't be read."""
    if run.agent_type != "moot":
        return Rerun(run, False, why=f"{run.agent_type} is an outside program, whose behavior is not recorded")
    if WORKFLOW in run.settings:
        return Rerun(run, False, why="it is a workflow, whose steps are separate runs")
    events: list[Event] = []
    while page := await holdings.log.read(run.conversation, after=events[-1].seq if events else 0, limit=_PAGE, run=run.id):
        events += page
    if any(map(is_hand_over, events)):
        return Rerun(run, False, why="several agents worked on it")
    message = await holdings.conversations.message(run.message)
    tape = await Tape.of(holdings, events)
    there = (conversation.origin or {}).get("directory")  # an imported conversation may have a different directory by now
    inherited = run.settings.get("inherited")
    settings = {**dict.fromkeys(STEP_SETTINGS), **(inherited if isinstance(inherited, dict) else {})}
    placed = replace(
        conversation,
        directory=there if isinstance(there, str) and there else conversation.directory,
        settings={**conversation.settings, **settings},  # the settings at that time, because they may have changed since then
    )
    project = await holdings.projects.get(conversation.project)
    context = _Context(runtime, holdings, placed, project, run, message, tape, events)
    try:
        options = options_of(run.settings, placed)
        agent = in_project(find_agent(runtime.settings, run.agent, options, placed.directory), project)
        service: AgentService = AGENTS.make(run.agent_type)
        request = RunRequest(run, placed, agent, options)
        outcome = await service.run(request, cast("RunContext", context))
    except RecordingCancelled:
        outcome = None
    except MootError as error:
        tape.differs(f"the repetition failed: {error.advice()}")
        outcome = None
    if outcome is not None and outcome.status != run.status:
        why = f" ({outcome.error.message})" if outcome.error is not None else ""
        tape.differs(f"the run was {run.status}, but would now be {outcome.status}{why}")
    for name in tape.unasked():
        tape.differs(f"the model call {name} would not be made now")
    recorded, now = (
        [{name: value for name, value in part.items() if name != "approval"} for part in parts]
        for parts in (message.parts, context.folder.parts())
    )
    for difference in differences(list[Json](recorded), list[Json](now)):
        tape.differs(f"the answer differs at {where(difference)}")
    return Rerun(run, True, tape.requests, context.calls, tuple(tape.reported))


class _Context:
    def __init__(
        self,
        runtime: Runtime,
        holdings: OwnerStore,
        conversation: Conversation,
        project: Project,
        run: Run,
        message: Message,
        tape: Tape,
        events: Sequence[Event],
    ) -> None:
        self.folder = Folder()
        self.calls = 0
        self.ports = _Ports(_Reading(holdings.blobs), events[0].at if events else 0, runtime.documents)
        self._runtime = runtime
        self._holdings = holdings
        self._conversation = conversation
        self._project = project
        self._run = run
        self._message = message
        self._tape = tape
        self._recorded = Journal(events)
        self._index = Journal()
        self._steps = 0
        self._has_compacted = False
        self._steered: list[tuple[int, JsonObject]] = []
        """Recorded steering messages, each with the number of steps completed before it. -1 marks a message that was already sent."""
        steps = 0
        for event in events:
            for piece in event.chunks:
                if piece["type"] == "steering-message":
                    self._steered.append((steps, {"id": piece.get("id"), "parts": piece.get("parts")}))
            steps += event.phase == "end" and (event.key or "").startswith("step:")
        for at, event in enumerate(events):
            if at == 0 or (event.key or "").startswith(("hook:SessionStart:", "hook:UserPromptSubmit:", "hook:before_run.")):
                self.folder.feed_all(event.chunks)

    async def append(self, *events: Event, changes: Sequence[Change] = (), sync: bool = False, fold: bool = False) -> range:
        for event in events:
            self.folder.feed_all(event.chunks)
            self._index.add(event)
            if event.kind == "exchange" and event.phase == "end" and event.exchange in self._tape.exchanges:
                self.ports.at = self._tape.exchanges[event.exchange].ended_at or self.ports.at
            if event.phase == "end" and (event.key or "").startswith("step:"):
                self._steps += 1
        return range(0)

    async def journal(self) -> list[Event]:
        return []

    async def history(self, tokens: int, *, compact_to: int = 0) -> list[Message]:
        branch = await self._holdings.conversations.branch(self._run.conversation, head=self._message.id)
        self._has_compacted = self._has_compacted or compact_to > 0
        until = self._run.last_seq if self._has_compacted else self._run.first_seq
        summaries = await self._holdings.tree.compactions(self._run.conversation)
        known = {one.through: one for one in summaries if one.seq < until}
        at = next((at for at in range(len(branch), 0, -1) if branch[at - 1].id in known), 0)
        summary = [summary_message(known[branch[at - 1].id])] if at else []
        return [*summary, *(message for message in branch[at:] if message.id != self._message.id)]

    def message(self) -> Message:
        own = self._message
        return replace(own, parts=self.folder.parts(), metadata=self.folder.metadata(), status="streaming")

    async def setup(self, role: ModelRole = "main") -> StepSetup:
        settings = self._runtime.settings
        options = options_of(self._run.settings, self._conversation)
        agent = find_agent(settings, self._run.agent, options, self._conversation.directory)
        pool = cast("Providers", RecordedPool(self._runtime.providers, self._tape))
        return await step_setup(settings, pool, agent, self._run, self._conversation, self._project, role=role, now=self.ports.now())

    async def once(self, key: str, *, idempotent: bool, work: Work, body: JsonObject, verdict: Verdict | None = None) -> Result:
        """Return the recorded output. The work itself is not repeated."""
        self.calls += 1
        ended = self._ended(key)
        if ended is None:
            self._tape.differs(f"the call {body.get('tool')} ({key}) has no recorded output")
            ended = Event("chunks", (chunk.tool_error(str(body.get("call")), "not recorded"),))
        await self.append(Event("chunks", ended.chunks, phase="end", key=f"{key}.0", body=ended.body), fold=True)
        value = ended.body.get("value") if isinstance(ended.body, dict) else None
        return Result(value, ended.chunks)

    def standing(self, key: str) -> Literal["new", "begun", "ended"]:
        return self._index.standing(key)

    async def allow(self, tool: Tool, key: str, tool_call: str, arguments: bytes, subject: str, hook: HookAnswer | None = None) -> Verdict:
        """Return the recorded decision."""
        started = self._recorded.starts.get(f"{key}.0")
        if started is not None:
            edited = started.body.get("input") if isinstance(started.body, dict) else None
            return Verdict(True, arguments=dumps(edited) if edited is not None else None)
        ended = self._ended(key)
        if ended is None:
            return Verdict(True)  # `once` reports the missing record
        self.calls += 1
        value = ended.body.get("value") if isinstance(ended.body, dict) else None
        reason = str(value.get("denied", "")) if isinstance(value, dict) else ""
        kinds = [piece["type"] for piece in ended.chunks]
        return Verdict(False, reason, asked="tool-output-denied" in kinds, nobody="message-metadata" in kinds)

    def _ended(self, key: str) -> Event | None:
        attempts = [event for name, event in self._recorded.ends.items() if name.rpartition(".")[0] == key]
        return attempts[-1] if attempts else None

    async def inbox(self) -> list[InboxItem]:
        """Return the messages that steered the run before its next step."""
        found = [InboxItem("steer", body, number) for number, (step, body) in enumerate(self._steered, 1) if step == self._steps]
        self._steered = [(-1 if step == self._steps else step, body) for step, body in self._steered]
        return found


@dataclass(slots=True)
class _Ports:
    blobs: _Reading
    at: int
    documents: Documents
    hooks: ToolHooks | None = None
    """None: the decisions of hooks are part of the recorded calls."""

    def now(self) -> int:
        return self.at

    def jitter(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        return

    def slot(self, provider: str) -> AbstractAsyncContextManager[object]:
        return nullcontext()


@dataclass(frozen=True, slots=True)
class _Reading:
    """The blobs of the recorded run. New blobs are named but not stored."""

    inner: Blobs

    async def put(self, data: bytes, media_type: str = "application/octet-stream") -> Blob:
        return Blob(hashlib.sha256(data).hexdigest(), len(data), media_type)

    async def put_all(self, pieces: Sequence[bytes], media_type: str = "application/octet-stream") -> list[Blob]:
        return [await self.put(piece, media_type) for piece in pieces]

    async def stage(self, pieces: Sequence[bytes], media_type: str = "application/octet-stream") -> StagedBlobs:
        return StagedBlobs(tuple(await self.put_all(pieces, media_type)), {})

    async def about(self, sha256: str) -> Blob:
        return await self.inner.about(sha256)

    async def get(self, sha256: str, *, offset: int = 0, limit: int | None = None) -> bytes:
        return await self.inner.get(sha256, offset=offset, limit=limit)
