"""Whether the server works."""

from __future__ import annotations

from typing import Literal

from moot.server.wire.base import Out


class HealthOut(Out):
    """A server that works."""

    status: Literal["ok"]
