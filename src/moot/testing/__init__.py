"""Doubles that stand in for a model's endpoint over real HTTP, or for an agent, for our tests and for people who test agents of their own.

| file | what |
|---|---|
| `scripted.py` | `ScriptedServer`: says what a script tells it to, in every dialect, and fails in every way an endpoint can |
| `process.py` | `ScriptedProcess`: the same as a process of its own, for tests of the command line |
| `replay.py` | `ReplayServer`: sends recorded bytes again, split and paused at will |
| `chaos.py` | `ChaosServer`: sends a recorded answer with faults chosen by a seed |
| `codex_program.py` | a double of Codex's program, run as a script |
| `acp_agent.py` | an agent that speaks ACP and does what a script says: a program of its own |
| `script.py` | `Reply` and `ToolCall`, the words of a script |
| `claude_program.py` | a script that speaks as Claude Code does, and misbehaves in every way |
| `_frames.py` | a reply in the wire shape of each dialect |
| `_wires.py` | of Responses, Gemini and Ollama |
| `_asked.py` | a request in one shape whatever the dialect |
| `_serve.py` | the small HTTP server under all of them |

Product code never imports this room.
"""

__all__: list[str] = []
