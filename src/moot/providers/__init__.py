"""The model endpoints that moot calls, with their URLs, authentication and quirks.

A provider sends a request written by a dialect and returns the vendor's raw bytes, frame by frame. Translators (`convert/`) interpret
them. `Providers` in `pool.py` is the entry point: it knows which providers are configured, finds models by name and computes costs.
"""

__all__: list[str] = []
