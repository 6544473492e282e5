"""Base class of model servers on the user's own machine."""

from __future__ import annotations

from moot.errors import ProviderError
from moot.providers.catalogue import listed
from moot.providers.http import HttpProvider


class OwnMachine(HttpProvider):
    """A server without key and prices. Only the server itself knows its models."""

    async def listening(self, seconds: float = 0.5) -> bool:
        """Return whether the server answers within the given seconds and has a model."""
        try:
            body = await self._get(self.shape.models, seconds=seconds)
            return bool(listed(self.name, self.facts, self.settings, body))
        except ProviderError:
            return False
