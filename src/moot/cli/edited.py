"""Calls whose arguments a person changed before they allowed them: what was said, with what it ran as."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from moot.types.canonical import Json, loads_exact
from moot.types.message import Message
from moot.types.part import Part, is_tool
from moot.types.store import Store

__all__ = ["edited_input", "with_edits"]


async def with_edits(store: Store, messages: Sequence[Message]) -> list[Message]:
    """The messages; in a call that was allowed with other arguments these stand as the `input` of its `approval`, beside the model's."""
    runs = {message.run for message in messages if message.run is not None and any(map(_allowed, message.parts))}
    answers = {one.id: one.answer for run in sorted(runs) for one in await store.records.approvals(run=run, open_only=False)}
    put = {id: loads_exact(answer.arguments) for id, answer in answers.items() if answer is not None and answer.arguments is not None}
    return [replace(message, parts=tuple(_with(message.parts, put))) for message in messages] if put else list(messages)


def edited_input(part: Part) -> Json:
    """What a call ran with instead of the model's arguments; None = with those."""
    approval = part.get("approval")
    return approval.get("input") if isinstance(approval, dict) else None


def _allowed(part: Part) -> bool:
    approval = part.get("approval")
    return is_tool(part) and isinstance(approval, dict) and approval.get("approved") is True


def _with(parts: Iterable[Part], put: dict[str, Json]) -> Iterator[Part]:
    for part in parts:
        approval = part.get("approval")
        if isinstance(approval, dict) and str(approval.get("id")) in put:
            allowed: Json = {**approval, "input": put[str(approval["id"])]}
            yield {**part, "approval": allowed}
        else:
            yield part
