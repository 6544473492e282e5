"""A double of a browser and its push service: it checks the server's signature and decrypts the messages, as RFC 8291 and RFC 8292 say."""

from __future__ import annotations

import json
import os
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Any

import anyio
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric.ec import ECDH, ECDSA, SECP256R1, EllipticCurvePublicKey, generate_private_key
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from moot.features.webhooks.encryption import decode, encode
from moot.guard.urls import Policy
from moot.types.ids import new_id
from moot.types.push import Device

CONTACT = "mailto:me@example.com"
SECRET = "hidden-in-the-endpoint"


@dataclass
class PushService:
    """One browser and its push service."""

    url: str = ""
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list[tuple[int, dict[str, str]]])
    """Statuses and headers of the next responses; 201 if there are none left."""
    got: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """The decrypted messages."""
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    hangs: bool = False
    """True to never respond."""
    requests: int = 0
    keys: set[str] = field(default_factory=set[str])
    """The public keys of the servers that sent messages."""

    def __post_init__(self) -> None:
        self.private = generate_private_key(SECP256R1())
        self.p256dh = self.private.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        self.auth = os.urandom(16)

    @property
    def endpoint(self) -> str:
        return f"{self.url}/send/{SECRET}"

    @property
    def policy(self) -> Policy:
        """Limits under which moot can reach this service."""
        port = int(self.url.rpartition(":")[2])
        own = (ip_network("127.0.0.0/8"),)
        return Policy(seconds=0.3 if self.hangs else 10.0, hops=0, ports=frozenset({port}), schemes=frozenset({"http"}), allow=own)

    def device(self, owner: str = "local", **more: Any) -> Device:
        return Device(new_id(), owner, "Firefox on Linux", self.endpoint, self.p256dh, self.auth, more.pop("token", "environment"), **more)

    def subscription(self, **more: Any) -> dict[str, Any]:
        """The body of a request that adds this browser."""
        return {"endpoint": self.endpoint, "p256dh": encode(self.p256dh), "auth": encode(self.auth), "name": "Firefox on Linux", **more}

    async def receive(self, request: web.Request) -> web.Response:
        self.requests += 1
        if self.hangs:
            await anyio.sleep_forever()
        assert request.path == f"/send/{SECRET}"
        self._verify(request.headers["authorization"])
        assert request.headers["content-encoding"] == "aes128gcm"
        body = await request.read()
        assert len(body) <= 4096
        status, headers = self.answers.pop(0) if self.answers else (201, {})
        if status < 300:
            self.got.append(json.loads(self._decrypt(body)))
            self.headers.append({name.lower(): value for name, value in request.headers.items()})
        return web.Response(status=status, headers=headers)

    def _verify(self, authorization: str) -> None:
        token, _, public = authorization.removeprefix("vapid t=").partition(", k=")
        head, claims, signature = token.split(".")
        raw = decode(signature)
        signed = encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))
        EllipticCurvePublicKey.from_encoded_point(SECP256R1(), decode(public)).verify(signed, f"{head}.{claims}".encode(), ECDSA(SHA256()))
        claimed = json.loads(decode(claims))
        assert claimed["aud"] == self.url and claimed["sub"] == CONTACT
        assert claimed["exp"] > time.time()
        self.keys.add(public)

    def _decrypt(self, body: bytes) -> bytes:
        salt, size, length = body[:16], int.from_bytes(body[16:20]), body[20]
        sender, record = body[21 : 21 + length], body[21 + length :]
        assert size == 4096 and len(record) <= size
        shared = self.private.exchange(ECDH(), EllipticCurvePublicKey.from_encoded_point(SECP256R1(), sender))
        secret = HKDF(SHA256(), 32, self.auth, b"WebPush: info\0" + self.p256dh + sender).derive(shared)
        key = HKDF(SHA256(), 16, salt, b"Content-Encoding: aes128gcm\0").derive(secret)
        nonce = HKDF(SHA256(), 12, salt, b"Content-Encoding: nonce\0").derive(secret)
        message = AESGCM(key).decrypt(nonce, record, None).rstrip(b"\0")
        assert message[-1] == 2, "the delimiter of the last record"
        return message[:-1]

    async def wait(self, count: int) -> list[dict[str, Any]]:
        """Wait for that many messages."""
        with anyio.fail_after(60):
            while len(self.got) < count:
                await anyio.sleep(0.01)
        return self.got


@asynccontextmanager
async def push_service() -> AsyncGenerator[PushService, None]:
    service = PushService()
    app = web.Application()
    app.router.add_post("/{path:.*}", service.receive)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    service.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield service
    await runner.cleanup()
