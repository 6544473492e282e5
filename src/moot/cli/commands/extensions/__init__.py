"""Commands for what extends agents: MCP servers, skills and slash commands."""
