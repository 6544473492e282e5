"""The command `moot share`."""

from __future__ import annotations

import sys
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import anyio.to_thread

from moot.cli.arguments.parameters import Parameter
from moot.cli.asking import confirm
from moot.cli.left_out import say_left_out
from moot.cli.opening import opened, opened_at
from moot.cli.options import AsJson, Out, Which
from moot.cli.output import Output
from moot.cli.tables import print_table
from moot.cli.times import moment
from moot.config.schema import seconds
from moot.engine.servers import serving
from moot.errors import NeedsApproval, UsageError
from moot.runtime.filing import put
from moot.runtime.sharing import finder_here, kinds_of
from moot.runtime.showing import Draft, left_out_json, looked_at, made
from moot.types.canonical import Json, JsonObject
from moot.types.ids import SystemClock
from moot.types.share import Share

__all__ = ["share"]


async def share(
    conversation: Which = "",
    /,
    *,
    expires: Annotated[str, Parameter(metavar="DURATION", help="Lifetime of the link, such as 12h, 7d or 30d.")] = "7d",
    keep: Annotated[str, Parameter(metavar="KINDS", help="Kinds of data to keep, such as emails,paths. See docs/sharing.md.")] = "",
    preview: Annotated[Path | None, Parameter(kind="file", help="Write the page to this file for review without sharing it.")] = None,
    yes: Annotated[bool, Parameter(name=("--yes", "-y"), help="Don't prompt for confirmation.")] = False,
    list_: Annotated[bool, Parameter(name="--list", help="List shared pages.")] = False,
    revoke: Annotated[str, Parameter(metavar="SHARE", help="Id of a shared page to revoke.")] = "",
    json: AsJson = False,
    output: Out,
) -> int:
    """Share a conversation as a read-only page without secrets, home directories, names and e-mail addresses."""
    if sum((bool(conversation), list_, bool(revoke))) != 1:
        raise UsageError("Give a conversation, --list or --revoke SHARE.", fix="moot share 1")
    if list_:
        return await _list(output, json=json)
    if revoke:
        return await _revoke(revoke, output, json=json)
    lifetime = _span(expires)
    async with opened_at(conversation, output) as (engine, found):
        draft = await looked_at(engine.store, found, finder_here(output.secrets, kinds_of(keep)))
        if preview is not None:
            await anyio.to_thread.run_sync(put, preview, draft.page)
        if not json:
            _say_draft(draft, preview, output)
        if preview is not None:
            if json:
                output.json({"ok": True, "file": str(preview), "left_out": [left_out_json(one) for one in draft.left_out]})
            return 0
        if not yes and not await _confirmed(output):
            output.say("moot: the page was not shared", "dim")
            return 1
        shared, secret = await made(engine.store, draft, now=SystemClock().now() // 1000, seconds=lifetime)
        running = serving(engine.settings.home)
        server = engine.settings.server
    base = running.url if running is not None else f"http://{server.host}:{server.port}"
    link = f"{base}/share/{secret}"
    if json:
        output.json({**share_json(shared), "url": link, "serving": running is not None})
        return 0
    output.line(link)
    _say_reach(base, running is not None, shared, output)
    return 0


def share_json(share: Share) -> JsonObject:
    """Return a shared page for scripts."""
    return {
        "id": share.id,
        "conversation": share.conversation,
        "title": share.title,
        "size": share.size,
        "left_out": list[Json](share.left_out),
        "created_at": share.created_at,
        "expires_at": share.expires_at,
        "revoked_at": share.revoked_at,
    }


def _span(text: str) -> float:
    try:
        return float(seconds(text))
    except ValueError as error:
        raise UsageError(f"Invalid value {text!r} for '--expires': expected a duration such as 12h, 7d or 30d.") from error


def _say_draft(draft: Draft, preview: Path | None, output: Output) -> None:
    output.say(f"moot: {draft.title or 'untitled'} ({len(draft.page):,} bytes)", "bold")
    if draft.left_out:
        say_left_out(draft.left_out, output)
    else:
        output.say("  nothing had to be removed", "dim")
    if preview is not None:
        output.say(f"moot: wrote {preview}; the page is not shared")


async def _confirmed(output: Output) -> bool:
    """Ask the user to confirm. Raise NeedsApproval if they cannot be asked."""
    if not (sys.stdin.isatty() and output.stderr_terminal):
        message = "Anyone with the link can read the page, so sharing needs confirmation."
        raise NeedsApproval(message, fix="Review it with --preview FILE, then use --yes.")
    return await confirm("Share this page with anyone who has the link?", output)


def _say_reach(base: str, serves: bool, shared: Share, output: Output) -> None:
    output.say(f"moot: expires {moment(shared.expires_at)}; revoke it with: moot share --revoke {shared.id[:13]}", "dim")
    if not serves:
        output.say("moot: the link works once 'moot serve' is running", "yellow")
    if _is_loopback(base):
        output.say("moot: the address is only reachable from this machine; see docs/sharing.md", "yellow")


def _is_loopback(base: str) -> bool:
    host = urlsplit(base).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def _list(output: Output, *, json: bool) -> int:
    async with opened(output) as engine:
        found = await engine.store.shares.list()
    if json:
        output.json({"data": list[Json]([share_json(one) for one in found]), "next_cursor": None})
    elif found:
        rows = [[one.id[:13], one.title or one.conversation[:13], moment(one.created_at), moment(one.expires_at)] for one in found]
        print_table(output, ["ID", "TITLE", "SHARED", "EXPIRES"], rows)
    else:
        output.say("moot: no shared pages; create one with: moot share ID", "dim")
    return 0


async def _revoke(reference: str, output: Output, *, json: bool) -> int:
    async with opened(output) as engine:
        revoked = await engine.store.shares.revoke(reference)
    if json:
        output.json(share_json(revoked))
    else:
        output.say(f"moot: revoked the link to {revoked.title or revoked.id}")
    return 0
