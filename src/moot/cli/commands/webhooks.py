"""The commands of `moot webhooks`."""

from __future__ import annotations

from typing import Annotated

from moot.cli.arguments.signatures import AsJson, Parameter
from moot.cli.console.format import age, print_table
from moot.cli.console.lines import write_done
from moot.cli.context.configuration import configured
from moot.cli.context.output import Out
from moot.errors import MootError
from moot.features.webhooks.receiver import SHORTEST_SECRET, secret_of
from moot.features.webhooks.sender import delivery_json, send_test, state_of
from moot.store import open_store
from moot.types.canonical import Json, JsonObject
from moot.types.ids import SystemClock


def list_(*, json: AsJson = False, output: Out) -> None:
    """Print the configured webhooks and whether they can be used."""
    settings = configured(output).settings
    found: list[JsonObject] = [
        {
            "name": name,
            "direction": "in",
            "path": f"/api/webhooks/{name}",
            "auth": webhook.auth,
            "agent": webhook.agent or "default",
            "state": "disabled" if not webhook.enabled else "ready" if secret_of(webhook) else _NEEDS_SECRET,
        }
        for name, webhook in settings.webhooks.items()
    ]
    for name, one in settings.outgoing_webhooks.items():
        found.append({"name": name, "direction": "out", "events": [*one.events], "agent": one.agent, "state": state_of(one)})
    if json:
        output.json({"data": list[Json](found), "next_cursor": None})
    elif found:
        print_table(output, ["NAME", "DIRECTION", "PATH OR EVENTS", "AGENT", "STATE"], [_row(item) for item in found])
    else:
        output.say("moot: no webhooks; add them to `webhooks` or `outgoing_webhooks` in the configuration", "dim")


_NEEDS_SECRET = f"needs a secret of at least {SHORTEST_SECRET} characters"


def _row(item: JsonObject) -> list[str]:
    events = item.get("events")
    what = ", ".join(map(str, events)) if isinstance(events, list) else str(item["path"])
    return [str(item["name"]), str(item["direction"]), what, str(item["agent"] or "any"), str(item["state"])]


async def history(
    name: Annotated[str | None, Parameter(help="Name of an outgoing webhook. Defaults to all outgoing webhooks.")] = None,
    /,
    *,
    limit: Annotated[int, Parameter(minimum=1, maximum=2000, help="Maximum number of deliveries.")] = 50,
    json: AsJson = False,
    output: Out,
) -> None:
    """Print the events that were sent, failed, or are waiting to be sent, newest first."""
    async with await open_store(configured(output).settings) as store:
        found = await store.webhooks.history(name, limit=limit)
    if json:
        output.json({"data": [delivery_json(item) for item in found], "next_cursor": None})
    elif found:
        now = SystemClock().now() / 1_000_000
        rows = [[f"{age(item.at, now)} ago", item.webhook, item.event, item.status, str(item.tries), item.reason] for item in found]
        print_table(output, ["TIME", "WEBHOOK", "EVENT", "STATUS", "TRIES", "REASON"], rows)
    else:
        output.say("moot: nothing has been sent yet", "dim")


async def test(name: Annotated[str, Parameter(help="Name of the webhook.")], /, *, json: AsJson = False, output: Out) -> None:
    """Send a test event to an outgoing webhook. Raise MootError if the receiver does not accept it."""
    settings = configured(output).settings
    async with await open_store(settings) as store:
        sent = await send_test(store, settings.outgoing_webhooks, name, SystemClock())
    if sent.status != "delivered":
        raise MootError(f"The webhook {name!r} did not accept the event. {sent.reason}", fix="moot webhooks list")
    write_done(output, json, delivery_json(sent), f"{name} accepted the event")
