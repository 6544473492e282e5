"""Agent definitions: the source of each definition, and the agent files in moot's home folder."""
