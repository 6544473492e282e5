"""Definitions of agents: where each one comes from, and the agent files in moot's home folder."""
