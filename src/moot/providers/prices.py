"""Prices and context sizes from the offline snapshot of `genai-prices`. Slow to import."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal

from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import TieredPrices

from moot.types.model import Price

_NANO_PER_TOKEN = 1000
"""Converts dollars per million tokens, as in the snapshot, to nano-dollars per token."""


@dataclass(frozen=True, slots=True)
class Priced:
    """The snapshot's data for one model."""

    context: int | None
    price: Price | None


def names(vendor: str) -> Sequence[str]:
    """Return the names of a vendor's models that are not deprecated; empty for an unknown vendor."""
    for provider in get_snapshot().providers:
        if provider.id == vendor:
            return [model.id for model in provider.models if not model.deprecated]
    return ()


def priced(vendor: str | None, name: str) -> Priced | None:
    """Return a model's prices and context; None if it is unknown. Aliases and dated names match too. None as vendor means any vendor."""
    try:
        _, model = get_snapshot().find_provider_model(name, None, vendor, None)
    except LookupError:
        return None
    prices = model.get_prices(datetime.now(UTC))
    fields = (prices.input_mtok, prices.output_mtok, prices.cache_read_mtok, prices.cache_write_mtok)
    if prices.input_mtok is None or prices.output_mtok is None:
        return Priced(model.context_window, None)
    starts = sorted({tier.start for field in fields if isinstance(field, TieredPrices) for tier in field.tiers})
    tiers = tuple((start, _prices(fields, start)) for start in starts)
    return Priced(model.context_window, replace(_prices(fields, None), tiers=tiers))


def _prices(fields: Sequence[Decimal | TieredPrices | None], start: int | None) -> Price:
    put, get, read, write = (_at(field, start) for field in fields)
    return Price(put, get, read, write)


def _at(field: Decimal | TieredPrices | None, start: int | None) -> float | None:
    """Return the price of a kind of token in the tier that starts at `start`. None means the base price, below all tiers."""
    if field is None:
        return None
    if not isinstance(field, TieredPrices):
        return float(field * _NANO_PER_TOKEN)
    reached = [tier.price for tier in sorted(field.tiers, key=lambda tier: tier.start) if start is not None and tier.start <= start]
    return float((reached[-1] if reached else field.base) * _NANO_PER_TOKEN)
