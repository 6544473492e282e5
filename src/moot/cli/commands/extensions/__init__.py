"""Commands for agent extensions: MCP servers, skills and slash commands."""
