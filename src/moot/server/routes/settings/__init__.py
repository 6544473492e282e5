"""Routes for settings: configuration values, agents, MCP servers and access tokens."""
