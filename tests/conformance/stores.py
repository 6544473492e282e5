"""All stores, and the data that the suites put into them. A new store is one more line in `STORES`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from moot.config.settings import Settings
from moot.store import open_store
from moot.types.chunk import finish
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.ids import new_id
from moot.types.message import Message, text_part
from moot.types.run import Run
from moot.types.store import Accepted, End, Store, Submission

STORES: dict[str, Callable[[Settings], Awaitable[Store]]] = {"sqlite": open_store}


def prompt(conversation: Conversation | None = None, text: str = "hello", **fields: Any) -> Submission:
    into = conversation or Conversation(new_id(), directory="/work")
    return replace(Submission(Run(new_id(), into.id, new_id()), into, Message(new_id(), "user", (text_part(text),)), owner="me"), **fields)


def frame(accepted: Accepted, *deltas: str, exchange: str = "0.0") -> Event:
    chunks = tuple({"type": "text-delta", "id": "0", "delta": delta} for delta in deltas)
    return Event("raw", chunks, b"data: x\n\n", accepted.run.id, f"{accepted.run.id}:{exchange}")  # type: ignore[arg-type]


async def end(store: Store, accepted: Accepted, **fields: Any) -> None:
    assert accepted.fence is not None
    await store.log.append(
        accepted.fence.conversation,
        [Event("chunks", (finish("stop"),), run=accepted.run.id)],
        fence=accepted.fence,
        changes=[End(fields.pop("status", "finished"), **fields)],
        sync=True,
    )
