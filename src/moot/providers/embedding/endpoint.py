"""Embeddings from a provider with OpenAI's endpoint for them (reference: OpenAI API, "Create embeddings")."""

from __future__ import annotations

from moot.errors import ProviderError, UsageError
from moot.providers.http import HttpProvider
from moot.types.canonical import JsonObject, dumps, loads_object
from moot.types.context import Choice


async def embed(choice: Choice, fields: JsonObject) -> JsonObject:
    """Send a request for embeddings and return the response. Raise UsageError if the provider has no embeddings, or ProviderError."""
    provider = choice.provider
    if not choice.dialect.name.startswith("openai-") or not isinstance(provider, HttpProvider):
        raise UsageError(f"The provider {provider.name!r} has no endpoint for embeddings.", fix="Use a model of another provider.")
    answer = await provider.ask("/embeddings", dumps({**fields, "model": choice.model.wire_name}))
    try:
        return loads_object(answer)
    except ValueError as error:
        fix = "Check the provider's base_url."
        raise ProviderError("The answer is not valid JSON.", fix=fix, kind="protocol", raw=answer[:1000]) from error
