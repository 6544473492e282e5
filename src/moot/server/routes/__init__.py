"""Routers of the API, one module per resource."""

from moot.server.dialects import ROUTERS as DIALECTS
from moot.server.routes.approvals import router as approvals
from moot.server.routes.blobs import router as blobs
from moot.server.routes.blobs import transcriptions_router as transcriptions
from moot.server.routes.catalogues import router as deciding
from moot.server.routes.commands import router as commands
from moot.server.routes.conversations.chat import router as chat
from moot.server.routes.conversations.context import router as context
from moot.server.routes.conversations.messages import queue_router as queue
from moot.server.routes.conversations.messages import router as messages
from moot.server.routes.conversations.remote import router as remote
from moot.server.routes.conversations.replay import router as replay
from moot.server.routes.conversations.resource import choices_router as choices
from moot.server.routes.conversations.resource import router as conversations
from moot.server.routes.conversations.undo import router as undo
from moot.server.routes.cron import router as cron
from moot.server.routes.documentation import router as documentation
from moot.server.routes.exports import router as export
from moot.server.routes.exports import shares_router as shares
from moot.server.routes.health import router as health
from moot.server.routes.health import store_router as store
from moot.server.routes.imports import router as imports
from moot.server.routes.memory import knowledge_router as knowledge
from moot.server.routes.memory import router as memory
from moot.server.routes.projects.files import router as project_files
from moot.server.routes.projects.resource import router as projects
from moot.server.routes.projects.tasks import router as tasks
from moot.server.routes.projects.worktrees import router as worktrees
from moot.server.routes.runs import events_router as events
from moot.server.routes.runs import router as runs
from moot.server.routes.search import router as search
from moot.server.routes.settings.agents import router as agents
from moot.server.routes.settings.config import permissions_router as permissions
from moot.server.routes.settings.config import router as config
from moot.server.routes.settings.mcp import router as mcp
from moot.server.routes.settings.plugins import router as plugins
from moot.server.routes.settings.providers import router as providers
from moot.server.routes.settings.push import router as push
from moot.server.routes.settings.skills import indexes_router as skill_indexes
from moot.server.routes.settings.skills import router as skills
from moot.server.routes.settings.tokens import login_router as login
from moot.server.routes.settings.tokens import router as tokens
from moot.server.routes.settings.web_search import router as web_search
from moot.server.routes.stats import edits_router as edits
from moot.server.routes.stats import router as stats
from moot.server.routes.webhooks import outgoing_router as outgoing_webhooks
from moot.server.routes.webhooks import router as webhooks

__all__ = ["ROUTERS"]

ROUTERS = (
    documentation,
    chat,
    events,
    health,
    login,
    tokens,
    conversations,
    choices,
    context,
    undo,
    messages,
    export,
    shares,
    queue,
    replay,
    runs,
    approvals,
    cron,
    search,
    stats,
    edits,
    store,
    blobs,
    transcriptions,
    imports,
    projects,
    project_files,
    tasks,
    worktrees,
    agents,
    mcp,
    skills,
    skill_indexes,
    plugins,
    memory,
    knowledge,
    providers,
    web_search,
    deciding,
    commands,
    permissions,
    config,
    webhooks,
    outgoing_webhooks,
    push,
    remote,
    *DIALECTS,
)
"""All routers, in the order in which the documentation lists them."""
