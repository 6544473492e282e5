"""What is known of models: context, modalities, prices, and each provider's own name for one."""

from __future__ import annotations

from collections.abc import Sequence

from moot.config.settings import ProviderSettings
from moot.errors import ProviderError
from moot.providers._facts import Facts
from moot.types.canonical import JsonObject, loads
from moot.types.model import Model, ModelId


def listed(name: str, facts: Facts, settings: ProviderSettings, body: bytes) -> Sequence[Model]:
    """The models of an endpoint's own list (`{"data": [{"id"}]}`). Raises ProviderError when it is no such list."""
    try:
        value = loads(body)
    except ValueError as error:
        raise _no_list(name, body) from error
    rows = value.get("data", value.get("models")) if isinstance(value, dict) else value
    if not isinstance(rows, list):
        raise _no_list(name, body)
    names = [wire for row in rows if isinstance(row, dict) and isinstance(wire := row.get("id", row.get("name")), str)]
    return [describe(name, facts, settings, wire) for wire in names]


def describe(provider: str, facts: Facts, settings: ProviderSettings, name: str) -> Model:
    """All that is known of one model at one provider; a model nobody knows has its name and no more."""
    overlay: JsonObject = settings.models.get(name, {})
    wire_name = overlay.get("wire_name")
    return Model(ModelId(name, provider), wire_name if isinstance(wire_name, str) else name)


def _no_list(name: str, body: bytes) -> ProviderError:
    return ProviderError(f"{name} answered no list of models", fix=f"check providers.{name}.base_url", kind="protocol", raw=body[:65536])
