"""Estimated costs of model calls whose source contains tokens but no cost."""

from __future__ import annotations

from moot.providers.catalogue import charged, listed_price
from moot.types.canonical import Json, JsonObject
from moot.types.model import Price
from moot.types.usage import Usage

__all__ = ["ESTIMATED", "Prices"]

ESTIMATED = "cost_estimated"
"""Field of a step whose cost is the current list price of its tokens rather than a known charge."""


class Prices:
    """The price list, with each model looked up once. Not thread-safe."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Price | None] = {}

    def estimated(self, metadata: JsonObject) -> JsonObject:
        """Return the metadata with an estimated cost in each step with usage and a known model, or the same object if there is none."""
        steps = metadata.get("steps")
        if not isinstance(steps, list):
            return metadata
        priced = [self._step(step, metadata) for step in steps]
        return metadata if all(one is other for one, other in zip(priced, steps, strict=True)) else {**metadata, "steps": priced}

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
