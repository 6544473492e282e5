"""What a run took, read from its journal."""

from __future__ import annotations

from collections.abc import Iterable

from moot.types.event import Event
from moot.types.exchange import Ending
from moot.types.usage import Usage

__all__ = ["totals"]


def totals(journal: Iterable[Event]) -> tuple[Usage, int | None, str]:
    """Usage and nano-dollars over all attempts that ended, and the model of the last; the cost is unknown as soon as one part of it is.

    A model call's start stands before its end.
    """
    usage, model = Usage(), ""
    costs: list[int | None] = []
    models: dict[str, str] = {}
    for event in journal:
        if event.key is None or not event.key.startswith("llm:") or not isinstance(event.body, dict):
            continue
        if event.phase == "start":
            models[event.key] = str(event.body.get("model", ""))
        elif event.phase == "end":
            usage += Ending.from_json(event.body).usage
            charged = event.body.get("charged")
            costs.append(charged if isinstance(charged, int) else None)
            model = models.get(event.key, model)
    known = [cost for cost in costs if cost is not None]
    return usage, sum(known) if known and len(known) == len(costs) else None, model
