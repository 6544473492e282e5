"""The agent service `codex`: Codex as it is, driven by `codex app-server`.

| file | what it holds |
|---|---|
| `asking.py` | what Codex asks, as calls to decide; what was decided, in its words |
| `service.py` | `Codex`: the agent service, and what its options say |
| `talking.py` | one turn: the handshake, its session, the turn, its end |
"""

__all__: list[str] = []
