"""Every message that moot keeps is accepted by `validateUIMessages` of the AI SDK, versions 7 and 6."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_machine import assemble
from conformance.formats import is_claimed, read_whole, samples, source
from e2e.server.test_clients import CLIENTS, node
from moot.convert.fold import fold_parts
from moot.convert.ui_message import problem_of, valid_part
from moot.convert.unfold import Version
from moot.plugins import FORMATS
from moot.server.streams.view import message_view
from moot.types.canonical import JsonObject
from moot.types.format import Format, WriteOnly
from moot.types.message import Message, Part, Role

RECORDED = Path(__file__).parents[2] / "recorded"
NEWER = ("custom", "reasoning-file", "steering-message")
"""Types that version 6 does not know."""


def readable() -> list[Format]:
    return [made for name in FORMATS.names() if not isinstance(made := FORMATS.make(name), WriteOnly)]


def imported(folder: Path) -> Iterator[tuple[str, Role, tuple[Part, ...]]]:
    """Yield the messages of every sample, recorded history and recorded store."""
    home = folder / "home"
    assemble(home)
    streams = [*(RECORDED / "formats" / "streams").iterdir(), *(RECORDED / "agents").rglob("*.jsonl")]
    found = [*home.rglob("*"), *(RECORDED / "stores").rglob("*"), *streams]
    files = sorted(path for path in found if path.is_file() or (path / "events").is_dir())  # OpenHands has a file for each event
    for format in readable():
        paths = [path for path in files if is_claimed(format, path)]
        for number, sample in enumerate(samples(format)):
            place = folder / f"{format.name}-{number}"
            place.mkdir()
            paths.append(source(format, place, sample))
        for path in paths:
            for one in read_whole(format, path):
                for message in one.messages:
                    yield f"{format.name} {path} {message.source_id}", message.role, message.parts


def answered() -> Iterator[tuple[str, tuple[Part, ...]]]:
    """Yield the message that each recorded stream of a vendor or an agent becomes."""
    for path in sorted(RECORDED.rglob("*.chunks.json")):
        expected = json.loads(path.read_bytes())
        if "chunks" in expected:
            chunks = expected["chunks"]
        else:
            pieces = expected["events"] if "events" in expected else expected["lines"].values()
            chunks = [*chain(*pieces), *expected["close"]]
        yield f"{path.parent.name}/{path.name}", fold_parts((), chunks)


def refused(version: int, messages: Sequence[tuple[str, JsonObject]]) -> dict[str, str]:
    """Return the messages that the AI SDK of this version refuses, with its reason."""
    given = json.dumps([{"name": name, "message": message} for name, message in messages]).encode()
    ended = subprocess.run([node(), str(CLIENTS / "validate.mjs"), str(version)], input=given, cwd=CLIENTS, capture_output=True, timeout=60)
    assert ended.returncode == 0, ended.stderr[-2000:]
    rows = [json.loads(line) for line in ended.stdout.splitlines()]
    assert len(rows) == len(messages)
    return {row["name"]: row["problem"] for row in rows if row["problem"]}


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, Role, tuple[Part, ...]]]:
    """Return name, role and parts of every recorded message."""
    return [*((name, cast("Role", "assistant"), parts) for name, parts in answered()), *imported(tmp_path_factory.mktemp("imported"))]


def test_every_recorded_message_is_valid_as_it_is_stored(stored: list[tuple[str, Role, tuple[Part, ...]]]) -> None:
    assert len(stored) > 450
    assert not [store for store in (RECORDED / "stores").iterdir() if not any(f"{store}/" in name for name, _, _ in stored)]
    problems = {(name, problem) for name, _, parts in stored for part in parts if (problem := problem_of(part))}
    assert not problems


@pytest.mark.parametrize("version", [7, 6])
def test_the_ai_sdk_accepts_every_recorded_message(version: Version, stored: list[tuple[str, Role, tuple[Part, ...]]]) -> None:
    views = [(name, message_view(Message("m", role, tuple(parts)), version, [])) for name, role, parts in stored]
    assert not refused(version, views)


NAMES = ("type", "text", "state", "input", "output", "errorText", "approval", "toolCallId", "toolName", "id", "data", "url", "mediaType")
MORE = ("title", "providerMetadata", "callProviderMetadata", "toolMetadata", "providerExecuted", "rawInput", "inputEncoding", "preliminary")
STATES = ("streaming", "done", "input-streaming", "input-available", "approval-requested", "approval-responded", "output-available")
TYPES = ("text", "reasoning", "tool-a", "dynamic-tool", "file", "source-url", "source-document", "custom", "step-start", "data-a", "odd")
APPROVALS = st.fixed_dictionaries({"id": st.just("a")}, optional={"approved": st.booleans(), "reason": st.sampled_from(["no", 3])})
ODD = st.sampled_from(["x", "", 3, True, None, [], {}, {"a": {}}, {"a": "b"}, "json"])
COMPLETE: JsonObject = {"text": "t", "toolCallId": "c", "toolName": "n", "input": {}, "url": "https://a.b/", "mediaType": "a/b"}


@st.composite
def any_parts(draw: st.DrawFn) -> Any:
    """A part of any type and state, more or less complete, with some fields that don't belong there."""
    state = st.sampled_from([*STATES, "output-error", "output-denied", "elsewhere"])
    part: Any = {"type": draw(st.sampled_from(TYPES)), "sourceId": "s", "kind": "k", "data": 1, **COMPLETE}
    part |= draw(st.fixed_dictionaries({}, optional={"state": state, "approval": APPROVALS | ODD, "errorText": ODD, "output": ODD}))
    for name in draw(st.lists(st.sampled_from(NAMES + MORE), max_size=2)):
        part[name] = draw(ODD)
    for name in draw(st.lists(st.sampled_from(NAMES), max_size=2)):
        part.pop(name, None)
    return part


@pytest.mark.slow
@settings(max_examples=8, suppress_health_check=list(HealthCheck), deadline=None)
@given(st.lists(any_parts(), min_size=200, max_size=400))
def test_our_rules_are_those_of_the_ai_sdk(parts: list[Any]) -> None:
    """We accept only what both versions accept and refuse what version 7 refuses, and our repairs are accepted."""
    given = [(str(number), {"id": "m", "role": "assistant", "parts": [part]}) for number, part in enumerate(parts)]
    theirs = refused(7, cast("Any", given))
    ours = {str(number): problem for number, part in enumerate(parts) if (problem := problem_of(part))}
    assert [parts[int(number)] for number in theirs.keys() ^ ours.keys()] == []
    mended = [(name, {**message, "parts": [valid_part(message["parts"][0])]}) for name, message in cast("Any", given)]
    assert not refused(7, mended)
    assert not refused(6, [row for row in mended if row[1]["parts"][0]["type"] not in NEWER])
