"""Outside agents that run without configuration: their names, detection and installation.

Each agent service has one file of plain data (`KNOWN`, a tuple of `KnownAgent`), named in the table `KNOWN_AGENTS` of `plugins/`. Listing
agents imports them, so they import nothing that drives an agent.
"""

__all__: list[str] = []
