"""A double of Discord on 127.0.0.1: its gateway (version 10, zstd-stream) and the part of its REST interface that moot uses.

Reference: https://discord.com/developers/docs/events/gateway and the sources of discord.py, which drives it in the tests.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import anyio
import zstandard
from aiohttp import WSMsgType, web

from moot.channels.bot import WRITING
from moot.channels.discord import Discord
from moot.types.canonical import JsonObject
from moot.types.channel import ChannelRuntime

TOKEN = "a-token-of-a-bot"
BOT, APPLICATION, GUILD, ROOM, THREAD = "900", "901", "500", "501", "502"
"""Ids of the bot, its application, a guild, a text channel in it, and a thread in the channel."""


@dataclass
class Session:
    """A gateway session, which may outlive its connection."""

    id: str
    sent: list[str] = field(default_factory=list[str])
    """Dispatched events, for resuming."""
    socket: web.WebSocketResponse | None = None
    packer: Any = None

    async def send(self, payload: dict[str, Any]) -> None:
        text = json.dumps(payload)
        if payload["op"] == 0:
            self.sent.append(text)
        await self.send_text(text)

    async def send_text(self, text: str) -> None:
        if self.socket is not None and not self.socket.closed:
            data = self.packer.compress(text.encode()) + self.packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
            await self.socket.send_bytes(data)


class DiscordServer:
    """The double. `say` and `click` act as a person; `posts` contains the bot's messages."""

    def __init__(self) -> None:
        self.url = ""
        self.posts: list[dict[str, Any]] = []
        """Messages of the bot in all rooms, oldest first, as they are now."""
        self.said: list[dict[str, Any]] = []
        """Messages of people, oldest first."""
        self.edits: list[str] = []
        """The contents of all edits, in order."""
        self.replies: list[dict[str, Any]] = []
        """Responses to interactions."""
        self.commands: list[dict[str, Any]] = []
        self.files: dict[str, tuple[str, bytes]] = {}
        """Uploaded and attached files by id: name and content."""
        self.sessions: dict[str, Session] = {}
        self.identified = self.resumed = 0
        self.refusals: list[int] = []
        """Statuses of the next requests that create or edit a message, before any is accepted."""
        self._next = 10_000
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def serve(self, port: int = 0) -> AsyncGenerator[DiscordServer]:
        """Serve for the duration of the block."""
        app = web.Application(middlewares=[self._check])
        app.add_routes(
            [
                web.get("/gateway", self._gateway),
                web.get("/api/users/@me", self._me),
                web.get("/api/gateway/bot", self._gateway_url),
                web.get("/api/oauth2/applications/@me", self._application),
                web.put("/api/applications/{app}/commands", self._set_commands),
                web.post("/api/channels/{room}/typing", self._typing),
                web.post("/api/channels/{room}/messages", self._create),
                web.get("/api/channels/{room}/messages", self._history),
                web.patch("/api/channels/{room}/messages/{id}", self._edit),
                web.delete("/api/channels/{room}/messages/{id}", self._delete),
                web.post("/api/interactions/{id}/{token}/callback", self._callback),
                web.patch("/api/webhooks/{app}/{token}/messages/@original", self._edit_reply),
                web.get("/files/{id}", self._file),
            ]
        )
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield self
        finally:
            with anyio.CancelScope(shield=True):
                for session in self.sessions.values():
                    if session.socket is not None:
                        await session.socket.close()
                await runner.cleanup()

    @property
    def settings(self) -> JsonObject:
        """Settings of a channel that uses this server."""
        return {"token": TOKEN, "api": f"{self.url}/api", "users": ["1", "2"], "guilds": [GUILD]}

    # ── a person ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def say(self, text: str, *, user: int = 1, room: str = "", id: str = "", files: dict[str, bytes] | None = None) -> str:
        """Write a message, in the person's direct messages or in a room of the guild, and return its id. `id` repeats a message."""
        place: dict[str, Any] = {"guild_id": GUILD, "channel_id": room, "member": _member(user)} if room else {"channel_id": f"10{user}"}
        mentions = [{**_user(BOT, bot=True), "member": _member(BOT)}] if f"<@{BOT}>" in text else []
        message = self._message({"content": text, **place}, _user(user), mentions=mentions, id=id)
        for name, data in (files or {}).items():
            message["attachments"].append(self._attachment(name, data))
        self.said.append(message)
        await self.dispatch("MESSAGE_CREATE", message)
        return str(message["id"])

    async def click(self, post: dict[str, Any], label: str, *, user: int = 1) -> None:
        """Press a button of a message."""
        (button,) = [one for row in post["components"] for one in row["components"] if one["label"] == label]
        await self._interact(3, {"component_type": 2, "custom_id": button["custom_id"]}, user, post["channel_id"], message=post)

    async def command(self, name: str, argument: str = "", *, user: int = 1) -> None:
        """Use a slash command in direct messages."""
        options = [{"name": "value", "type": 3, "value": argument}] if argument else []
        await self._interact(2, {"id": "1", "name": name, "type": 1, "options": options}, user, f"10{user}")

    async def _interact(self, kind: int, data: dict[str, Any], user: int, room: str, **more: Any) -> None:
        place = {"guild_id": GUILD, "member": _member(user)} if room in (ROOM, THREAD) else {"user": _user(user)}
        channel = _channels()[room] if room in (ROOM, THREAD) else {"id": room, "type": 1, "recipients": [_user(user)]}
        facts: dict[str, Any] = {"version": 1, "attachment_size_limit": 1 << 20, "entitlements": [], "authorizing_integration_owners": {}}
        named = {"id": self._id(), "application_id": APPLICATION, "token": f"token-{self._next}", "type": kind}
        await self.dispatch("INTERACTION_CREATE", {**named, **facts, **place, "channel": channel, "data": data, **more})

    async def until(self, claim: Any) -> Any:
        """Call the function after each change until its result is true, and return the result."""
        with anyio.fail_after(60):
            while not (found := claim()):
                self._changed.clear()
                await self._changed.wait()
        return found

    def shown(self, room: str = "101") -> list[str]:
        """Return the finished texts of the bot in a room, oldest first."""
        return [str(post["content"]) for post in self.posts if post["channel_id"] == room and WRITING not in post["content"]]

    # ── the gateway ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def dispatch(self, event: str, data: dict[str, Any]) -> None:
        """Send an event in all sessions."""
        for session in self.sessions.values():
            await session.send({"op": 0, "t": event, "s": len(session.sent) + 1, "d": data})

    async def reconnect(self) -> None:
        """Ask the bot to reconnect and to resume."""
        for session in self.sessions.values():
            await session.send({"op": 7, "d": None})

    async def invalidate(self) -> None:
        """Declare all sessions invalid: the bot must identify again."""
        sessions = list(self.sessions.values())
        self.sessions.clear()
        for session in sessions:
            await session.send({"op": 9, "d": False})

    async def drop(self) -> None:
        """Cut all connections."""
        for session in self.sessions.values():
            if session.socket is not None:
                await session.socket.close(code=1006 - 5)

    async def _gateway(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        session = Session("", socket=socket, packer=zstandard.ZstdCompressor().compressobj())
        await session.send({"op": 10, "d": {"heartbeat_interval": 41_250}})
        async for message in socket:
            if message.type is not WSMsgType.TEXT:
                continue
            payload = json.loads(message.data)
            if payload["op"] == 1:
                await session.send({"op": 11})
            elif payload["op"] == 2:
                session = await self._identify(session, payload["d"])
            elif payload["op"] == 6:
                session = await self._resume(session, payload["d"])
        return socket

    async def _identify(self, session: Session, data: dict[str, Any]) -> Session:
        assert session.socket is not None
        if data["token"] != TOKEN:
            await session.socket.close(code=4004)
            return session
        self.identified += 1
        session.id = f"session-{self.identified}"
        self.sessions[session.id] = session
        application = {"id": APPLICATION, "flags": 0}
        facts = {"v": 10, "user": _user(BOT, bot=True), "guilds": [{"id": GUILD, "unavailable": True}], "application": application}
        facts |= {"session_id": session.id, "resume_gateway_url": self._gateway_address}
        await session.send({"op": 0, "t": "READY", "s": 1, "d": facts})
        await session.send({"op": 0, "t": "GUILD_CREATE", "s": 2, "d": _guild()})
        self._changed.set()
        return session

    async def _resume(self, session: Session, data: dict[str, Any]) -> Session:
        known = self.sessions.get(data["session_id"])
        if known is None:
            await session.send({"op": 9, "d": False})
            return session
        self.resumed += 1
        known.socket, known.packer = session.socket, session.packer
        for text in known.sent[data["seq"] :]:
            await known.send_text(text)
        await known.send({"op": 0, "t": "RESUMED", "s": len(known.sent) + 1, "d": {}})
        self._changed.set()
        return known

    # ── the REST interface ───────────────────────────────────────────────────────────────────────────────────────────────

    @web.middleware
    async def _check(self, request: web.Request, handler: Any) -> web.StreamResponse:
        open_to_all = request.path.startswith(("/gateway", "/files/", "/api/interactions/", "/api/webhooks/"))
        if not open_to_all and request.headers.get("authorization") != f"Bot {TOKEN}":
            response = web.json_response({"message": "401: Unauthorized", "code": 0}, status=401)
            response.headers["content-type"] = "application/json"
            return response
        response: web.StreamResponse = await handler(request)
        if response.content_type == "application/json":
            response.headers["content-type"] = "application/json"  # the library compares it exactly
        self._changed.set()
        return response

    async def _me(self, request: web.Request) -> web.Response:
        return web.json_response(_user(BOT, bot=True) | {"verified": True, "flags": 0, "mfa_enabled": False})

    async def _application(self, request: web.Request) -> web.Response:
        about = {"id": APPLICATION, "name": "moot", "description": "", "icon": None, "bot_public": False, "bot_require_code_grant": False}
        return web.json_response({**about, "owner": _user(1), "verify_key": "", "flags": 0, "summary": ""})

    async def _gateway_url(self, request: web.Request) -> web.Response:
        limits = {"total": 1000, "remaining": 1000, "reset_after": 0, "max_concurrency": 1}
        return web.json_response({"url": self._gateway_address, "shards": 1, "session_start_limit": limits})

    @property
    def _gateway_address(self) -> str:
        return f"{self.url.replace('http', 'ws')}/gateway"

    async def _set_commands(self, request: web.Request) -> web.Response:
        self.commands = await request.json()
        return web.json_response([])

    async def _typing(self, request: web.Request) -> web.Response:
        return web.Response(status=204)

    async def _create(self, request: web.Request) -> web.Response:
        if self.refusals:
            return self._refuse()
        payload, files = await _payload(request)
        for post in self.posts:
            if payload.get("nonce") is not None and post["nonce"] == payload["nonce"] and payload.get("enforce_nonce"):
                return web.json_response(post)
        post = self._message({**payload, "channel_id": request.match_info["room"]}, _user(BOT, bot=True))
        assert len(post["content"]) <= 2000 and (post["content"] or files), "Discord refuses such messages"
        post["attachments"] = [self._attachment(name, data) for name, data in files]
        self.posts.append(post)
        return web.json_response(post)

    async def _history(self, request: web.Request) -> web.Response:
        after, room = int(request.query["after"]), request.match_info["room"]
        found = [one for one in (*self.said, *self.posts) if one["channel_id"] == room and int(one["id"]) > after]
        found.sort(key=lambda one: int(one["id"]))
        return web.json_response(found[: int(request.query["limit"])][::-1])

    async def _edit(self, request: web.Request) -> web.Response:
        if self.refusals:
            return self._refuse()
        payload, _ = await _payload(request)
        for post in self.posts:
            if post["id"] == request.match_info["id"]:
                post |= {key: payload[key] for key in ("content", "components") if key in payload}
                assert len(post["content"]) <= 2000
                if "content" in payload:
                    self.edits.append(str(payload["content"]))
                return web.json_response(post)
        return web.json_response({"message": "Unknown Message", "code": 10008}, status=404)

    def _refuse(self) -> web.Response:
        status = self.refusals.pop(0)
        if status == 429:
            body = {"message": "You are being rate limited.", "retry_after": 0.01, "global": False}
            return web.json_response(body, status=429, headers={"Retry-After": "0.01", "Via": "1.1 google"})
        return web.json_response({"message": "refused", "code": 50013}, status=status)

    async def _delete(self, request: web.Request) -> web.Response:
        self.posts = [post for post in self.posts if post["id"] != request.match_info["id"]]
        return web.Response(status=204)

    async def _callback(self, request: web.Request) -> web.Response:
        payload, _ = await _payload(request)
        self.replies.append(payload)
        if payload["type"] == 7:  # change the message of the button
            data, message = payload["data"], self._clicked(request.match_info["id"])
            message |= {key: data[key] for key in ("content", "components") if key in data}
        interaction = {"id": request.match_info["id"], "type": 3}
        return web.json_response({"interaction": interaction})

    def _clicked(self, interaction: str) -> dict[str, Any]:
        texts = [json.loads(text)["d"] for session in self.sessions.values() for text in session.sent]
        (data,) = [one for one in texts if one.get("id") == interaction]
        return next(post for post in self.posts if post["id"] == data["message"]["id"])

    async def _edit_reply(self, request: web.Request) -> web.Response:
        payload, _ = await _payload(request)
        self.replies.append(payload)
        return web.json_response(self._message({"content": payload["content"], "channel_id": "101"}, _user(BOT, bot=True)))

    async def _file(self, request: web.Request) -> web.Response:
        return web.Response(body=self.files[request.match_info["id"]][1])

    # ── values ───────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _id(self) -> str:
        self._next += 1
        return str(self._next)

    def _attachment(self, name: str, data: bytes) -> dict[str, Any]:
        id = self._id()
        self.files[id] = name, data
        url = f"{self.url}/files/{id}"
        kind = "image/png" if name.endswith(".png") else "text/plain; charset=utf-8"
        return {"id": id, "filename": name, "size": len(data), "url": url, "proxy_url": url, "content_type": kind}

    def _message(self, given: dict[str, Any], author: dict[str, Any], *, mentions: Any = (), id: str = "") -> dict[str, Any]:
        facts = {
            "timestamp": "2026-11-26T08:00:00+00:00",
            "edited_timestamp": None,
            "tts": False,
            "mention_everyone": False,
            "pinned": False,
        }
        lists: dict[str, Any] = {"mention_roles": [], "attachments": [], "embeds": [], "components": [], "mentions": list(mentions)}
        kept = {"nonce": None, **given, "content": given.get("content") or ""}
        kept.pop("attachments", None)
        return {"id": id or self._id(), "author": author, "type": 0, **facts, **lists, **kept}


async def _payload(request: web.Request) -> tuple[dict[str, Any], list[tuple[str, bytes]]]:
    """Return the JSON of a request, and its files."""
    if not request.content_type.startswith("multipart/"):
        return await request.json(), []
    payload: dict[str, Any] = {}
    files: list[tuple[str, bytes]] = []
    async for part in await request.multipart():
        data = bytes(await cast("Any", part).read())
        if cast("Any", part).name == "payload_json":
            payload = json.loads(data)
        else:
            files.append((str(cast("Any", part).filename), data))
    return payload, files


def _user(id: int | str, *, bot: bool = False) -> dict[str, Any]:
    name = {"1": "ann", "2": "bob", BOT: "moot"}.get(str(id), f"user{id}")
    return {"id": str(id), "username": name, "discriminator": "0", "global_name": None, "avatar": None, "bot": bot}


def _member(id: int | str) -> dict[str, Any]:
    facts: dict[str, Any] = {"roles": [], "joined_at": "2026-01-01T00:00:00+00:00", "deaf": False, "mute": False, "flags": 0}
    return {"user": _user(id, bot=id == BOT), "nick": None, "avatar": None, "permissions": "0", **facts}


def _channels() -> dict[str, dict[str, Any]]:
    room: dict[str, Any] = {
        "id": ROOM,
        "type": 0,
        "guild_id": GUILD,
        "name": "general",
        "position": 0,
        "permission_overwrites": [],
        "parent_id": None,
    }
    about = {"archived": False, "auto_archive_duration": 60, "archive_timestamp": "2026-01-01T00:00:00+00:00", "locked": False}
    thread = {"id": THREAD, "type": 11, "guild_id": GUILD, "name": "a thread", "parent_id": ROOM, "owner_id": "1"}
    counts = {"message_count": 1, "member_count": 1, "total_message_sent": 1, "rate_limit_per_user": 0, "flags": 0}
    return {ROOM: room, THREAD: {**thread, **counts, "thread_metadata": about}}


def _guild() -> dict[str, Any]:
    channels = _channels()
    lists: dict[str, Any] = {name: [] for name in ("emojis", "stickers", "features", "presences", "voice_states", "stage_instances")}
    everyone = {"id": GUILD, "name": "@everyone", "permissions": "0", "position": 0, "color": 0, "hoist": False, "managed": False}
    everyone |= {"mentionable": False, "flags": 0, "colors": {"primary_color": 0, "secondary_color": None, "tertiary_color": None}}
    facts = {"id": GUILD, "name": "a guild", "owner_id": "1", "member_count": 3, "large": False, "unavailable": False, "icon": None}
    levels = {"verification_level": 0, "default_message_notifications": 0, "explicit_content_filter": 0, "mfa_level": 0, "nsfw_level": 0}
    rest = {"premium_tier": 0, "premium_subscription_count": 0, "preferred_locale": "en-US", "afk_timeout": 60, "afk_channel_id": None}
    rest |= {"system_channel_id": None, "system_channel_flags": 0, "application_id": None, "region": "", "guild_scheduled_events": []}
    members = [_member(BOT), _member(1), _member(2)]
    return {
        **facts,
        **levels,
        **rest,
        **lists,
        "roles": [everyone],
        "members": members,
        "channels": [channels[ROOM]],
        "threads": [channels[THREAD]],
    }


class DiscordOnTrial(Discord):
    """The channel with a double to talk to, for the conformance suite."""

    edit_interval = 0.01

    def __init__(self) -> None:
        self.server = DiscordServer()
        self._ready = anyio.Event()

    async def serve(self, runtime: ChannelRuntime, settings: JsonObject) -> None:
        async with self.server.serve():
            if settings.get("token") == TOKEN:
                self._ready.set()
                settings = {**settings, "api": f"{self.server.url}/api"}
            await super().serve(runtime, settings)

    def trial(self, folder: Path) -> JsonObject:
        """Return settings for the double."""
        return {"token": TOKEN, "users": ["1", "2"]}

    @asynccontextmanager
    async def client(self, settings: JsonObject, who: str) -> AsyncGenerator[Person]:
        """Return a person with this name in direct messages."""
        with anyio.fail_after(5):
            await self._ready.wait()
            await self.server.until(lambda: self.server.sessions)
        yield Person(self.server, {"ann": 1, "bob": 2}[who])


class Person:
    """A person in direct messages, who answers questions with the buttons."""

    def __init__(self, server: DiscordServer, user: int) -> None:
        self._server = server
        self._user = user
        self._heard = {post["id"] for post in self._mine()}

    def _mine(self) -> list[dict[str, Any]]:
        return [post for post in self._server.posts if post["channel_id"] == f"10{self._user}"]

    async def say(self, text: str) -> None:
        """Write a message, or decide about the last question."""
        asked = [post for post in self._mine() if post["components"]]
        if asked and text.partition(" ")[0].rstrip(",") in ("yes", "no"):
            await self._server.click(asked[-1], "Allow" if text == "yes" else "Deny", user=self._user)
        else:
            await self._server.say(text, user=self._user)

    async def hear(self) -> str:
        """Return the next finished message."""
        post = await self._server.until(
            lambda: next((one for one in self._mine() if one["id"] not in self._heard and WRITING not in one["content"]), None)
        )
        self._heard.add(post["id"])
        return str(post["content"])
