"""The routes, one file for each resource.

| file | what it serves |
|---|---|
| `chat.py` | the AI SDK's transport |
| `events.py` | every event, live |
| `conversations.py`, `messages.py`, `queue.py` | conversations; what is said in them, their tree and raw events; what waits for its turn |
| `imports.py` | conversations of other programs, brought in |
| `replay.py` | an answer's stream again, as it came; two conversations side by side |
| `runs.py`, `approvals.py` | runs of all processes; what waits for a person |
| `projects.py`, `blobs.py` | folders of conversations with their files; bytes by their hash |
| `search.py`, `stats.py` | finding words; counting what runs took |
| `store.py` | what takes how much in the store |
| `health.py` | whether the server lives and can work; what it counts |
| `documentation.py` | the description of all operations |
| `export.py` | conversations as files |
| `shares.py` | pages for whoever has their link |
| `tokens.py` | tokens of people and programs |
| `login.py` | a browser's way in and out |
| `deciding.py` | agents, models, providers, tools, and what packages bring |
| `commands.py` | slash commands |
| `permissions.py` | the mode, the rules, what was allowed |
| `config.py` | the configuration and changes to it |
"""

from moot.server.dialects import ROUTERS as DIALECTS
from moot.server.routes.approvals import router as approvals
from moot.server.routes.blobs import router as blobs
from moot.server.routes.chat import router as chat
from moot.server.routes.commands import router as commands
from moot.server.routes.config import router as config
from moot.server.routes.conversations import router as conversations
from moot.server.routes.deciding import router as deciding
from moot.server.routes.documentation import router as documentation
from moot.server.routes.events import router as events
from moot.server.routes.export import router as export
from moot.server.routes.health import router as health
from moot.server.routes.imports import router as imports
from moot.server.routes.login import router as login
from moot.server.routes.messages import router as messages
from moot.server.routes.permissions import router as permissions
from moot.server.routes.projects import router as projects
from moot.server.routes.queue import router as queue
from moot.server.routes.replay import router as replay
from moot.server.routes.runs import router as runs
from moot.server.routes.search import router as search
from moot.server.routes.shares import router as shares
from moot.server.routes.stats import router as stats
from moot.server.routes.store import router as store
from moot.server.routes.tokens import router as tokens

__all__ = ["ROUTERS"]

ROUTERS = (
    documentation,
    chat,
    events,
    health,
    login,
    tokens,
    conversations,
    messages,
    export,
    shares,
    queue,
    replay,
    runs,
    approvals,
    search,
    stats,
    store,
    blobs,
    imports,
    projects,
    deciding,
    commands,
    permissions,
    config,
    *DIALECTS,
)
"""Every router of the application, in the order of the documentation."""
