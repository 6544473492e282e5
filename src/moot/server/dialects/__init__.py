"""Moot as a model for other programs: the routes below `/v1`, in the dialects that their clients speak.

A call is a run like any other. What the caller sent becomes its history, the answer is told while the run makes it, and when the caller
hangs up a plain model's run is stopped, for hanging up is this world's word for it; an agent's run goes on.
"""

from moot.server.dialects.chat import router as chat
from moot.server.dialects.messages import router as messages
from moot.server.dialects.models import router as models
from moot.server.dialects.responses import router as responses

__all__ = ["ROUTERS"]

ROUTERS = (chat, responses, messages, models)
"""Every router below `/v1`."""
