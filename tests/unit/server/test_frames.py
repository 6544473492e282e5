from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from moot.convert.fold import Folder, fold_parts
from moot.convert.unfold import Version, unfold
from moot.server.streams.excerpts import BYTES, excerpt, excerpt_text
from moot.server.streams.frames import ChunkFrames, position_of
from moot.server.streams.view import message_view, view
from moot.types.canonical import dumps
from moot.types.chunk import Chunk, problems
from moot.types.event import Event
from moot.types.message import Message

WORDS = st.text(max_size=12)


@st.composite
def chunks(draw: st.DrawFn) -> list[Chunk]:
    """Generate chunks of a run: text, reasoning and calls, some of them unfinished."""
    said: list[Chunk] = [{"type": "start", "messageId": "m"}, {"type": "start-step"}]
    for number in range(draw(st.integers(0, 4))):
        kind, id = draw(st.sampled_from(["text", "reasoning", "call"])), f"p{number}"
        if kind == "call":
            said += [{"type": "tool-input-start", "toolCallId": id, "toolName": "look"}]
            said += [{"type": "tool-input-delta", "toolCallId": id, "inputTextDelta": draw(WORDS)}]
            said += [{"type": "tool-input-available", "toolCallId": id, "toolName": "look", "input": {"a": draw(WORDS)}}]
            if draw(st.booleans()):
                said.append({"type": "tool-output-available", "toolCallId": id, "output": draw(WORDS)})
            continue
        said.append({"type": f"{kind}-start", "id": id})
        said += [{"type": f"{kind}-delta", "id": id, "delta": draw(WORDS)} for _ in range(draw(st.integers(0, 6)))]
        if draw(st.booleans()):
            said.append({"type": f"{kind}-end", "id": id})
    return said


@st.composite
def logs(draw: st.DrawFn) -> list[Event]:
    """Generate the chunks as events of one to three chunks, mixed with events without chunks."""
    left, events = draw(chunks()), list[Event]()
    while left:
        count = draw(st.integers(-3, 3))  # below 0: an event without chunks comes first
        if count <= 0:
            events.append(Event("journal", run="r", seq=len(events) + 1))
        events.append(Event("chunks", tuple(left[: abs(count) or 1]), run="r", seq=len(events) + 1))
        left = left[abs(count) or 1 :]
    return events


def read(data: bytes) -> list[tuple[str, dict[str, Any]]]:
    """Return the chunks of complete frames, as a client reads them from a truncated stream."""
    found: list[tuple[str, dict[str, Any]]] = []
    for block in data.split(b"\n\n")[:-1]:
        fields = dict(line.split(b": ", 1) for line in block.split(b"\n"))
        found.append((fields.get(b"id", b"").decode(), json.loads(fields[b"data"])))
    return found


def parts(said: list[dict[str, Any]]) -> tuple[Any, ...]:
    return fold_parts((), said)


@given(logs())
def test_merged_frames_fold_to_the_same_message(events: list[Event]) -> None:
    data = ChunkFrames(7).write(events, (0, -1), [])
    assert parts([chunk for _, chunk in read(data)]) == parts([chunk for event in events for chunk in event.chunks])


@given(logs(), st.data())
def test_a_stream_cut_after_any_byte_and_resumed_gives_the_same_message(events: list[Event], data: st.DataObject) -> None:
    whole = ChunkFrames(7).write(events, (0, -1), [])
    seen = read(whole[: data.draw(st.integers(0, len(whole)))])
    place = position_of(seen[-1][0]) if seen else (0, -1)
    assert place is not None
    rest = read(ChunkFrames(7).write(events, place, []))
    assert parts([chunk for _, chunk in [*seen, *rest]]) == parts([chunk for event in events for chunk in event.chunks])


@given(logs(), st.data())
def test_a_replay_followed_by_the_tail_gives_the_whole_message(events: list[Event], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(events)))
    folder = Folder()
    for event in events[:at]:
        folder.feed_all(event.chunks)
    frames = ChunkFrames(7)
    first = frames.replay(unfold(Message("m", "assistant", folder.parts())), (at, 3), [])
    tail = frames.write(events, (at, 1 << 31), [])
    shown = [chunk for _, chunk in read(first + tail)]
    assert parts(shown) == parts([chunk for event in events for chunk in event.chunks])
    ids = [id for id, _ in read(first)]
    assert not any(ids[:-1]) and ids[-1] == (f"{at}.3" if at else "")


@given(chunks(), st.sampled_from([6, 7]))
def test_a_client_receives_only_chunks_of_its_version(said: list[Chunk], version: Version) -> None:
    strange: list[Chunk] = [
        *({**chunk, "ours": 1} for chunk in said),
        {"type": "tool-approval-response", "approvalId": "a", "approved": True},
        {"type": "steering-message", "id": "s", "parts": [{"type": "file", "mediaType": "image/png", "url": "blob:ab"}]},
        {"type": "of-tomorrow"},
        {"type": "finish", "finishReason": "interrupted"},
    ]
    for chunk in strange:
        shown = view(chunk, version, [])
        assert shown is None or problems(shown, version) == []


@given(st.one_of(st.text(min_size=1).map(lambda text: text * 6_000), st.integers().map(lambda number: [number] * 300)))
def test_a_large_output_is_sent_as_an_excerpt_and_stored_in_full(output: Any) -> None:
    cut = excerpt(output)
    if cut is None:
        assert isinstance(output, str) and len(output.encode("utf-8", "replace")) <= BYTES
        return
    assert cut.blob is not None and len(dumps(cut.value)) < BYTES * 4
    assert isinstance(cut.value, dict) and cut.value["size"] == len(cut.blob)
    assert cut.blob == (output.encode("utf-8", "replace") if isinstance(output, str) else dumps(output))


def test_an_output_with_many_rows_is_sent_as_an_excerpt() -> None:
    assert excerpt("\n" * 199) is None
    cut = excerpt("x\n" * 300)
    assert cut is not None and isinstance(cut.value, dict) and cut.value["rows"] == 301
    words = excerpt_text("y" * 20_000)
    assert words is not None and isinstance(words.value, str) and len(words.value) < 9_000 and "/api/blobs/" in words.value


def test_internal_metadata_of_an_output_is_not_sent() -> None:
    noted = {"moot": {"blob": "ab" * 32, "size": 50_000_000, "rows": 9, "tail": "end", "mediaType": "text/plain"}, "mine": {"x": 1}}
    chunk: Chunk = {"type": "tool-output-available", "toolCallId": "c", "output": "head", "providerMetadata": noted}
    shown = view(chunk, 7, [])
    assert shown is not None and shown["providerMetadata"] == {"mine": {"x": 1}}
    assert (
        isinstance(shown["output"], dict) and shown["output"]["url"] == f"/api/blobs/{'ab' * 32}" and shown["output"]["size"] == 50_000_000
    )
    part = {"type": "tool-look", "toolCallId": "c", "state": "output-available", "output": "head", "resultProviderMetadata": noted}
    (kept,) = message_view(Message("m", "assistant", (part,)), 7, [])["parts"]  # type: ignore[misc]
    assert kept["output"] == shown["output"] and kept["resultProviderMetadata"] == {"mine": {"x": 1}}


def test_a_position_is_parsed_strictly() -> None:
    assert position_of("12.3") == (12, 3) and position_of("12") == (12, 1 << 31)
    assert [position_of(text) for text in ("", ".", "1.", "-1.0", "x", "1.2.3", "９.1", "9" * 20)] == [None] * 8
