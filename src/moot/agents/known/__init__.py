"""Outside agents that can be run by name alone: what they are called, what finds them, what installs them.

One file of plain facts for each agent service (`KNOWN`, a tuple of `KnownAgent`), named in the table `KNOWN_AGENTS` of `plugins/`.
They are read to list agents, so they import nothing of what drives them.

| file | what it holds |
|---|---|
| `acp.py` | the agents of `acp:NAME`, with what they are started with and where they part from each other |
| `claude_code.py`, `codex.py` | the agents of those services |
| `finding.py` | configured and known agents by name, and whether each can be run here |
"""

__all__: list[str] = []
