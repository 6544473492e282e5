"""Has at hand what the first run would otherwise load while somebody waits for it."""

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
    """Imports and makes what a run of the default agent needs: its service, its tools' definitions, provider and dialect.

    For processes that stay: a command that ends soon loads only what it uses. What can't be had is left to the run that wants it.
    """
    settings = engine.settings
    try:
        AGENTS.make("moot")
        agent = find_agent(settings, "default", {})
        for tool in offered(settings, agent):
            definition(tool)
        await engine.providers.choices(agent.model or "main", settings.models.fallback)
    except MootError as error:
        log.info("nothing is ready for a first run: %s", error.message)
