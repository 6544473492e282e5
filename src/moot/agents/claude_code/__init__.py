"""The agent service `claude-code`: Claude Code as it is, one process a turn, spoken to over its control protocol.

The program is the one that the package claude-agent-sdk brings. Its kit is not imported: it parses lines before anybody could keep them,
and the protocol is small. Each line is committed to the log before it is acted on, and each line of ours before it is written.

| file | what it holds |
|---|---|
| `service.py` | `ClaudeCode`: a turn from its prompt to its end |
| `command.py` | the program, its words and its environment |
| `dialogue.py` | the control protocol: what it asks and what we say, until it is done; interrupts |
| `permissions.py` | a call that it asks about, as moot's policy and a person see it; the answer |
| `questions.py` | questions to the person, and the replies |
| `prompting.py` | what it is told: text and files |
| `serving.py` | moot's own tools, as an MCP server inside the protocol |
"""

from moot.agents.claude_code.service import ClaudeCode

__all__ = ["ClaudeCode"]
