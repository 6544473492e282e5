"""Sessions that are imported after each write of their program. The result equals one import of the whole session."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from import_stage import stored
from moot.imports.conversations import ImportOptions
from moot.imports.importer import import_sources
from moot.imports.report import Report
from moot.imports.sources import local_sources
from moot.types.store import Store

Writes: TypeAlias = Iterator[tuple[str, bytes]]
"""Paths below the home and contents of files, in the order in which a program writes them."""


async def imported(store: Store, home: Path) -> Report:
    report = Report()
    await import_sources(store, local_sources(home, {}, home / "moot"), ImportOptions(home=home), report)
    return report


async def contents(store: Store) -> list[Any]:
    """Return everything that is shown and counted of the conversations."""
    found: list[Any] = []
    for one in (await store.conversations.list()).items:
        shown = [(message.role, message.parts, message.metadata) for message in await store.conversations.branch(one.id)]
        found.append((one.origin and one.origin["source_id"], one.title, one.message_count, one.usage, one.cost, one.unpriced_runs, shown))
    return sorted(found, key=str)


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def openhands(clock: bool) -> Writes:
    """Return two turns. The model calls are stored before the answers, and those of the title and of a summary have no answer."""
    folder = ".openhands/conversations/c0ffee"
    calls: list[str] = []

    def event(number: int, kind: str, **fields: Any) -> tuple[str, bytes]:
        value = {"kind": kind, "id": f"e{number}", "timestamp": f"2026-07-31T10:00:{number:02}", **fields}
        return f"{folder}/events/event-{number:05}-e{number}.json", encoded(value)

    def state(call: str) -> tuple[str, bytes]:
        calls.append(call)
        costs = [{"cost": number + 1.0, **({"timestamp": 1_785_492_000.0 + number} if clock else {})} for number in range(len(calls))]
        usages = [{"prompt_tokens": 100 * len(one), "completion_tokens": 10, "response_id": one} for one in calls]
        metrics = {"model_name": "mock-1", "costs": costs, "token_usages": usages}
        return f"{folder}/base_state.json", encoded({"id": "c0ffee", "stats": {"usage_to_metrics": {"agent": metrics}}})

    def said(source: str, words: str, **fields: Any) -> dict[str, Any]:
        return {"source": source, "llm_message": {"content": [{"type": "text", "text": words}]}, **fields}

    def action(words: str, call: str) -> dict[str, Any]:
        called = {"tool_name": "ls", "tool_call_id": call, "tool_call": {"id": call, "name": "ls", "arguments": "{}"}}
        return {"source": "agent", "thought": [{"type": "text", "text": words}], **called}

    yield event(0, "MessageEvent", **said("user", "What is here?"))
    yield state("r1")
    yield event(1, "ActionEvent", **action("I look.", "c1"), llm_response_id="r1")
    yield state("title")
    yield event(2, "ObservationEvent", tool_name="ls", tool_call_id="c1", observation={"content": [{"type": "text", "text": "a.txt"}]})
    yield state("r2")
    yield event(3, "MessageEvent", **said("agent", "One file.", llm_response_id="r2"))
    yield event(4, "MessageEvent", **said("user", "And now?"))
    yield state("summary")
    yield state("r3")
    yield event(5, "MessageEvent", **said("agent", "Still one.", llm_response_id="r3"))


def aider() -> Writes:
    """Return two runs, of which each write adds a few bytes. The first prompt has several lines."""
    begun = "# aider chat started at 2026-08-13 22:59:40\n\n> Main model: gpt-4o with diff edit format~\n\n"
    tokens = "> Tokens: 2.1k sent, 40 received. Cost: $0.01 message, $0.01 session.~\n"
    first = f"#### What is a  b here?~\n#### ~\n#### Count the files.~\n\n#### No prompt\nOne file.\n\n{tokens}> Applied edit to a.txt~\n"
    second = f"\n#### And now?~\n\nStill one.\n\n{tokens}"
    text = f"\n{begun}{first}{second}\n{begun.replace('22', '23')}#### Once more~\n\nNo.\n\n{tokens}".replace("~", "  ").encode()
    sizes = {text.index(b"a  b") + 3, text.index(b"Count"), *range(50, len(text), 37)}
    yield from ((".aider.chat.history.md", text[:size]) for size in sorted(sizes))
    yield ".aider.chat.history.md", text


SESSIONS: dict[str, Callable[[], Writes]] = {
    "aider": aider,
    "openhands": lambda: openhands(clock=True),
    "openhands without times": lambda: openhands(clock=False),
}


@pytest.mark.anyio
@pytest.mark.parametrize("name", SESSIONS)
async def test_a_session_imported_after_each_write_equals_one_import_of_the_whole(name: str, tmp_path: Path) -> None:
    home = tmp_path / "user"
    async with stored(tmp_path / "step by step") as store:
        for file, data in SESSIONS[name]():
            path = home / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            await imported(store, home)
        grown, counted = await contents(store), (await store.stats.usage(wait=10)).total
    async with stored(tmp_path / "at once") as store:
        await imported(store, home)
        whole = await contents(store)
        assert grown == whole
        assert counted == (await store.stats.usage(wait=10)).total
    assert whole[0][3].input
    assert whole[0][4]
