"""Providers as JSON, the same for all faces."""

from __future__ import annotations

from moot.config.settings import ProviderSettings
from moot.errors import MootError
from moot.providers.local import check_machine
from moot.providers.pool import Providers
from moot.providers.weights.manifest import DEFAULT, find
from moot.types.canonical import JsonObject

__all__ = ["providers_json"]


async def providers_json(providers: Providers) -> list[JsonObject]:
    """Return every provider with its state, in the order in which a bare model name is looked up."""
    silent = await providers.silent()
    return [_facts(name, providers, silent) for name in providers.names()]


def _facts(name: str, providers: Providers, silent: set[str]) -> JsonObject:
    facts = providers.facts(name)
    entry = providers.settings.providers.get(name) or ProviderSettings(name)
    lacking = "needs a key" if entry.enabled else "disabled"
    missing = _missing(name)
    ready = "not running" if name in silent else "can't run here" if missing else "available"
    return {
        "name": name,
        "state": ready if name in providers.available() else lacking,
        "missing": missing,
        "dialect": entry.dialect or facts.dialect,
        "base_url": entry.base_url or facts.base_url,
        "needs_key": facts.needs_key,
        "priority": entry.priority if entry.priority is not None else facts.priority,
    }


def _missing(name: str) -> str | None:
    """Return what this machine lacks to run the embedded model and how to fix it. None for other providers."""
    if name != "local":
        return None
    try:
        check_machine(find(DEFAULT).size)
    except MootError as error:
        return error.advice()
    return None
