"""The agent service `claude-code`: the Claude Code program, one process per turn, over its control protocol.

The program comes with the package claude-agent-sdk. The SDK itself is not imported: it parses lines before they could be recorded, and the
protocol is small. Each received line is committed to the log before it is handled, and each sent line before it is written.
"""

from moot.agents.claude_code.service import ClaudeCode

__all__ = ["ClaudeCode"]
