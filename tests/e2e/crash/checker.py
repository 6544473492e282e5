"""Rules that a store must obey after any number of kills: the promises P1 to P5, checked against what watchers received."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from journey import digest

from moot.convert.fold import abandoned, fold_parts
from moot.types.event import Event
from moot.types.message import TOOL_DONE, Message, is_tool
from moot.types.run import TERMINAL, Run
from moot.types.store import Store


async def everything(store: Store, conversation: str) -> list[Event]:
    events: list[Event] = []
    while page := await store.log.read(conversation, after=events[-1].seq if events else 0):
        events += page
    return events


def check_shown(events: list[Event], acks: Path) -> None:
    """P1 and P3: everything that was shown is stored unchanged, and offsets have no gaps from 1."""
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    stored = {event.seq: digest(event) for event in events}
    for line in acks.read_text().splitlines():
        seq, shown = line.split()
        assert stored.get(int(seq)) == shown, f"event {seq} was shown and is not stored like that"


def check_run(run: Run, message: Message, events: list[Event]) -> None:
    """P4 and P5: one terminal state, one output for each call, unique journal keys, and the message equals the fold of its events."""
    assert run.status in TERMINAL, run.status
    own = [event for event in events if event.run == run.id]
    assert [event.key for event in own if event.key == "run"] == ["run", "run"]
    journal = Counter((event.phase, event.key) for event in own if event.phase is not None)
    assert not [entry for entry, count in journal.items() if count > 1]
    chunks = [chunk for event in own for chunk in event.chunks]
    outputs = Counter(
        str(chunk["toolCallId"])
        for chunk in chunks
        if chunk["type"] in ("tool-output-available", "tool-output-error", "tool-output-denied", "tool-input-error")
    )
    assert all(count == 1 for count in outputs.values()), outputs
    parts = fold_parts((), chunks)
    assert message.parts == parts
    assert all(part["state"] in TOOL_DONE for part in parts if is_tool(part))
    assert not [part for part in parts if part.get("state") in ("streaming", "input-streaming")]
    check_attempts(own, message)


def check_attempts(own: list[Event], message: Message) -> None:
    """Attempts without an end that showed something are marked as abandoned; each step is answered once."""
    ended = {event.key for event in own if event.kind == "exchange" and event.phase == "end"}
    dropped = abandoned(message.parts)
    marks = {str(part.get("id")) for index, part in enumerate(message.parts) if part.get("type") == "data-attempt" and index in dropped}
    for event in own:
        if event.kind == "exchange" and event.phase == "start" and event.key not in ended:
            shown = [chunk for other in own if other.exchange == event.exchange for chunk in other.chunks if chunk["type"] != "start-step"]
            if shown:
                assert str(event.key).removeprefix("llm:") in marks, f"{event.key} was cut and is not marked"
