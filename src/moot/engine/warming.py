"""Preloading of what the first run needs."""

from __future__ import annotations

import logging

from moot.engine.opening import Engine
from moot.errors import MootError
from moot.plugins import AGENTS
from moot.runtime.setup import find_agent
from moot.tools.offers import offered
from moot.tools.schema import definition

__all__ = ["warm"]

log = logging.getLogger("moot.engine")


async def warm(engine: Engine) -> None:
    """Import and create what a run of the default agent needs: its service, tool definitions, provider and dialect.

    For long-running processes only. Errors are left to the run that needs the component.
    """
    settings = engine.settings
    try:
        AGENTS.make("moot")
        agent = find_agent(settings, "default", {})
        for tool in offered(settings, agent):
            definition(tool)
        await engine.providers.choices(agent.model or "main", settings.models.fallback)
    except MootError as error:
        log.info("could not preload the first run: %s", error.message)
