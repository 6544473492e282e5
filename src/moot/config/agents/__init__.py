"""Agent definitions: built-in agents, Markdown files in moot's home and in projects, and conversion of Claude Code's agent files."""
