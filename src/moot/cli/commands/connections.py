"""The commands `moot acp`, `moot channels …` and `moot webhooks …`, which connect moot to other programs."""

from __future__ import annotations

import signal
import sys
from typing import Annotated, cast

import anyio

from moot.cli.arguments.signatures import AsJson, Parameter
from moot.cli.console.format import age, print_table
from moot.cli.console.lines import write_done
from moot.cli.console.output import cancel_on, handled_signals
from moot.cli.context.configuration import configured, configured_loader
from moot.cli.context.engine import open_watched
from moot.cli.context.output import Out
from moot.engine.channels import channel_of, own_settings, serve, type_of
from moot.errors import ConfigError, MootError, NotFound, UsageError
from moot.features.webhooks.receiver import SHORTEST_SECRET, secret_of
from moot.features.webhooks.sender import delivery_json, send_test, state_of
from moot.plugins import CHANNELS
from moot.plugins.registry import attribute
from moot.store import open_store
from moot.types.canonical import Json, JsonObject
from moot.types.channel import HasCheck
from moot.types.ids import SystemClock

Name = Annotated[str, Parameter(help="Name of the channel.")]

_SERVE_EDITOR = "moot.editors.agent:serve"
"""Import path, because the protocol's library is an extra."""


def list_channels(*, json: AsJson = False, output: Out) -> None:
    """Print the channels and the packages that provide them."""
    channels = configured(output).settings.channels
    named = {**{name: type_of(name, settings) for name, settings in channels.items()}, **{kind: kind for kind in CHANNELS.names()}}
    found: list[JsonObject] = [
        {"name": name, "type": kind, "configured": name in channels, "package": CHANNELS.package(kind)}
        for name, kind in sorted(named.items())
    ]
    if json:
        output.json({"data": list[Json](found), "next_cursor": None})
        return
    states = [_channel_state(channels.get(str(item["name"]))) for item in found]
    rows = [[str(item["name"]), state, str(item["package"] or "built in")] for item, state in zip(found, states, strict=True)]
    print_table(output, ["NAME", "STATE", "PACKAGE"], rows)


def _channel_state(settings: JsonObject | None) -> str:
    if settings is None:
        return "not configured"
    return "disabled" if settings.get("enabled") is False else "configured"


async def serve_channel(name: Name, /, *, output: Out) -> None:
    """Answer messages from a channel until interrupted."""
    loader = configured_loader(output)
    async with open_watched(loader, output, resume=True) as engine, anyio.create_task_group() as group:
        group.start_soon(cancel_on, group.cancel_scope, signal.SIGINT, signal.SIGTERM)
        output.say(f"moot: serving {name}; press Ctrl+C to stop", "dim")
        await serve(engine, name)


async def test_channel(name: Name, /, *, json: AsJson = False, output: Out) -> None:
    """Connect to a channel and print the account that is signed in. Raise UsageError if the channel has no test."""
    settings = configured(output).settings.channels.get(name)
    if settings is None:
        raise NotFound(f"The channel {name!r} is not configured.", fix="Add it to `channels` in the configuration.")
    channel: object = channel_of(name, settings)
    if not isinstance(channel, HasCheck):
        raise UsageError(f"The channel {name!r} has no connection test.", fix=f"moot channels serve {name}")
    said = await channel.check(own_settings(settings))
    write_done(output, json, cast("JsonObject", {"name": name, "status": said}), said)


def list_webhooks(*, json: AsJson = False, output: Out) -> None:
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
        print_table(output, ["NAME", "DIRECTION", "PATH OR EVENTS", "AGENT", "STATE"], [_webhook_row(item) for item in found])
    else:
        output.say("moot: no webhooks; add them to `webhooks` or `outgoing_webhooks` in the configuration", "dim")


_NEEDS_SECRET = f"needs a secret of at least {SHORTEST_SECRET} characters"


def _webhook_row(item: JsonObject) -> list[str]:
    events = item.get("events")
    what = ", ".join(map(str, events)) if isinstance(events, list) else str(item["path"])
    return [str(item["name"]), str(item["direction"]), what, str(item["agent"] or "any"), str(item["state"])]


async def webhook_history(
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


async def test_webhook(name: Annotated[str, Parameter(help="Name of the webhook.")], /, *, json: AsJson = False, output: Out) -> None:
    """Send a test event to an outgoing webhook. Raise MootError if the receiver does not accept it."""
    settings = configured(output).settings
    async with await open_store(settings) as store:
        sent = await send_test(store, settings.outgoing_webhooks, name, SystemClock())
    if sent.status != "delivered":
        raise MootError(f"The webhook {name!r} did not accept the event. {sent.reason}", fix="moot webhooks list")
    write_done(output, json, delivery_json(sent), f"{name} accepted the event")


async def serve_editor(*, output: Out) -> None:
    """Serve an editor until it closes stdin, or until a signal arrives. Only the protocol is written to stdout."""
    try:
        serve_stdio = attribute(_SERVE_EDITOR)
    except ModuleNotFoundError as error:
        if error.name != "acp":
            raise
        raise ConfigError("'moot acp' needs the package agent-client-protocol. Install it with: pip install 'moot[acp]'") from error
    if sys.stdin.isatty():
        output.say("moot: waiting for an editor on stdin; docs/editors.md describes how editors start this command", "dim")
    async with open_watched(configured_loader(output), output) as engine, anyio.create_task_group() as group:
        group.start_soon(cancel_on, group.cancel_scope, *(signal.Signals(one) for one in handled_signals()))
        await serve_stdio(engine)
        group.cancel_scope.cancel()
