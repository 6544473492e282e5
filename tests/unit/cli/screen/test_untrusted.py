from __future__ import annotations

import re
import unicodedata

import pytest

from moot.cli.terminal.look import Look
from moot.cli.transcript.run import Transcript
from moot.types.canonical import Json
from moot.types.chunk import Chunk
from moot.types.event import Event
from moot.types.message import Message, Part

OURS = re.compile(r"\x1b\[[0-9;]*m")
EVIL = (
    "a\x1b[2J\x1b]0;t\x07\x1b]7;f\x07\x1b]8;;http://x\x07\x1b]9;n\x07\x1b]52;c;eA==\x1b\\\x1b]1337;F\x07\x1bPq\x1b\\\x1b_a\x1b\\\x1b^p\x1b\\"
    "\x9b2J\x9d0;t\x9c\x90q\x9c\x1bcb\rc\x08\x7f\u202ed\u2066e\x1b[31mf\x00"
)
MARKUP = "[bold red]x[/] [link=http://y]z[/link] <b>&amp;</b> {0} {x!r} %s %(a)s ${HOME} {{ 7*7 }} {% raw %}"
TOOLS = ("shell", "read_file", "write_file", "edit_file", "ask_user", "todo", "fetch_url", "unknown_tool")


def arguments_of(evil: str) -> dict[str, dict[str, Json]]:
    return {
        "shell": {"command": evil},
        "read_file": {"path": evil},
        "write_file": {"path": evil, "content": evil},
        "edit_file": {"path": evil, "edits": [{"old_text": evil, "new_text": evil + "x"}]},
        "ask_user": {"questions": [{"header": evil, "text": evil}]},
        "todo": {"todos": [{"content": evil, "status": "pending"}]},
        "fetch_url": {"url": evil},
        "unknown_tool": {evil: evil},
    }


def chunks_with(evil: str) -> list[Chunk]:
    inputs = arguments_of(evil)
    chunks: list[Chunk] = [
        {"type": "start", "messageMetadata": {"note": evil}},
        {
            "type": "text-delta",
            "id": "1",
            "delta": f"# {evil}\n\n| {evil} | b |\n|---|---|\n| {evil} | c |\n\n```{evil}\n{evil}\n```\n- {evil}\n",
        },
        {"type": "text-end", "id": "1"},
        {"type": "reasoning-delta", "id": "2", "delta": evil},
        {"type": "reasoning-end", "id": "2"},
        {"type": "file", "url": "x", "mediaType": evil, "filename": evil},
        {"type": "source-url", "sourceId": "1", "url": evil, "title": evil},
        {"type": "data-steering", "data": {"parts": [{"type": "text", "text": evil}]}},
        {"type": "tool-input-available", "toolCallId": "e", "toolName": evil, "input": {"a": 1}},
        {"type": "tool-input-available", "toolCallId": "f", "toolName": "Bash", "input": {"command": evil}},
        {"type": "tool-output-available", "toolCallId": "f", "output": evil},
        {"type": "tool-output-available", "toolCallId": "e", "output": {"type": "content", "value": [{"type": "file", "filename": evil}]}},
    ]
    for name in TOOLS:
        for outcome in ("available", "error"):
            id = name + outcome
            chunks.append({"type": "tool-input-available", "toolCallId": id, "toolName": name, "input": inputs[name]})
            chunks.append({"type": "tool-output-available", "toolCallId": id, "output": evil, "preliminary": True})
            field = "output" if outcome == "available" else "errorText"
            chunks.append({"type": f"tool-output-{outcome}", "toolCallId": id, field: f"--- a\n+++ b\n-{evil}\n+{evil}x"})
    return [*chunks, {"type": "error", "errorText": evil}, {"type": "abort", "reason": evil}]


def everything(look: Look, evil: str) -> str:
    transcript = Transcript(look)
    shown = ""
    for number, chunk in enumerate(chunks_with(evil)):
        transcript.feed(Event("chunks", (chunk,), at=1_000_000 * number + 1))
        shown += "\n".join(transcript.live(20, now=number + 0.5)) + "\n" + transcript.take()
    transcript.end()
    parts: list[Part] = [{"type": "text", "text": evil}, {"type": "reasoning", "text": evil}]
    for name, arguments in arguments_of(evil).items():
        parts.append({"type": f"tool-{name}", "toolCallId": evil, "state": "output-error", "input": arguments, "errorText": evil})
    transcript.message(Message("m", "assistant", tuple(parts), {"note": evil}, status="failed"))
    transcript.message(Message("u", "user", ({"type": "text", "text": evil}, {"type": "file", "filename": evil, "mediaType": evil})))
    return shown + transcript.take() + "".join(folded.title + folded.draw(look) for folded in transcript.folded)


@pytest.mark.parametrize("look", [Look(80, colour=True), Look(20, colour=False), Look(30, colour=True, unicode=False, motion=False)])
def test_untrusted_text_never_contains_control_sequences(look: Look) -> None:
    shown = everything(look, EVIL)
    left = OURS.sub("", shown) if look.colour else shown
    acting = {character for character in left if unicodedata.category(character) in ("Cc", "Cs") and character != "\n"}
    assert acting | {c for c in left if unicodedata.bidirectional(c) in ("RLO", "LRO", "LRI", "RLI", "FSI")} == set()
    assert "2J" not in left.replace("\\u001b[2J", "")  # an unknown tool's arguments are JSON, which escapes it
    assert look.unicode or left.isascii()


def test_markup_and_format_strings_are_shown_literally() -> None:
    shown = everything(Look(2000, colour=False), MARKUP)
    literal = MARKUP.replace("&amp;", "&")
    lines = [line for line in shown.split("\n") if "bold" in line]
    assert lines
    assert all(MARKUP in line or literal in line or MARKUP[:10] in line for line in lines)
    assert "49" not in shown


def test_the_characters_of_a_hostile_name_are_shown() -> None:
    transcript = Transcript(Look(80, colour=False))
    transcript.feed(
        Event("chunks", ({"type": "tool-input-available", "toolCallId": "1", "toolName": "read_file", "input": {"path": "a\x1b[2Jb"}},))
    )
    transcript.end()
    assert "ab" in transcript.take()
