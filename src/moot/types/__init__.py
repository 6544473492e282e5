"""The values and seams of moot, listed in the order of a prompt's life.

A conversation holds messages made of parts. A prompt becomes a run. The run makes steps, each of which is an exchange with a vendor. The
vendor's bytes (raw) and the chunks translated from them are stored together as an event under one seq. What a room needs from a room
above it is a Protocol here, implemented there and passed in by `runtime/`.

Values are frozen. Foreign JSON (chunks, parts, metadata) stays plain JSON so that unknown fields are preserved.
"""

__all__: list[str] = []
