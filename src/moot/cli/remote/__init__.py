"""The server that a command uses instead of the database on this machine: its address, an HTTP client, and the engine's interface."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:  # every command imports this package
    from moot.cli.remote.engine import RemoteEngine
    from moot.engine import Engine

AnyEngine: TypeAlias = "Engine | RemoteEngine"
"""The engine of this machine or of a server. Both have `store`, `runs` and `tail`. A command that needs more checks which one it has."""
