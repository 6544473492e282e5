"""Prices and context sizes from the price list of `genai-prices`: the one in the package, or a newer one in moot's home. Slow to import."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import genai_prices.types
from genai_prices.data_snapshot import DataSnapshot, get_snapshot
from genai_prices.types import ModelPrice, Provider, TieredPrices
from genai_prices.update_prices import DEFAULT_UPDATE_URL as UPDATE_URL

from moot.types.model import Price

__all__ = ["LIST", "UPDATE_URL", "Priced", "description", "models_in", "names", "priced"]

log = logging.getLogger("moot.providers")

LIST = "prices.json"
"""Name of the file in moot's home with a newer price list."""

_NANO_PER_TOKEN = 1000
"""Converts dollars per million tokens, as in the snapshot, to nano-dollars per token."""
_NANO_PER_SEARCH = 1_000_000


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


def models_in(data: bytes) -> int:
    """Return the number of models in a price list. Raise ValueError if the list is invalid."""
    return sum(len(provider.models) for provider in _read(data).providers)


def _read(data: bytes) -> DataSnapshot:
    raw = json.loads(data)
    if not isinstance(raw, list) or not raw:
        raise ValueError("expected a list of providers")
    # the library's own update uses this function too
    read: Any = genai_prices.types._providers_from_raw  # pyright: ignore[reportPrivateUsage]
    return DataSnapshot(cast("list[Provider]", read(raw)), from_auto_update=True)


def description(home: Path) -> str:
    """Return where the prices come from and how old they are, for display."""
    try:
        changed = (home / LIST).stat().st_mtime
    except OSError:
        return f"the list of genai-prices {version('genai-prices')}"
    return f"the list of {datetime.fromtimestamp(changed, UTC):%Y-%m-%d}"


def _list(home: Path | None) -> DataSnapshot:
    """Return the price list in moot's home if there is one, otherwise the package's."""
    try:
        changed = (home / LIST).stat().st_mtime_ns if home is not None else 0
    except OSError:
        changed = 0
    return _newer(home / LIST, changed) if home is not None and changed else get_snapshot()


@cache
def _newer(path: Path, changed: int) -> DataSnapshot:
    """Read a list. The result is cached by `changed`, the file's modification time, so that a later version is read again."""
    try:
        return _read(path.read_bytes())
    except (OSError, ValueError) as error:
        log.warning("%s is not used, because it can't be read: %s. Run: moot models prices --update", path, error)
        return get_snapshot()


def priced(vendor: str | None, name: str, at: int = 0, home: Path | None = None) -> Priced | None:
    """Return a model's prices and context; None if it is unknown. Aliases and dated names match too. A `vendor` of None means any vendor.

    `at` is the time in ms since the epoch for which the prices are wanted; 0 = now. `home` is moot's home, which may have a newer list.
    """
    try:
        _, model = _list(home).find_provider_model(name, None, vendor, None)
    except LookupError:
        return None
    when = datetime.fromtimestamp(at / 1000, UTC) if at else datetime.now(UTC)
    price = _price_of(model.get_prices(when))
    if price is None:
        return Priced(model.context_window, None)
    kinds = [(key, value) for variant in model.price_variants or () for key, value in variant.when.items() if len(variant.when) == 1]
    variants = [(str(value), _price_of(model.get_prices(when, {key: value}))) for key, value in kinds if key in _SERVICES]
    others = tuple((service, found) for service, found in variants if found is not None and found != price)
    return Priced(model.context_window, replace(price, variants=others))


_SERVICES = frozenset({"processing", "service_tier", "speed"})
"""Conditions in the price list that identify a class of service."""
_FIELDS = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok", "cache_write_1h_mtok")


def _price_of(prices: ModelPrice) -> Price | None:
    """Return the prices with all tiers, or None if input or output has no price per token."""
    fields: list[Decimal | TieredPrices | None] = [getattr(prices, name, None) for name in _FIELDS]
    if fields[0] is None or fields[1] is None:
        return None
    per_thousand: Decimal | TieredPrices | None = getattr(prices, "web_searches_kcount", None)
    search = float(per_thousand * _NANO_PER_SEARCH) if isinstance(per_thousand, Decimal) else None
    starts = sorted({tier.start for field in fields if isinstance(field, TieredPrices) for tier in field.tiers})
    tiers = tuple((start, _at_size(fields, start)) for start in starts)
    return replace(_at_size(fields, None), web_search=search, tiers=tiers)


def _at_size(fields: Sequence[Decimal | TieredPrices | None], start: int | None) -> Price:
    put, get, read, write, write_1h = (_at(field, start) for field in fields)
    return Price(put, get, read, write, write_1h)


def _at(field: Decimal | TieredPrices | None, start: int | None) -> float | None:
    """Return the price of a kind of token in the tier that starts at `start`. None means the base price, below all tiers."""
    if field is None:
        return None
    if not isinstance(field, TieredPrices):
        return float(field * _NANO_PER_TOKEN)
    reached = [tier.price for tier in sorted(field.tiers, key=lambda tier: tier.start) if start is not None and tier.start <= start]
    return float((reached[-1] if reached else field.base) * _NANO_PER_TOKEN)
