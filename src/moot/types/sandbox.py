"""The sandbox of a command: the files that the command may access, and the mechanism that confines it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias, get_args

Mechanism: TypeAlias = Literal["bubblewrap", "namespaces", "landlock"]
"""The ways to confine a command, best first."""

MECHANISMS: tuple[Mechanism, ...] = get_args(Mechanism)

Access: TypeAlias = Literal["sandbox", "network", "outside"]
"""The access of a command: the sandbox as configured, the sandbox with network, or no sandbox."""


@dataclass(frozen=True, slots=True)
class Confinement:
    """The limits of one command."""

    mechanism: Mechanism
    directory: Path
    """Working directory; inside one of the writable folders."""
    writable: tuple[Path, ...]
    """Folders that the command may change: those of the conversation and the configured ones."""
    scratch: Path
    """A private folder that holds the command's /tmp and home. It lasts as long as the conversation is cached."""
    hidden: tuple[Path, ...] = ()
    """Folders that stay invisible even inside writable ones, such as moot's home."""
    quarantine: Path | None = None
    """The folder to which new protected files are moved after the command has run; None = they are deleted."""
    network: bool = False
    repositories: tuple[Path, ...] = ()
    """Roots of repositories around writable folders: readable, and writable only where Git itself writes."""

    readable: tuple[Path, ...] = ()
    """Other folders that the command may read, such as those of moot's own program."""

    @property
    def is_complete(self) -> bool:
        """False for a mechanism that leaves gaps. Then commands need approval even in mode `auto`."""
        return self.mechanism != "landlock"

    def read_only(self) -> Confinement:
        """Return the same sandbox without rights to change files of the conversation or to use the network."""
        seen = (*self.readable, *self.repositories, *self.writable)
        return replace(self, writable=(), repositories=(), readable=seen, network=False)
