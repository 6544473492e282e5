"""`moot --url` over bad connections: cut, refused, encrypted with an unknown certificate, and with other servers."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import ssl
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from e2e.server.conftest import FIXED, LiveServer, ServedHome
from e2e.server.test_remote import away
from moot import __version__
from moot.testing.script import Reply

pytestmark = pytest.mark.anyio


class Proxy:
    """A TCP proxy whose connections can be cut."""

    def __init__(self, port: int) -> None:
        self.port = 0
        self.cuts = 0
        self.drop = b""
        """Cut a connection instead of passing on the response to a request that contains this. Used once."""
        self._target = port
        self._scopes: set[anyio.CancelScope] = set()

    def cut(self) -> None:
        """Cut all connections."""
        for scope in list(self._scopes):
            self.cuts += 1
            scope.cancel()

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncGenerator[str]:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        self.port = listener.extra(anyio.abc.SocketAttribute.local_port)
        async with listener, anyio.create_task_group() as group:
            group.start_soon(listener.serve, self._pass_on)
            yield f"http://127.0.0.1:{self.port}"
            group.cancel_scope.cancel()

    async def _pass_on(self, client: anyio.abc.SocketStream) -> None:
        async with client, await anyio.connect_tcp("127.0.0.1", self._target) as server:
            with anyio.CancelScope() as scope, contextlib.suppress(anyio.EndOfStream, anyio.ClosedResourceError, OSError):
                self._scopes.add(scope)
                dropping = anyio.Event()
                async with anyio.create_task_group() as group:
                    group.start_soon(self._copy, client, server, dropping, scope)
                    await self._answers(server, client, dropping, scope)
                    group.cancel_scope.cancel()
            self._scopes.discard(scope)

    async def _copy(
        self, source: anyio.abc.SocketStream, target: anyio.abc.SocketStream, dropping: anyio.Event, scope: anyio.CancelScope
    ) -> None:
        with contextlib.suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            async for data in source:
                if self.drop and self.drop in data:
                    self.drop = b""
                    dropping.set()
                await target.send(data.replace(b"Host: 127.0.0.1:%d" % self.port, b"Host: 127.0.0.1:%d" % self._target))
        scope.cancel()

    async def _answers(
        self, source: anyio.abc.SocketStream, target: anyio.abc.SocketStream, dropping: anyio.Event, scope: anyio.CancelScope
    ) -> None:
        with contextlib.suppress(anyio.BrokenResourceError):
            async for data in source:
                if dropping.is_set():
                    self.cuts += 1
                    scope.cancel()
                    await anyio.sleep(0)
                await target.send(data)


async def test_an_answer_continues_after_the_connection_was_cut(serve_home: Callable[..., ServedHome], tmp_path: Path) -> None:
    text = " ".join(f"word{number}" for number in range(60))
    served = serve_home([Reply(text=text, hang_at=20)]).start()
    proxy = Proxy(served.port)
    async with proxy.open() as url:
        process = away(tmp_path, url).start("run", "count")
        assert process.stdout is not None
        first = await anyio.to_thread.run_sync(os.read, process.stdout.fileno(), 5)  # without reading ahead
        proxy.cut()
        served.model.release()
        rest, stderr = await anyio.to_thread.run_sync(lambda: process.communicate(timeout=60))
    assert proxy.cuts >= 1
    assert process.returncode == 0, stderr
    assert (first + rest).decode() == f"{text}\n"


async def test_a_prompt_whose_response_was_lost_is_sent_once(serve_home: Callable[..., ServedHome], tmp_path: Path) -> None:
    served = serve_home([Reply(text="Only once.")]).start()
    proxy = Proxy(served.port)
    proxy.drop = b"POST /api/remote/prompts"
    async with proxy.open() as url:
        other = away(tmp_path, url)
        ran = await anyio.to_thread.run_sync(other.run, "run", "hello")
    assert proxy.cuts == 1
    assert ran.stdout == b"Only once.\n", ran.stderr
    assert len(json.loads(served.moot.run("chat", "list", "--json").stdout)["data"]) == 1
    assert len(served.model.requests()) == 1


async def test_a_restarted_server_finishes_the_answer(serve_home: Callable[..., ServedHome], tmp_path: Path) -> None:
    served = serve_home([Reply(text="word " * 9, hang_at=4), Reply(text="All of it.", times=0)]).start()
    process = away(tmp_path, served.url).start("run", "count")
    assert process.stdout is not None
    assert await anyio.to_thread.run_sync(os.read, process.stdout.fileno(), 4) == b"word"
    await anyio.to_thread.run_sync(served.stop)
    await anyio.to_thread.run_sync(served.start)
    rest, stderr = await anyio.to_thread.run_sync(lambda: process.communicate(timeout=60))
    assert process.returncode == 0, stderr
    assert rest.endswith(b"All of it.\n")


async def test_another_version_is_named(server: LiveServer) -> None:
    body = {"operation": "conversations.choices", "arguments": {}}
    for path in ("read", "change", "prompts"):
        async with server.client.post(f"/api/remote/{path}", json=body, headers={"moot-version": "0.0.1"}) as refused:
            problem = await refused.json()
        assert (refused.status, problem["code"]) == (409, "version")
        assert problem["detail"] == f"This server runs moot {__version__}, but your machine runs moot 0.0.1."


async def test_arguments_are_checked(server: LiveServer) -> None:
    headers = {"moot-version": __version__}
    for arguments in ({}, {"reference": 3}, {"reference": "x", "more": 1}):
        body = {"operation": "conversations.get", "arguments": arguments}
        async with server.client.post("/api/remote/read", json=body, headers=headers) as refused:
            assert refused.status == 422
            assert "conversations.get" in (await refused.json())["detail"]
    async with server.client.post("/api/remote/read", json={"operation": "erasure.purge"}, headers=headers) as refused:
        assert refused.status == 422


async def test_other_users_data_can_t_be_read(server: LiveServer) -> None:
    async with server.client.post("/api/conversations", json={}) as made:
        id = (await made.json())["id"]
    headers = {"moot-version": __version__}
    async with server.caller(owner="ann", scopes=("chat",)) as ann:
        for path, operation, arguments in (
            ("read", "conversations.get", {"reference": id}),
            ("read", "conversations.branch", {"id": id}),
            ("read", "log.read", {"conversation": id}),
            ("read", "translations.converters", {"id": id}),
            ("change", "conversations.rename", {"id": id, "title": "mine", "source": "user"}),
        ):
            async with ann.post(f"/api/remote/{path}", json={"operation": operation, "arguments": arguments}, headers=headers) as response:
                assert response.status == 404, (operation, await response.text())
        prompt = {"parts": [{"type": "text", "text": "hi"}]}
        async with ann.post("/api/remote/prompts", json={**prompt, "conversation": id}, headers=headers) as response:
            assert response.status == 404
        async with ann.post("/api/remote/prompts", json={**prompt, "mode": "auto"}, headers=headers) as response:
            assert response.status == 403


def _certificate(folder: Path) -> Path:
    """Write a certificate that no authority has signed, and its key, to one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    today = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - datetime.timedelta(days=1))
        .not_valid_after(today + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "certificate.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    return path


class _Handler(BaseHTTPRequestHandler):
    """A web server that is not moot."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(301 if self.path.startswith("/moved") else 404)
        if self.path.startswith("/moved"):
            self.send_header("location", "/")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


@contextlib.contextmanager
def _web_server(certificate: Path | None = None) -> Generator[int]:
    with HTTPServer(("127.0.0.1", 0), _Handler) as server:
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def _failure(tmp_path: Path, url: str, **more: str) -> tuple[int, str]:
    other = away(tmp_path, url)
    other.more.update(more)
    failed = other.run("chat", "list", "--plain", executed="SSL_CERT_FILE" in more)  # read when a process starts
    assert failed.stdout == b""
    error = failed.stderr.decode()
    assert FIXED not in error
    assert "Traceback" not in error
    return failed.returncode, error


def test_certificates_are_verified(tmp_path: Path) -> None:
    certificate = _certificate(tmp_path)
    with _web_server(certificate) as port:
        code, error = _failure(tmp_path, f"https://localhost:{port}")
        assert (code, "has an untrusted certificate" in error) == (1, True), error
        code, error = _failure(tmp_path, f"https://localhost:{port}", SSL_CERT_FILE=str(certificate))
        assert (code, "is not a moot server" in error) == (1, True), error


def test_errors_of_connections_are_one_clear_line(tmp_path: Path) -> None:
    code, error = _failure(tmp_path, "http://127.0.0.1:9")
    assert (code, error.splitlines()[0]) == (1, "moot: The server at http://127.0.0.1:9 can't be reached: Connection refused.")
    code, error = _failure(tmp_path, "http://no-such-host.invalid")
    assert (code, "its host name can't be resolved" in error) == (1, True), error
    with _web_server() as port:
        assert "is not a moot server" in _failure(tmp_path, f"http://127.0.0.1:{port}")[1]
        assert "redirects to another address" in _failure(tmp_path, f"http://127.0.0.1:{port}/moved")[1]
        assert "could not establish a secure connection" in _failure(tmp_path, f"https://127.0.0.1:{port}")[1]


@pytest.mark.parametrize("url", ["moot.example.com", "ftp://moot.example.com", "http://", "https://me:secret@moot.example.com"])
def test_invalid_addresses_are_refused_without_repeating_them(url: str, tmp_path: Path) -> None:
    code, error = _failure(tmp_path, url)
    assert (code, "The server's address" in error) == (2, True), error
    assert "secret" not in error


def test_a_wrong_or_missing_token_is_explained(server_process: ServedHome, tmp_path: Path) -> None:
    url = server_process.url
    code, error = _failure(tmp_path, url, MOOT_TOKEN="wrong-token-of-a-stranger")
    assert (code, "doesn't accept the token" in error, "wrong-token" in error) == (2, True, False), error
    code, error = _failure(tmp_path, url, MOOT_TOKEN="")
    assert (code, "No token for the server" in error) == (2, True), error
    code, error = _failure(tmp_path, url, MOOT_TOKEN="two words\x1b")
    assert (code, "The token is not valid" in error, "two" in error) == (2, True, False), error
    assert "There is no moot server at" in _failure(tmp_path, f"{url}/elsewhere")[1]


def test_a_token_is_read_from_a_file(server_process: ServedHome, tmp_path: Path) -> None:
    other = away(tmp_path, "", token="")
    (other.work / "token").write_text(f"{FIXED}\n")
    options = ("--url", server_process.url, "--token-file", "token")
    for words in (("chat", "list", "--json", *options), (*options, "chat", "list", "--json")):
        listed = other.run(*words)
        assert listed.returncode == 0, listed.stderr
        assert json.loads(listed.stdout)["data"] == []
    missing = other.run("--url", server_process.url, "--token-file", "missing", "chat", "list")
    assert missing.returncode == 2
    assert b"'missing' can't be read: No such file or directory." in missing.stderr


def test_an_unencrypted_connection_to_another_machine_gives_a_warning_once(server_process: ServedHome, tmp_path: Path) -> None:
    _, error = _failure(tmp_path, f"http://0.0.0.0:{server_process.port}")
    assert error.count("is not encrypted") == 1
    assert "is not encrypted" not in away(tmp_path, server_process.url).run("chat", "list").stderr.decode()
