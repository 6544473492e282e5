"""Agent definitions: where each one comes from, and the agent files in moot's home folder."""
