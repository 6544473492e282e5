"""What the model servers on a person's own machine have in common."""

from __future__ import annotations

from moot.errors import ProviderError
from moot.providers.catalogue import listed
from moot.providers.http import HttpProvider


class OwnMachine(HttpProvider):
    """No key, no price, and only the server itself knows what it has."""

    async def listening(self, seconds: float = 0.5) -> bool:
        """Whether it is there, has a model and answers within so many seconds."""
        try:
            body = await self._get(self.shape.models, seconds=seconds)
            return bool(listed(self.name, self.facts, self.settings, body))
        except ProviderError:
            return False
