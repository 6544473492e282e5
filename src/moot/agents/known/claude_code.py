"""Claude Code: the program lies in the wheel of its own kit."""

from __future__ import annotations

from moot.types.agent import KnownAgent

KNOWN = (KnownAgent("claude-code", "claude-code", "Claude Code, as it is", "pip install 'moot[claude]'", package="claude_agent_sdk"),)
