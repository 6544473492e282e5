"""`moot providers`."""

from __future__ import annotations

from typing import Annotated

from moot.cli.configured import configured
from moot.cli.options import AsJson, Cursor, Limit, Out
from moot.cli.paging import paged
from moot.cli.parameters import Parameter
from moot.cli.tables import print_table
from moot.cli.trying import try_model
from moot.config.settings import ProviderSettings, Settings
from moot.errors import MootError
from moot.providers.local import check_machine
from moot.providers.pool import Providers
from moot.providers.weights.manifest import DEFAULT, find
from moot.types.canonical import JsonObject


async def list_(*, limit: Limit = 50, cursor: Cursor = None, json: AsJson = False, output: Out) -> None:
    """Every provider, in the order in which a bare model name is looked up, and what it lacks."""
    settings = configured(output).settings
    providers = Providers(settings)
    try:
        silent = await providers.silent()
        found = [_facts(name, providers, settings, silent) for name in providers.names()]
    finally:
        await providers.close()
    page = paged(found, limit, cursor, "name")
    if json:
        output.json(page.to_json())
        return
    rows = [[str(item["name"]), str(item["state"]), str(item["dialect"]), str(item["base_url"] or "-")] for item in page.items]
    print_table(output, ["NAME", "STATE", "DIALECT", "URL"], rows)
    for item in page.items:
        if item["missing"]:
            output.say(f"moot: {item['name']}: {item['missing']}", "yellow")
    page.say_more(output)


async def test(
    provider: Annotated[str, Parameter(kind="provider", help="Its name.")],
    /,
    *,
    model: Annotated[str, Parameter(name=("--model", "-m"), help="One of its models; without it the one that it proposes.")] = "",
    json: AsJson = False,
    output: Out,
) -> int:
    """Asks one model of a provider for one word."""
    return await try_model(configured(output).settings, f"{model}@{provider}", output, as_json=json)


def _facts(name: str, providers: Providers, settings: Settings, silent: set[str]) -> JsonObject:
    facts = providers.facts(name)
    entry = settings.providers.get(name) or ProviderSettings(name)
    lacking = "needs a key" if entry.enabled else "disabled"
    missing = _missing(name)
    ready = "not running" if name in silent else "can't run here" if missing else "available"
    return {
        "name": name,
        "state": ready if name in providers.available() else lacking,
        "missing": missing,
        "dialect": entry.dialect or facts.dialect,
        "base_url": entry.base_url or facts.base_url,
        "needs_key": facts.needs_key,
        "priority": entry.priority if entry.priority is not None else facts.priority,
    }


def _missing(name: str) -> str | None:
    """What this machine lacks for the embedded model, and what to do; None for all other providers."""
    if name != "local":
        return None
    try:
        check_machine(find(DEFAULT).size)
    except MootError as error:
        return f"{error.message}; {error.fix}" if error.fix else error.message
    return None
