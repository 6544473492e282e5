"""The engine that a command uses: that of this machine, or that of a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from moot.engine import Engine

if TYPE_CHECKING:
    from moot.cli.remote.engine import RemoteEngine

AnyEngine: TypeAlias = "Engine | RemoteEngine"
"""Both have `store`, `runs` and `tail`. A command that needs more checks which one it has."""
