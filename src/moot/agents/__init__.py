"""Agent services: the code that runs one `agent_type` each.

| path | content |
|---|---|
| `acp/`, `claude_code/`, `codex/` | outside agents, by protocol |
| `outside/` | code shared by outside agents: process, JSON-RPC, turns, prompts |
| `known/` | data about known outside agents: names, commands, installation |
| the modules | moot's own loop: steps, tool calls, requests, limits |
"""

__all__: list[str] = []
