"""Test doubles for model endpoints, over real HTTP, and for agents. They serve our own tests and those of people who test their agents.

| file | contents |
|---|---|
| `scripted.py` | `ScriptedServer`: gives scripted answers in every dialect, and fails in every way an endpoint can |
| `process.py` | `ScriptedProcess`: the same in a separate process, for tests of the command line |
| `replay.py` | `ReplayServer`: sends recorded bytes, split and paused as configured |
| `chaos.py` | `ChaosServer`: sends an answer with faults chosen by a seed |
| `codex_program.py` | a double of the Codex program, run as a script |
| `acp_agent.py` | an ACP agent controlled by a script, run as a program |
| `script.py` | `Reply` and `ToolCall`, the elements of a script |
| `claude_program.py` | a double of the Claude Code program, run as a script |
| `_frames.py` | replies in the wire format of each dialect |
| `_wires.py` | replies in the formats of Responses, Gemini and Ollama |
| `_asked.py` | requests in a common format for all dialects |
| `_serve.py` | the HTTP server behind all endpoints |

Production code never imports this room.
"""

__all__: list[str] = []
