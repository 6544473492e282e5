"""The routes, one file for each resource.

| file | what it serves |
|---|---|
| `chat.py` | the AI SDK's transport |
| `events.py` | every event, live |
| `health.py` | whether the server lives and can work; what it counts |
| `documentation.py` | the description of all operations |
| `tokens.py` | tokens of people and programs |
| `login.py` | a browser's way in and out |
"""

from moot.server.dialects import ROUTERS as DIALECTS
from moot.server.routes.chat import router as chat
from moot.server.routes.documentation import router as documentation
from moot.server.routes.events import router as events
from moot.server.routes.health import router as health
from moot.server.routes.login import router as login
from moot.server.routes.tokens import router as tokens

__all__ = ["ROUTERS"]

ROUTERS = (
    documentation,
    chat,
    events,
    health,
    login,
    tokens,
    *DIALECTS,
)
"""Every router of the application, in the order of the documentation."""
