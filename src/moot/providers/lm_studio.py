"""LM Studio on this machine."""

from __future__ import annotations

from moot.providers._own_machine import OwnMachine
from moot.types.facts import Facts


class LMStudio(OwnMachine):
    """The local server of LM Studio, as started with "Start server"."""

    facts = Facts("lm-studio", "http://127.0.0.1:1234/v1", needs_key=False, priority=81, free=True, open_ended=True)
