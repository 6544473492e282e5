"""`moot tokens`: who else may ask a server, and for what."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated, cast

import anyio

from moot.cli.arguments.parameters import Parameter
from moot.cli.configured import configured
from moot.cli.options import AsJson, Out
from moot.cli.output import Output
from moot.cli.tables import print_table
from moot.cli.times import age
from moot.config.schema import seconds
from moot.errors import UsageError
from moot.guard.tokens import digest, new_secret
from moot.store import SqliteStore, open_store
from moot.types.canonical import Json, JsonObject
from moot.types.ids import SystemClock, new_id
from moot.types.token import LOCAL_USER, SCOPES, Scope, Token, User

All = Annotated[bool, Parameter(name="--all", help="Also those that open nothing any more.")]


async def list_(*, all_: All = False, json: AsJson = False, output: Out) -> None:
    """Every token that lets somebody in, newest first."""
    async with _stored(output) as store:
        found = await store.tokens.list(revoked=all_)
        names = {user.id: user.name for user in await store.tokens.users()}
    if json:
        output.json({"data": list[Json]([token_json(token, names[token.owner]) for token in found]), "next_cursor": None})
    elif found:
        now = SystemClock().now() // 1000
        rows = [_row(token, names[token.owner], now) for token in found]
        print_table(output, ["ID", "NAME", "USER", "SCOPES", "USED", "STATE"], rows)
    else:
        output.say("moot: no tokens yet; moot tokens create NAME", "dim")


async def create(
    name: Annotated[str, Parameter(help="What it is for, to tell it from others.")],
    /,
    *,
    scopes: Annotated[str, Parameter(help=f"What it may do, joined by commas: {', '.join(SCOPES)}; each holds those before it.")] = "chat",
    user: Annotated[str | None, Parameter(help="Whose things it opens, made when there is no such user; yours without one.")] = None,
    expires: Annotated[str | None, Parameter(help="How long it holds, as 12h or 30d; until it is revoked without one.")] = None,
    json: AsJson = False,
    output: Out,
) -> None:
    """Makes a token, and shows its secret this once."""
    wanted, until = _scopes(scopes), _until(expires)
    async with _stored(output) as store:
        owner = await store.tokens.user(user) if user is not None else User(LOCAL_USER, LOCAL_USER)
        secret = new_secret()
        token = await store.tokens.create(Token(new_id(), owner.id, name, wanted, expires_at=until), digest(secret))
    if json:
        output.json({**token_json(token, owner.name), "secret": secret})
        return
    output.line(secret)
    output.say(f"moot: {name} may {' '.join(token.scopes)}; nobody can show this again: send it as `Authorization: Bearer …`", "dim")


async def revoke(
    token: Annotated[str, Parameter(help="Its id or the beginning of it, or its name.")], /, *, json: AsJson = False, output: Out
) -> None:
    """Takes a token back: it opens nothing from now on, and what it has open ends within seconds."""
    async with _stored(output) as store:
        revoked = await store.tokens.revoke((await store.tokens.get(token)).id)
        owner = next(user.name for user in await store.tokens.users() if user.id == revoked.owner)
    if json:
        output.json(token_json(revoked, owner))
    else:
        output.say(f"moot: {revoked.name} opens nothing any more")


def token_json(token: Token, user: str) -> JsonObject:
    """A token as scripts get it."""
    return {
        "id": token.id,
        "name": token.name,
        "owner": token.owner,
        "user": user,
        "kind": token.kind,
        "scopes": list[Json](token.scopes),
        "created_at": token.created_at,
        "used_at": token.used_at,
        "expires_at": token.expires_at,
        "revoked_at": token.revoked_at,
    }


@asynccontextmanager
async def _stored(output: Output) -> AsyncGenerator[SqliteStore, None]:
    """The store alone: nothing runs here."""
    store = await open_store(configured(output).settings)
    try:
        yield store
    finally:
        with anyio.CancelScope(shield=True):
            await store.close()


def _scopes(text: str) -> tuple[Scope, ...]:
    named = [word.strip() for word in text.split(",") if word.strip()]
    unknown = [word for word in named if word not in SCOPES]
    if unknown or not named:
        raise UsageError(f"no scope named {', '.join(unknown) or repr(text)}", fix=f"one or more of {', '.join(SCOPES)}, joined by commas")
    return cast("tuple[Scope, ...]", tuple(scope for scope in SCOPES if scope in named))


def _until(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        held = float(seconds(text))
    except ValueError as error:
        raise UsageError(f"{text!r} is no time", fix="give it as 90s, 12h or 30d") from error
    if held <= 0:
        raise UsageError("a token that never holds is none", fix="give --expires as 12h or 30d")
    return SystemClock().now() // 1000 + round(held * 1000)


def _row(token: Token, user: str, now: int) -> list[str]:
    used = f"{age(token.used_at, now / 1000)} ago" if token.used_at else "never"
    return [token.id[:13], token.name, user, " ".join(token.scopes), used, _state(token, now)]


def _state(token: Token, now: int) -> str:
    if token.revoked_at is not None:
        return "revoked"
    if token.expires_at is None:
        return "browser" if token.kind == "browser" else ""
    return "expired" if token.expires_at <= now else f"expires in {_span(token.expires_at - now)}"


def _span(ms: int) -> str:
    days, hours, minutes = ms // 86_400_000, ms // 3_600_000, ms // 60_000
    return f"{days} d" if days else f"{hours} h" if hours else f"{minutes} min"
