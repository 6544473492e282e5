"""Moot as a model for other programs: the routes below `/v1`, in the dialects that their clients speak.

A call is a run like any other. What the caller sent becomes its history, the answer is told while the run makes it, and when the caller
hangs up a plain model's run is stopped, for hanging up is this world's word for it; an agent's run goes on.

| file | what it does |
|---|---|
| `calls.py` | `place`: a caller's request as a run, in the conversation where it belongs |
| `histories.py` | what the caller sent, stored once however often it is sent again |
| `following.py` | a run's events as they come, and how it ended |
| `answering.py` | `Answering`: the response, streamed or whole |
| `routing.py` | errors in the words of each dialect; bodies as they are read |
| `chat.py`, `responses.py`, `messages.py`, `models.py` | the routes |
"""

from moot.server.dialects.chat import router as chat
from moot.server.dialects.messages import router as messages
from moot.server.dialects.models import router as models
from moot.server.dialects.responses import router as responses

__all__ = ["ROUTERS"]

ROUTERS = (chat, responses, messages, models)
"""Every router below `/v1`."""
