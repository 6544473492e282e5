"""Moot as a model for other programs: the routes below `/v1`, in the dialects that their clients use.

A call is a run like any other. The caller's messages become its history, and the answer is streamed while the run produces it. If the
caller disconnects, the run of a plain model is cancelled, as clients of these dialects expect; the run of an agent continues.
"""

from moot.server.dialects.chat import router as chat
from moot.server.dialects.messages import router as messages
from moot.server.dialects.models import router as models
from moot.server.dialects.responses import router as responses

__all__ = ["ROUTERS"]

ROUTERS = (chat, responses, messages, models)
"""All routers below `/v1`."""
