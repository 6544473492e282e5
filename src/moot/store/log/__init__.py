"""The event log: appending events, and reading them from sealed segments and rows."""
