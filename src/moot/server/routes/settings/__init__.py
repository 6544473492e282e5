"""Resources of the configuration: values, agents, MCP servers and access tokens."""
