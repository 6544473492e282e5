"""Model APIs for other programs: the routes below `/v1`, compatible with clients of OpenAI and Anthropic.

Each call becomes a normal run. The caller's messages are its history, and the answer is streamed while the run produces it. If the
caller disconnects, the run of a plain model is cancelled, as such clients expect; the run of an agent continues.
"""

from moot.server.dialects.chat import router as chat
from moot.server.dialects.embeddings import router as embeddings
from moot.server.dialects.messages import router as messages
from moot.server.dialects.models import router as models
from moot.server.dialects.responses import router as responses

__all__ = ["ROUTERS"]

ROUTERS = (chat, responses, messages, embeddings, models)
"""All routers below `/v1`."""
