"""The client for MCP servers: connections, the tools that a person has accepted, and those tools in moot's own loop."""
