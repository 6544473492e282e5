"""The values and interfaces of moot, listed in the order of a prompt's life.

A conversation holds messages made of parts. A prompt becomes a run. The run makes steps, each of which is an exchange with a vendor. The
vendor's bytes (raw) and the chunks translated from them are stored together as an event under one seq. If a package needs something from a
higher layer, the Protocol is here, the implementation is in that layer, and `runtime/` passes it in.

Values are frozen. Foreign JSON (chunks, parts, metadata) stays plain JSON so that unknown fields are preserved.
"""

__all__: list[str] = []
