"""Streams of real agents, read by the format."""

from __future__ import annotations

from pathlib import Path

import pytest

from moot.errors import UsageError
from moot.formats.recording.format import RecordingFormat
from moot.types.message import is_tool, text_of

RECORDED = Path(__file__).parents[2] / "recorded" / "agents"
FILES = sorted(str(path.relative_to(RECORDED)) for path in RECORDED.glob("*/*.jsonl"))
WHOSE = {"acp": "acp:", "claude-code": "claude-code", "codex": "codex", "gemini-cli": "acp:gemini", "opencode": "acp:opencode"}


@pytest.mark.parametrize("name", FILES)
def test_every_recorded_stream_is_recognized_and_read_whole(name: str) -> None:
    path = RECORDED / name
    form = RecordingFormat()
    assert form.sniff(path, path.read_bytes()[: 64 << 10])
    (read,) = form.recordings(path)
    assert read.conversation.agent_type.startswith(WHOSE[name.partition("/")[0]])
    assert not read.fidelity.lost and not read.notes
    raws = [event.raw for event in read.events if event.kind == "raw"]
    assert raws == [line for line in path.read_bytes().splitlines(keepends=True) if line.strip()]
    assert [event.seq for event in read.events] == list(range(1, len(read.events) + 1))
    assert [event.at for event in read.events] == sorted(event.at for event in read.events)
    answers = [message for message in read.messages if message.role == "assistant"]
    assert len(answers) == len(read.runs) == len(read.exchanges) >= 1
    assert all(part.get("state") not in ("streaming", "input-streaming") for message in answers for part in message.parts)
    assert list(form.recordings(path)) == [read]


def test_prompts_of_a_pipe_become_messages_and_each_has_its_run() -> None:
    (read,) = RecordingFormat().recordings(RECORDED / "acp" / "opencode-acp-1.18.33-A.wire.jsonl")
    assert [message.role for message in read.messages] == ["user", "assistant", "user", "assistant"]
    assert text_of(read.messages[0].parts) == "List the files here and count them."


LOADS = [name for name in FILES if name.endswith("-load.wire.jsonl")]
PAST = ["List the files here and count them.", "Make hello.py and run it", "What does notes.txt say?"]


@pytest.mark.parametrize("name", LOADS)
def test_the_past_that_an_agent_repeats_when_it_loads_a_session_becomes_messages(name: str) -> None:
    (read,) = RecordingFormat().recordings(RECORDED / name)
    asked = [text_of(message.parts) for message in read.messages if message.role == "user"]
    expected = ["one", "two", "three"] if name.startswith("acp/minimal") else PAST
    found = [text for text in asked if not text.startswith("[Function Response")]  # gemini repeats outputs as prompts
    assert [text[-len(wanted) :] for text, wanted in zip(found, expected, strict=True)] == expected
    answers = [message for message in read.messages if message.role == "assistant"]
    assert len(answers) == len(asked) and all(message.parts for message in answers)
    assert {message.status for message in answers} == {"finished"}
    calls = [part for message in answers for part in message.parts if is_tool(part)]
    assert "minimal" in name or len(calls) >= 3


def test_an_unsuitable_agent_type_is_rejected_with_the_suitable_ones() -> None:
    with pytest.raises(UsageError, match=r"No converter supports .* 'telepathy'. Known agent types: "):
        list(RecordingFormat().recordings(RECORDED / "codex" / "exec-json-list.jsonl", "telepathy"))
