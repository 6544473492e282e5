"""Agent services: the code that runs one `agent_type` each.

| file | what it holds |
|---|---|
| `acp/` | any program that speaks the Agent Client Protocol |
| `claude_code/` | Claude Code, a program of its own |
| `codex/` | Codex, by its app-server |
| `outside/` | what agents that are programs of their own share |
| `loop.py` | moot's own loop: steps until the answer is whole or a limit is met |
| `step.py` | one step's model call: attempts, backing off, the fallback chain |
| `exchange.py` | one exchange: request out, raw in, chunks beside it, committed per socket read |
| `bounds.py` | the loop's own limits: steps, repetition, tokens, money |
| `calls.py` | a step's tool calls: policy, journal, exactly one output each |
| `position.py` | where a run stands, read from its journal, so that a resumed leg goes on there |
| `pictures.py` | files on their way to a model: blobs put in, pictures made to fit |
| `known/` | outside agents by name: what they are called, what finds and installs them |
| `request.py` | what a step sends: history, trimmed, with blobs resolved; and its manifest |
"""

__all__: list[str] = []
