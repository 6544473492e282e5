"""The conformance suites can fail: each check meets a double that breaks its rule, and a sound one that obeys it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from conformance import channels, formats, services
from moot.errors import FenceLost, UsageError
from moot.types import chunk
from moot.types.approval import Answer
from moot.types.context import Parked, Result
from moot.types.event import Event
from moot.types.format import (
    Entry,
    ExportedConversation,
    ExportFile,
    Fidelity,
    ImportedConversation,
    ImportedFacts,
    ImportedMessage,
    ImportedRecord,
)
from moot.types.message import text_of, text_part
from moot.types.run import RunOutcome

pytestmark = pytest.mark.anyio

# ── agent services ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────

START = Event("chunks", (chunk.start("m"),), phase="start", key="run")
END = Event("chunks", (chunk.finish("stop"),), phase="end", key="run")
CALL: dict[str, Any] = {"type": "tool-input-available", "toolCallId": "t", "toolName": "x", "input": {}}


def said(*chunks: Any) -> Event:
    return Event("chunks", chunks)


@pytest.mark.parametrize(
    ("check", "events", "words"),
    [
        (
            services.check_borders,
            [START, said(chunk.START_STEP), said(chunk.start("m")), said(chunk.FINISH_STEP), END],
            "the runtime's to write",
        ),
        (services.check_borders, [START, said(chunk.START_STEP), END], "left open"),
        (services.check_borders, [START, said(chunk.FINISH_STEP), END], "not balanced"),
        (services.check_borders, [START, END, END._replace(chunks=())], "more than one end"),
        (services.check_calls, [said(CALL)], "have the outputs {}"),
        (services.check_calls, [said(CALL), said(chunk.tool_output("t", 1)), said(chunk.tool_output("t", 1))], "{'t': 2}"),
        (services.check_exchanges, [Event("raw", raw=b"x")], "no exchange"),
        (services.check_exchanges, [Event("exchange", exchange="e", phase="start")], r"borders \['start'\]"),
        (
            services.check_exchanges,
            [Event("exchange", exchange="e", phase=phase) for phase in ("start", "end")] + [Event("raw", raw=b"x", exchange="e")],  # type: ignore[arg-type]
            "outside of the exchange",
        ),
    ],
)
def test_a_log_that_breaks_the_contract_is_reported(check: Callable[[list[Event]], None], events: list[Event], words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check(events)


class Sound:
    """A service that answers once."""

    async def run(self, request: Any, context: Any) -> RunOutcome:
        async def work() -> Result:
            return Result(
                "said",
                ({"type": "text-start", "id": "1"}, {"type": "text-delta", "id": "1", "delta": "hi"}, {"type": "text-end", "id": "1"}),
            )

        await context.once("say", idempotent=False, work=work, body={})
        return RunOutcome("finished")


class Repeats:
    """A service that ignores the journal."""

    async def run(self, request: Any, context: Any) -> RunOutcome:
        await context.append(said(chunk.data("said", "hi")))
        return RunOutcome("finished")


class Swallows(Sound):
    """A service that treats everything as an answer."""

    async def run(self, request: Any, context: Any) -> RunOutcome:
        try:
            return await super().run(request, context)
        except BaseException:  # noqa: BLE001
            return RunOutcome("finished")


async def test_a_service_that_repeats_or_loses_events_is_reported(tmp_path: Path) -> None:
    async with services.staged("moot", Sound(), tmp_path, "answer") as on:
        await services.check_resumed_after_its_end(on, Sound())
        with pytest.raises(AssertionError, match="nothing left to do"):
            await services.check_resumed_after_its_end(on, Repeats())
        for method, error in (("append", FenceLost("gone")), ("once", Parked())):
            await services.check_passes_through(on, Sound(), method, error)
            with pytest.raises(AssertionError, match="swallowed"):
                await services.check_passes_through(on, Swallows() if method == "once" else SwallowsAppend(), method, error)


class SwallowsAppend(Repeats):
    async def run(self, request: Any, context: Any) -> RunOutcome:
        try:
            return await super().run(request, context)
        except FenceLost:
            return RunOutcome("finished")


async def test_a_service_without_a_trial_is_reported(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="has no `trials`"):
        async with services.staged("mine", Sound(), tmp_path, "answer"):
            pass


# ── formats ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Plain:
    """A sound format: one JSON line per message."""

    name, version, suffix = "plain", 1, ".plain"

    def sniff(self, path: Path, head: bytes) -> bool:
        return head.startswith(b"PLAIN\n")

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        data = path.read_bytes()
        if not self.sniff(path, data):
            raise UsageError("none of mine")
        entries: list[Entry] = [ImportedRecord(b"PLAIN\n")]
        lost = 0
        for number, raw in enumerate(data.splitlines(keepends=True)[1:]):
            try:
                role, text = json.loads(raw)
                assert role in ("user", "assistant") and isinstance(text, str)
            except (ValueError, TypeError, AssertionError):
                entries.append(ImportedRecord(raw))
                lost += 1
            else:
                entries.append(ImportedMessage(role, (text_part(text),), str(number), raw))  # type: ignore[arg-type]
        facts = ImportedFacts(Fidelity({"messages": len(entries) - 1 - lost}, {}, {"records": lost}))
        yield ImportedConversation("c", (*entries, facts))

    def write(self, exported: ExportedConversation) -> ExportFile:
        lines = [json.dumps([one.role, text_of(one.parts)]) for one in exported.messages]
        lost = sum(part["type"] != "text" for one in exported.messages for part in one.parts)
        return ExportFile("\n".join(["PLAIN", *lines, ""]).encode(), Fidelity({"messages": len(lines)}, {}, {"parts": lost}))


class Greedy(Plain):
    def sniff(self, path: Path, head: bytes) -> bool:
        return True


class Silent(Plain):
    def write(self, exported: ExportedConversation) -> ExportFile:
        return replace(super().write(exported), fidelity=Fidelity({"messages": len(exported.messages)}))


class Shouting(Plain):
    def read(self, path: Path) -> Iterator[ImportedConversation]:
        for one in super().read(path):
            yield replace(
                one,
                entries=tuple(
                    replace(entry, parts=(text_part("HEY"),)) if isinstance(entry, ImportedMessage) else entry for entry in one.entries
                ),
            )


class Careless(Plain):
    """A format that drops broken lines."""

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        for one in super().read(path):
            whole = one.whole()
            yield replace(one, entries=(*whole.messages, whole.facts))


class Rewriting(Plain):
    """A format that stores raw which the source never had."""

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        for one in super().read(path):
            yield replace(
                one,
                entries=tuple(
                    entry if isinstance(entry, ImportedFacts) else replace(entry, raw=entry.raw.replace(b", ", b","))
                    for entry in one.entries
                ),
            )


def test_a_format_that_breaks_the_contract_is_reported(tmp_path: Path) -> None:
    there_and_back: Callable[[Any], None] = lambda format: formats.check_round_trip(format, tmp_path, ["one", "two"])  # noqa: E731
    for format, check in (
        (Greedy(), lambda format: formats.check_foreign(format, tmp_path, b"[]")),
        (Silent(), formats.check_lost_content_is_counted),
        (Shouting(), there_and_back),
        (Rewriting(), there_and_back),
        (Careless(), lambda format: formats.check_a_broken_line(format, tmp_path, ["one", "two", "three"])),
    ):
        check(Plain())
        with pytest.raises(AssertionError):
            check(format)


# ── channels ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Wire:
    """A channel with both sides in memory."""

    def __init__(self) -> None:
        self.inward: Any = anyio.create_memory_object_stream[str](16)
        self.outward: Any = anyio.create_memory_object_stream[str](16)

    async def say(self, text: str) -> None:
        await self.inward[0].send(text)

    async def hear(self) -> str:
        return await self.outward[1].receive()

    def close(self) -> None:
        for stream in (*self.inward, *self.outward):
            stream.close()


class Whisper:
    """A sound channel in memory, and ways in which one can be wrong."""

    name = "whisper"

    def __init__(self, fault: str = "") -> None:
        self.fault = fault
        self.callers: Any = anyio.create_memory_object_stream[tuple[str, Wire]](16)
        self.wires: list[Wire] = []

    async def serve(self, runtime: Any, settings: Any) -> None:
        async with anyio.create_task_group() as group:
            async for who, wire in self.callers[1]:
                group.start_soon(self.talk, runtime, "everybody" if self.fault == "mixes" else who, wire)

    async def talk(self, runtime: Any, who: str, wire: Wire) -> None:
        async for line in wire.inward[1]:
            submitted = await runtime.submit(who, (text_part(line),))
            while (await runtime.wait(submitted.run.id)).status == "waiting":
                for asked in await runtime.approvals(submitted.run.id):
                    if self.fault == "decides":
                        await runtime.answer(asked.id, Answer(True))
                    await wire.outward[0].send(asked.arguments.decode())
                    if self.fault != "decides":
                        reply = await wire.inward[1].receive()
                        await runtime.answer(asked.id, Answer(reply == "yes"))
            text = text_of((await runtime.message(submitted.run.id)).parts)
            await wire.outward[0].send("..." if self.fault == "mute" else text)

    def trial(self, folder: Path) -> dict[str, Any]:
        return {}

    @asynccontextmanager
    async def client(self, settings: Any, who: str) -> AsyncGenerator[Wire, None]:
        wire = Wire()
        self.wires.append(wire)
        await self.callers[0].send((who, wire))
        yield wire
        wire.inward[0].close()

    def close(self) -> None:
        for stream in (*self.callers, *(stream for wire in self.wires for stream in (*wire.inward, *wire.outward))):
            stream.close()


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        ("mute", channels.check_answers),
        ("mixes", channels.check_users_have_separate_conversations),
        ("decides", channels.check_calls_run_only_after_approval),
        ("decides", channels.check_approvals_of_sub_agents_are_shown),
    ],
)
async def test_a_channel_that_breaks_the_contract_is_reported(tmp_path: Path, fault: str, check: Any) -> None:
    for broken in ("", fault):
        channel = Whisper(broken)
        try:
            async with channels.served(channel, tmp_path / (broken or "sound")) as on:  # type: ignore[arg-type]
                await check(on)
            caught: BaseException | None = None
        except BaseException as error:  # noqa: BLE001  it comes in the group of the task that serves
            caught = error
        channel.close()
        assert (caught is not None) == bool(broken), caught


async def test_the_port_of_a_channel_reaches_its_own_conversations_only(tmp_path: Path) -> None:
    channel: Any = Whisper()
    async with channels.served(channel, tmp_path) as on:
        await channels.check_only_own_conversations_are_accessible(on)
    channel.close()


async def test_a_channel_that_stops_early_or_never_is_reported(tmp_path: Path) -> None:
    class Tired(Whisper):
        async def serve(self, runtime: Any, settings: Any) -> None:
            return

    tired = Tired()
    with pytest.raises(BaseExceptionGroup):
        async with channels.served(tired, tmp_path):  # type: ignore[arg-type]
            await anyio.sleep(5)
    tired.close()
