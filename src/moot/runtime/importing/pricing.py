"""What model calls must have cost, where the source says how many tokens and not how much money."""

from __future__ import annotations

from moot.providers.catalogue import charged, listed_price
from moot.types.canonical import Json, JsonObject
from moot.types.model import Price
from moot.types.usage import Usage

__all__ = ["ESTIMATED", "Prices"]

ESTIMATED = "cost_estimated"
"""In a step: its cost is the list price of its tokens, as of now; nobody was charged by it that we know of."""


class Prices:
    """The prices of the snapshot, each looked up once. Belongs to the thread that reads."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Price | None] = {}

    def estimated(self, metadata: JsonObject) -> JsonObject:
        """The metadata of a message with a cost in each step that has usage and a known model; the same object when there is none."""
        steps = metadata.get("steps")
        if not isinstance(steps, list):
            return metadata
        told = [self._step(step, metadata) for step in steps]
        return metadata if all(one is other for one, other in zip(told, steps, strict=True)) else {**metadata, "steps": told}

    def _step(self, step: Json, metadata: JsonObject) -> Json:
        if not isinstance(step, dict) or step.get("cost") is not None:
            return step
        usage, model = step.get("usage"), step.get("model") or metadata.get("model")
        if not isinstance(usage, dict) or not isinstance(model, str):
            return step
        name, _, provider = (
            model.rpartition("@") if "@" in model else (model, "", str(step.get("provider") or metadata.get("provider") or ""))
        )
        table = self._price(name, provider)
        cost = charged(table, Usage.from_json(usage)) if table is not None else None
        return step if cost is None else {**step, "cost": cost, ESTIMATED: True}

    def _price(self, name: str, provider: str) -> Price | None:
        key = name, provider
        if key not in self._known:
            self._known[key] = listed_price(provider, name)
        return self._known[key]
