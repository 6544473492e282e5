"""Tool calls whose arguments the user changed when approving them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from moot.types.canonical import Json, loads_exact
from moot.types.message import Message
from moot.types.part import Part, is_tool
from moot.types.store import Store

__all__ = ["edited_input", "with_edits"]


async def with_edits(store: Store, messages: Sequence[Message]) -> list[Message]:
    """Return the messages with edited arguments added to approved calls, as `input` of their `approval`."""
    runs = {message.run for message in messages if message.run is not None and any(map(_approved, message.parts))}
    answers = {item.id: item.answer for run in sorted(runs) for item in await store.records.approvals(run=run, open_only=False)}
    edits = {id: loads_exact(answer.arguments) for id, answer in answers.items() if answer is not None and answer.arguments is not None}
    return [replace(message, parts=tuple(_with(message.parts, edits))) for message in messages] if edits else list(messages)


def edited_input(part: Part) -> Json:
    """Return the arguments that the call ran with instead of the model's, or None if they were not changed."""
    approval = part.get("approval")
    return approval.get("input") if isinstance(approval, dict) else None


def _approved(part: Part) -> bool:
    approval = part.get("approval")
    return is_tool(part) and isinstance(approval, dict) and approval.get("approved") is True


def _with(parts: Iterable[Part], edits: dict[str, Json]) -> Iterator[Part]:
    for part in parts:
        approval = part.get("approval")
        if isinstance(approval, dict) and str(approval.get("id")) in edits:
            edited: Json = {**approval, "input": edits[str(approval["id"])]}
            yield {**part, "approval": edited}
        else:
            yield part
