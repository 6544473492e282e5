"""Usage and cost of a run, from its journal."""

from __future__ import annotations

from collections.abc import Iterable

from moot.types.event import Event
from moot.types.exchange import Ending
from moot.types.usage import Usage


def totals(journal: Iterable[Event]) -> tuple[Usage, int | None, str]:
    """Return usage and nano-dollars over all attempts, and the last model. The cost is None if any part of it is unknown.

    The usage of an attempt that a crash interrupted is unknown: its tokens are not counted, and the cost is None.
    """
    usage, model = Usage(), ""
    costs: dict[str, int | None] = {}
    for event in journal:
        if event.key is None or not event.key.startswith("llm:") or not isinstance(event.body, dict):
            continue
        if event.phase == "start":
            model = str(event.body.get("model", ""))
            costs.setdefault(event.key, None)
        elif event.phase == "end":
            usage += Ending.from_json(event.body).usage
            charged = event.body.get("charged")
            costs[event.key] = charged if isinstance(charged, int) else None
    known = [cost for cost in costs.values() if cost is not None]
    return usage, sum(known) if known and len(known) == len(costs) else None, model
