"""Definitions of agents: their sources, and the files of the home."""
