"""Scheduling of runs, and assembly of a working moot."""

from moot.engine.startup import Engine, open_engine

__all__ = ["Engine", "open_engine"]
