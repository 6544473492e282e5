"""The chunks that close what a broken stream left open, so that every stored message is complete."""

from __future__ import annotations

from collections.abc import Sequence

from moot.types.chunk import Chunk, tool_error, tool_input_error
from moot.types.part import Part, is_settled, is_tool, tool_name

CUT = "the stream ended before the call was whole"


def close_open(parts: Sequence[Part]) -> tuple[Chunk, ...]:
    """End open texts and reasoning; an incomplete tool input becomes a tool-input-error."""
    return tuple(chunk for part in parts if part.get("state") in ("streaming", "input-streaming") for chunk in _close(part))


def settle_calls(parts: Sequence[Part], why: str) -> tuple[Chunk, ...]:
    """Return an error output for every complete call without one, so that no call stays without an output."""
    return tuple(
        tool_error(str(part.get("toolCallId")), _so_far(part, why))
        for part in parts
        if is_tool(part) and not is_settled(part) and part.get("state") != "input-streaming"
    )


def _so_far(part: Part, why: str) -> str:
    shown = part.get("output") if part.get("state") == "output-available" else None
    return f"{why}; its output so far:\n{shown}" if isinstance(shown, str) and shown else why


def _close(part: Part) -> tuple[Chunk, ...]:
    if is_tool(part):
        value = part.get("rawInput", part.get("input"))
        return (tool_input_error(str(part.get("toolCallId")), tool_name(part), value, CUT),)
    return ({"type": f"{part.get('type')}-end", "id": str(part.get("id", ""))},)
