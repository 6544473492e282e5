"""Claude Code: the program is in the wheel of its SDK."""

from __future__ import annotations

from moot.types.agent import KnownAgent

KNOWN = (KnownAgent("claude-code", "claude-code", "Claude Code, as it is", "pip install 'moot[claude]'", package="claude_agent_sdk"),)
