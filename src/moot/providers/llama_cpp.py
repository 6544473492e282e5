"""llama.cpp's server (`llama-server`) on this machine."""

from __future__ import annotations

from moot.providers._own_machine import OwnMachine
from moot.types.facts import Facts


class LlamaCpp(OwnMachine):
    """Uses the default port. The server has a single model."""

    facts = Facts("llama-cpp", "http://127.0.0.1:8080/v1", needs_key=False, priority=82, free=True, open_ended=True)
