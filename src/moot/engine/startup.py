"""Startup: open the store, create the runtime and its runs, and close everything in order."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

import anyio

from moot.config.loader import Loader
from moot.config.settings import Settings
from moot.engine.cron import CronJobs
from moot.engine.locks import Owner
from moot.engine.maintenance import (
    EmbeddingModel,
    apply_retention,
    embed_periodically,
    finish_interrupted,
    index_periodically,
    seal_briefly,
    seal_periodically,
)
from moot.engine.runs import LocalRuns
from moot.engine.tasks import TaskWatchers
from moot.errors import MootError, StoreError
from moot.plugins import AGENTS
from moot.plugins.registry import attribute
from moot.providers.pool import Providers
from moot.runtime.configuration import Configuration
from moot.runtime.runtime import Runtime
from moot.runtime.setup import find_agent
from moot.store import open_store
from moot.tools.catalogue import tools_for
from moot.tools.schema import definition
from moot.types.ids import Clock, new_id
from moot.types.run import Prompt, Tail
from moot.types.store import Store
from moot.types.telemetry import Telemetry

INDEXING = 5.0
"""Maximum number of seconds to spend on the search index when closing."""

SETTLING = 3.0
"""When closing, the maximum number of seconds to wait for runs that are being stopped and for titles."""

_OPEN_TELEMETRY = "moot.runtime.telemetry:open_telemetry"
"""Loaded by path, because telemetry is off by default."""

_RUN_IN_JOB = "moot.commands.submission:run_in_job"
"""Path of a function in a higher layer, imported when a cron job runs a slash command."""

log = logging.getLogger("moot.engine")


@dataclass(frozen=True, slots=True)
class Engine:
    """The parts of an opened home of moot: store, runtime, runs and background services."""

    settings: Settings
    """The settings at the start. The current settings are in `runtime.settings`."""
    store: Store
    runtime: Runtime
    runs: LocalRuns
    tail: Tail
    providers: Providers
    meanings: EmbeddingModel
    cron: CronJobs
    watchers: TaskWatchers
    configuration: Configuration | None = None
    """Reloads `runtime.settings` when files change; None = the settings are fixed."""


@asynccontextmanager
async def open_engine(
    settings: Settings,
    *,
    loader: Loader | None = None,
    resume: bool = False,
    upkeep: bool = True,
    seed: int | None = None,
    clock: Clock | None = None,
) -> AsyncGenerator[Engine, None]:
    """Open an Engine for the duration of the block. Raise StoreError if the store can't be opened.

    If there is a `loader`, the configuration is reloaded when its files change; `settings` must be those that the loader has loaded.

    If `resume` is True, as in servers, runs of dead owners are resumed if that can be done automatically. Otherwise they are only marked
    as interrupted. A process that resumes runs also keeps the search index up to date and applies the retention rules, unless `upkeep` is
    False because another process of the same server does so.

    When the block ends, the tasks of active runs are stopped, and the runs can be resumed later.
    """
    owner = Owner(settings.owners, new_id())
    try:
        if resume:
            try:
                owner.hold()
            except StoreError as error:  # everything can still be read; the first prompt tries again
                log.error("no run can start: %s", error)
        store = await open_store(settings, clock=clock)
        try:
            async with _assembled(settings, store, owner, (seed, clock), loader, serves=resume and upkeep) as engine:
                await engine.runs.sweep(resume=resume)
                yield engine
        finally:
            with anyio.CancelScope(shield=True):
                await store.close()
    finally:
        owner.close()


async def _index(store: Store) -> None:
    try:
        await store.search.index(seconds=INDEXING)
        await store.stats.count(seconds=INDEXING)
    except StoreError as error:  # messages are stored safely; the next search or statistics command catches up
        log.warning("could not update the search index or the statistics: %s", error)


@asynccontextmanager
async def _assembled(
    settings: Settings, store: Store, owner: Owner, ports: tuple[int | None, Clock | None], loader: Loader | None, *, serves: bool
) -> AsyncGenerator[Engine, None]:
    providers = Providers(settings)
    seed, clock = ports
    runtime = Runtime(settings, store, providers, clock=clock, seed=seed)
    meanings = EmbeddingModel(settings.home)
    runtime.embedders = meanings
    if settings.telemetry.enabled:
        telemetry: Telemetry | None = attribute(_OPEN_TELEMETRY)(settings, store, providers)
        if telemetry is not None:
            runtime.observe(telemetry)
    configuration = Configuration(runtime, loader) if loader is not None else None
    has_driven = False
    failure: Exception | None = None
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(runtime.hub.poll)
            group.start_soon(seal_periodically, store, settings.storage.seal_after)
            group.start_soon(finish_interrupted, store)
            if configuration is not None:
                group.start_soon(configuration.watch)
            if serves:
                group.start_soon(apply_retention, store, lambda: runtime.settings.retention)
                group.start_soon(index_periodically, store)
                group.start_soon(embed_periodically, store, meanings)
            runtime.tasks = group
            runs = LocalRuns(runtime, owner, group)
            cron, watchers = CronJobs(runtime, runs), TaskWatchers(runtime, runs)
            try:
                engine = Engine(settings, store, runtime, runs, runtime.hub, providers, meanings, cron, watchers, configuration)
                cron.run_command = partial(_run_in_job, engine)
                yield engine
                await runs.settle(SETTLING)
            except Exception as error:  # noqa: BLE001  raised again below, because the group would wrap it
                failure = error
            has_driven = runs.drove
            group.cancel_scope.cancel()
        if has_driven and not isinstance(failure, StoreError):
            await _index(store)
            await seal_briefly(store, settings.storage.seal_after)
        if failure is not None:
            raise failure
    finally:
        with anyio.CancelScope(shield=True):
            await runtime.drawers.aclose()
            await providers.close()
            if runtime.telemetry is not None:
                await runtime.telemetry.aclose()


async def _run_in_job(engine: Engine, prompt: Prompt, command: tuple[str, str]) -> tuple[str, str | None]:
    found: tuple[str, str | None] = await attribute(_RUN_IN_JOB)(engine, prompt, command)
    return found


async def warm(engine: Engine) -> None:
    """Import and create everything that a run of the default agent needs: its service, tool definitions, provider and dialect.

    Only for long-running processes. Errors are ignored here; a run that needs the failed component raises them again.
    """
    settings = engine.settings
    try:
        AGENTS.make("moot")
        agent = find_agent(settings, "default", {})
        for tool in tools_for(settings, agent):
            definition(tool)
        await engine.providers.choices(agent.model or "main", settings.models.fallback)
    except MootError as error:
        log.info("could not preload the first run: %s", error.message)
