"""Conversation formats: one module or folder for each format, which implements `moot.types.format.Format`.

Formats are pure and synchronous: they never change a source and use neither the clock nor the network. Call them from a worker thread.
"""

__all__: list[str] = []
