"""The command `moot models prices`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import anyio
import anyio.to_thread

from moot.cli.arguments.signatures import AsJson, Parameter
from moot.cli.console.format import plural, print_table
from moot.cli.console.output import Output
from moot.cli.context.engine import opened
from moot.cli.context.output import Out
from moot.config.home import write_atomically
from moot.errors import Refused, UsageError
from moot.guard.urls import Policy, fetch
from moot.providers.catalogue import listed_price, own_prices
from moot.providers.prices import LIST, UPDATE_URL, description, models_in
from moot.types.canonical import Json, JsonObject
from moot.types.model import Price

_LARGEST = 32 << 20
"""Maximum size of a price list in bytes."""
_HEAD = ("MODEL", "INPUT", "OUTPUT", "CACHE READ", "CACHE WRITE", "1 H WRITE", "SEARCHES", "SOURCE")


async def prices(
    *models: Annotated[str, Parameter(metavar="MODEL", help="Models to show. Defaults to the models in your history.")],
    update: Annotated[bool, Parameter(help="Download the latest price list before showing the prices.")] = False,
    from_: Annotated[Path | None, Parameter(help="Read the price list from this file instead of downloading it.", kind="file")] = None,
    json: AsJson = False,
    output: Out,
) -> None:
    """Print prices in dollars per million tokens, and per 1,000 web searches."""
    async with opened(output) as engine:
        home = engine.settings.home
        if update or from_ is not None:
            await _update(home, from_, output)
        names = list(models) or [name for name in (await engine.store.stats.usage()).models if name]
        own = own_prices(engine.settings.providers)
    rows = await anyio.to_thread.run_sync(lambda: [_priced(name, own, home) for name in dict.fromkeys(names)])
    if json:
        output.json({"list": description(home), "data": [_json(name, table, source) for name, table, source in rows]})
        return
    if rows:
        print_table(output, list(_HEAD), [[name, *_cells(table), source] for name, table, source in rows])
    else:
        output.say("moot: no models used yet; specify one: moot models prices MODEL", "dim")
    output.say(f"moot: dollars per million tokens and per 1,000 searches, from {description(home)}", "dim")


async def _update(home: Path, file: Path | None, output: Output) -> None:
    """Replace the price list. If it can't be downloaded, print a warning and keep the current list."""
    if file is None:
        try:
            page = await fetch(UPDATE_URL, policy=Policy(bytes=_LARGEST, seconds=60))
        except Refused as error:
            output.say(f"moot: the price list was not updated: {error}", "yellow")
            return
        if page.status != 200 or page.cut:
            output.say(f"moot: the price list was not updated: the server answered {page.status}", "yellow")
            return
        data, source = page.body, UPDATE_URL
    else:
        try:
            data, source = await anyio.Path(file).read_bytes(), str(file)
        except OSError as error:
            raise UsageError(f"Can't read {str(file)!r}: {error.strerror}.") from error
    try:
        count = await anyio.to_thread.run_sync(models_in, data)
    except ValueError as error:
        words = " ".join(str(error).split())[:200]
        raise UsageError(
            f"{source!r} is not a price list: {words}.",
            fix="Use a data.json from https://github.com/pydantic/genai-prices (prices/new_data/v2).",
        ) from error
    await anyio.to_thread.run_sync(write_atomically, home / LIST, data)
    output.say(f"moot: saved prices of {plural(count, 'model')}; costs that are already stored don't change", "dim")


def _priced(name: str, own: dict[str, Price], home: Path) -> tuple[str, Price | None, str]:
    model, _, provider = name.partition("@")
    if (table := own.get(name) or own.get(model)) is not None:
        return name, table, "configuration"
    table = listed_price(provider, model, home=home)
    return name, table, "list" if table is not None else "unknown"


def _cells(table: Price | None) -> list[str]:
    return [_dollars(value) for value in _per_million(table).values()]


def _dollars(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"


def _per_million(table: Price | None) -> dict[str, float | None]:
    """Return the prices in dollars per million tokens, and per 1,000 web searches."""
    names = ("input", "output", "cache_read", "cache_write", "cache_write_1h")
    found: dict[str, float | None] = {name: _scaled(getattr(table, name, None), 1000) for name in names}
    return {**found, "web_search": _scaled(table.web_search if table is not None else None, 1_000_000)}


def _scaled(nano: float | None, factor: int) -> float | None:
    return None if nano is None else nano / factor


def _json(name: str, table: Price | None, source: str) -> JsonObject:
    tiers: list[Json] = [{"above": above, **_per_million(dearer)} for above, dearer in table.tiers] if table is not None else []
    services: JsonObject = (
        {service: dict[str, Json](_per_million(variant)) for service, variant in table.variants} if table is not None else {}
    )
    return {"model": name, "source": source, **_per_million(table), "tiers": tiers, "services": services}
