"""Stored messages and single tool calls on a real terminal."""

from __future__ import annotations

from collections.abc import Sequence

from moot.cli.output import Output
from moot.cli.screen.calls import call_of
from moot.cli.screen.terminal import look_of
from moot.cli.screen.transcript import Transcript
from moot.types.message import Message
from moot.types.part import Part

__all__ = ["draw_call", "draw_messages"]


def draw_messages(messages: Sequence[Message], output: Output, calls_before: int) -> None:
    """Print the messages. `calls_before` is the number of tool calls before them in the conversation."""
    where = messages[0].conversation[:13] if messages else ""
    reveal = f"moot chat show {where} --call "
    transcript = Transcript(look_of(output), reveal=lambda number: f"{reveal}{number}" if number else "", calls_before=calls_before)
    for message in messages:
        transcript.message(message)
        output.data(transcript.take())
    output.data("\n")


def draw_call(part: Part, number: int, output: Output) -> None:
    """Print a tool call in full."""
    output.data(call_of(part, number).whole(look_of(output)))
