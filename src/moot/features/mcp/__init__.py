"""MCP: the definitions of servers in the configuration, and moot as a server."""
