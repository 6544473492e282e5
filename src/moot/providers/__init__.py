"""The model endpoints that moot calls, with their URLs, authentication and quirks.

A provider sends a request that a dialect has built, and returns the vendor's raw bytes, frame by frame. Translators (`convert/`) interpret
them. `Providers` in `pool.py` is the entry point: it holds the configured providers and finds models by name.
"""

__all__: list[str] = []
