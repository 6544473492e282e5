"""Schedule runs, and open the store and the runtime."""

from moot.engine.startup import Engine, open_engine

__all__ = ["Engine", "open_engine"]
