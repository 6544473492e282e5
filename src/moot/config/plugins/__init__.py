"""Plugins that a person installed: folders with commands, agents, skills, hooks and MCP servers, used as long as they don't change."""
