"""Reading and changing moot's own configuration from tools."""

from __future__ import annotations

from typing import Protocol

from moot.types.canonical import Json, JsonObject


class Administration(Protocol):
    """The configuration, for runs of the local user. Changes never give more rights than the run has.

    All methods raise Refused for runs of other users.
    """

    async def read(self, key: str) -> Json:
        """Return the value at a dotted key, including defaults, with secrets masked. An empty key returns the whole configuration.

        Raise NotFound if there is no such key.
        """
        ...

    async def change(self, key: str, value: Json) -> Json:
        """Set a key in the user's file and return the previous value.

        Raise Refused if the key may not be changed, UsageError for an invalid value.
        """
        ...

    async def create_agent(self, name: str, values: JsonObject) -> str:
        """Write a new agent to moot's home and return the path of its file.

        Raise Refused if the agent would get a right that the run lacks, UsageError for an invalid definition.
        """
        ...
