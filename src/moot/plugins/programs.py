"""Other programs that a person may have beside moot."""

AGENT_PROGRAMS = ("claude", "codex", "gemini", "opencode")
"""Agents as they are called on the PATH; named to the person and nothing more."""
