"""The server that a command uses instead of the database on this machine: its address, an HTTP client, and the engine's interface."""
