"""Routes for providers of models: list and test them, and set their keys and addresses. A key is tested before it is saved."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from typing import Annotated, Literal

from anyio import to_thread
from fastapi import Path
from pydantic import Field

from moot.config.changes import remove_value
from moot.config.home import KEY_VARIABLES
from moot.config.loader import FILE
from moot.config.settings import ProviderSettings
from moot.errors import Busy, UsageError
from moot.plugins import PROVIDERS
from moot.providers.pool import Providers
from moot.providers.status import answer_json, check_model, providers_json
from moot.server.auth import Admin, Operator, Reader, Router
from moot.server.models import In, ListOut, Out
from moot.server.resources import Cursor, Limit, cut, page_out
from moot.server.routes.settings.config import changed, is_saved, write
from moot.server.state import CurrentServer, Server
from moot.types.canonical import Json, JsonObject


class ProviderOut(Out):
    """A provider of models and its status."""

    name: str
    state: str
    missing: str | None
    dialect: str
    base_url: str
    needs_key: bool
    priority: int
    key: str
    """Source of the API key: a file and line, or an environment variable. Empty if there is no key, and for other users."""
    variables: list[str]
    """Environment variables from which the API key is read."""
    is_built_in: bool
    is_saved: bool
    """True if the configuration file has an entry for the provider."""


class TestIn(In):
    """Model to test."""

    model: Annotated[str, Field(max_length=200)] = ""
    """One of the provider's models; empty = its default."""


class ProviderIn(In):
    """A provider's key and address. Empty values keep the current ones."""

    api_key: Annotated[str, Field(pattern=r"^[\x21-\x7e]*$", max_length=4000)] = ""
    base_url: Annotated[str, Field(pattern=r"^(https?://\S+)?$", max_length=2000)] = ""
    """Required for a provider that is not built in."""
    dialect: Annotated[str, Field(max_length=64)] = ""
    """Format of the requests; empty = `openai-chat` for a provider that is not built in."""
    model: Annotated[str, Field(max_length=200)] = ""
    """Model with which the provider is tested; empty = its default, or the first model that it lists."""
    main: bool = False
    """Use the tested model for all agents that name no model (`models.main`)."""


class TestOut(Out):
    """Reply of the tested model."""

    ok: Literal[True]
    model: str
    text: str
    seconds: float
    usage: dict[str, int]


router = Router(prefix="/api/providers", tags=["agents and tools"])

Name = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]

SECONDS = 60.0
"""Maximum duration of a test."""


@router.get("")
async def list_providers(server: CurrentServer, caller: Reader, limit: Limit = 50, cursor: Cursor = None) -> ListOut[ProviderOut]:
    """List providers in the order in which model names are resolved. `missing` says what a provider lacks, such as an API key."""
    found = [_facts(server, one, with_places=caller.is_home_owner) for one in await providers_json(server.engine.providers)]
    return page_out(cut(found, limit, cursor, lambda item: str(item["name"])), ProviderOut.model_validate)


@router.put("/{name}")
async def set_provider(server: CurrentServer, _: Operator, name: Name, body: ProviderIn) -> TestOut:
    """Test a provider with a one-word prompt, then save its key and address in the configuration file, which only its owner can read.

    Nothing is saved if the test fails.
    """
    settings = server.engine.runtime.settings
    given = body.model_dump(include={"api_key", "base_url", "dialect"}, exclude_defaults=True)
    known = settings.providers.get(name)
    if name == "custom":
        raise UsageError("'custom' can't be the name of a provider.", fix="Choose another name.")
    if known is None and name not in PROVIDERS and not body.base_url:
        raise UsageError(
            f"The provider {name!r} is not built in, so its base_url is required.", fix="Use GET /api/providers to list the names."
        )
    if known is not None and body.base_url and _key_place(server, name) in {f"environment {one}" for one in KEY_VARIABLES.get(name, ())}:
        known = replace(known, api_key="")  # a vendor's key is sent to that vendor only
    entry = replace(known or ProviderSettings(name), enabled=True, **given)
    providers = Providers(replace(settings, providers={**settings.providers, name: entry}))
    try:
        answer = await check_model(providers, f"{body.model}@{name}", seconds=SECONDS)
    finally:
        await providers.close()
    values: dict[str, Json] = {f"providers.{name}.{key}": str(value).replace("${", "$${") for key, value in given.items()}
    if known is not None and not known.enabled:
        values[f"providers.{name}.enabled"] = True
    if body.main:
        values["models.main"] = str(answer.choice.model.id)
    if values:
        await write(server, values)
    return TestOut.model_validate(answer_json(answer))


@router.delete("/{name}", status_code=204)
async def remove_provider(server: CurrentServer, _: Operator, name: Name) -> None:
    """Remove a provider's key, address and models from the configuration file. Keys in environment variables stay in use.

    Refused if `models` names a model of a provider that would no longer exist.
    """
    models = server.engine.runtime.settings.models
    named = (models.main, models.small, models.compaction, models.image, models.transcription, *models.fallback)
    if name not in PROVIDERS and (used := [one for one in named if one.rpartition("@")[2] == name]):
        raise Busy(f"The configuration uses a model from this provider: {used[0]}.", fix="Choose another model in `models` first.")
    await to_thread.run_sync(partial(remove_value, server.engine.settings.home / FILE, f"providers.{name}", os.environ))
    await changed(server)


@router.post("/{name}/test")
async def test_provider(server: CurrentServer, _: Admin, name: str, body: TestIn) -> TestOut:
    """Send a one-word prompt to a provider to test it."""
    return TestOut.model_validate(answer_json(await check_model(server.engine.providers, f"{body.model}@{name}")))


def _key_place(server: Server, name: str) -> str:
    return server.configuration.loaded.origin.get(f"providers.{name}.api_key", "")


def _facts(server: Server, provider: JsonObject, *, with_places: bool) -> JsonObject:
    name = str(provider["name"])
    return {
        **provider,
        "key": _key_place(server, name) if with_places else "",
        "variables": [*KEY_VARIABLES.get(name, ())],
        "is_built_in": name in PROVIDERS,
        "is_saved": is_saved(server, f"providers.{name}"),
    }
