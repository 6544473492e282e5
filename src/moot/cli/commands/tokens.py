"""The commands of `moot tokens`."""

from __future__ import annotations

from typing import Annotated, cast

from moot.cli.arguments.signatures import AsJson, Parameter
from moot.cli.console.format import age, print_table
from moot.cli.console.lines import write_done
from moot.cli.context.configuration import configured
from moot.cli.context.output import Out
from moot.cli.options import seconds
from moot.errors import UsageError
from moot.guard.tokens import digest, new_secret
from moot.store import open_store
from moot.types.canonical import Json, JsonObject
from moot.types.ids import SystemClock, new_id
from moot.types.token import LOCAL_USER, SCOPES, Scope, Token, User, scopes_for

All = Annotated[bool, Parameter(name="--all", help="Include expired and revoked tokens.")]


async def list_tokens(*, all_: All = False, json: AsJson = False, output: Out) -> None:
    """Print tokens, newest first."""
    async with await open_store(configured(output).settings) as store:
        found = await store.tokens.list(revoked=all_)
        names = {user.id: user.name for user in await store.tokens.users()}
    if json:
        output.json({"data": list[Json]([_token_json(token, names[token.owner]) for token in found]), "next_cursor": None})
    elif found:
        now = SystemClock().now() // 1000
        rows: list[list[str]] = []
        for token in found:
            used = f"{age(token.used_at, now / 1000)} ago" if token.used_at else "never"
            rows.append([token.id[:13], token.name, names[token.owner], " ".join(token.scopes), used, _state(token, now)])
        print_table(output, ["ID", "NAME", "USER", "SCOPES", "USED", "STATE"], rows)
    else:
        output.say("moot: no tokens; create one with: moot tokens create NAME", "dim")


async def create_token(
    name: Annotated[str, Parameter(help="Name of the token.")],
    /,
    *,
    scopes: Annotated[
        str, Parameter(metavar="SCOPES", help=f"Comma-separated scopes: {', '.join(SCOPES)}. Each includes the ones before it.")
    ] = "chat",
    user: Annotated[
        str | None,
        Parameter(metavar="NAME", help="User whose data the token can access. The user is created if necessary. Defaults to you."),
    ] = None,
    expires: Annotated[
        str | None, Parameter(metavar="DURATION", help="Lifetime of the token, such as 12h or 30d. By default, the token never expires.")
    ] = None,
    json: AsJson = False,
    output: Out,
) -> None:
    """Create a token and print its secret, which is not stored."""
    wanted, lifetime = _scopes(scopes), None if expires is None else seconds(expires, "--expires")
    if lifetime is not None and lifetime <= 0:
        raise UsageError("The lifetime must be greater than 0.", fix="Use a value such as 12h or 30d for --expires.")
    until = None if lifetime is None else SystemClock().now() // 1000 + round(lifetime * 1000)
    async with await open_store(configured(output).settings) as store:
        if any(token.name == name for token in await store.tokens.list()):
            fix = f"Choose another name, such as '{name}-2', or revoke that token with: moot tokens revoke {name}"
            raise UsageError(f"An active token named {name!r} already exists.", fix=fix)
        owner = await store.tokens.user(user) if user is not None else User(LOCAL_USER, LOCAL_USER)
        if not {*wanted} <= {*scopes_for(owner.id)}:
            raise UsageError("A token of another user can't have the scope 'machine'.", fix="Use --scopes admin.")
        secret = new_secret()
        token = await store.tokens.create(Token(new_id(), owner.id, name, wanted, expires_at=until), digest(secret))
    if json:
        output.json({**_token_json(token, owner.name), "secret": secret})
        return
    output.line(secret)
    output.say(
        f"moot: created {name} with scopes {' '.join(token.scopes)}; save the secret now and send it as 'Authorization: Bearer …'", "dim"
    )


async def revoke_token(
    token: Annotated[str, Parameter(help="Token to revoke: its id, the beginning of its id, or its name.")],
    /,
    *,
    json: AsJson = False,
    output: Out,
) -> None:
    """Revoke a token. Its open connections are closed within seconds."""
    async with await open_store(configured(output).settings) as store:
        revoked = await store.tokens.revoke((await store.tokens.get(token)).id)
        owner = next(user.name for user in await store.tokens.users() if user.id == revoked.owner)
    write_done(output, json, _token_json(revoked, owner), f"revoked {revoked.name}")


def _token_json(token: Token, user: str) -> JsonObject:
    facts: JsonObject = {"id": token.id, "name": token.name, "owner": token.owner, "user": user, "kind": token.kind}
    facts |= {"scopes": list[Json](token.scopes), "created_at": token.created_at, "used_at": token.used_at}
    return {**facts, "expires_at": token.expires_at, "revoked_at": token.revoked_at}


def _scopes(text: str) -> tuple[Scope, ...]:
    named = [word.strip() for word in text.split(",") if word.strip()]
    unknown = [word for word in named if word not in SCOPES]
    if unknown or not named:
        raise UsageError(
            f"Unknown scope {', '.join(map(repr, unknown)) or repr(text)}.",
            fix=f"Use a comma-separated list of {', '.join(SCOPES)}.",
        )
    return cast("tuple[Scope, ...]", tuple(scope for scope in SCOPES if scope in named))


def _state(token: Token, now: int) -> str:
    if token.revoked_at is not None:
        return "revoked"
    if token.expires_at is None:
        return "browser" if token.kind == "browser" else ""
    days, hours, minutes = ((token.expires_at - now) // unit for unit in (86_400_000, 3_600_000, 60_000))
    return "expired" if token.expires_at <= now else f"expires in {f'{days} d' if days else f'{hours} h' if hours else f'{minutes} min'}"
