"""`moot serve`, `moot web` and `moot tokens` as processes."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.cli_process import MootProcess, make
from e2e.server.conftest import FIXED, ServedHome

pytestmark = pytest.mark.slow


@pytest.fixture
def moot(tmp_path: Path) -> Iterator[MootProcess]:
    process = make(tmp_path)
    yield process
    process.close()


def ask(url: str, *, token: str = FIXED, data: dict[str, Any] | None = None, headers: dict[str, str] | None = None) -> tuple[int, Any]:
    """Send a request and return the status and JSON of the response."""
    given = {**({"authorization": f"Bearer {token}"} if token else {}), "content-type": "application/json", **(headers or {})}
    request = urllib.request.Request(url, None if data is None else json.dumps(data).encode(), given)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"null")


def holds(home: Path, secret: str) -> bool:
    """Return True if any file other than the user's configuration contains the text."""
    return any(secret.encode() in path.read_bytes() for path in home.rglob("*") if path.is_file())


def eventually(claim: Callable[[], bool]) -> bool:
    """Return True if the condition becomes true, with enough time for a busy machine."""
    until = time.monotonic() + 60
    while not (came := claim()) and time.monotonic() < until:
        time.sleep(0.1)
    return came


def test_the_url_is_printed_to_stdout_and_a_signal_stops_the_server(server_process: ServedHome) -> None:
    assert ask(f"{server_process.url}/healthz", token="") == (200, {"status": "ok"})
    assert ask(f"{server_process.url}/api/session")[1]["token_id"] == "environment"
    said = server_process.stop(signal.SIGINT)
    assert server_process.process is not None and server_process.process.returncode == 0
    assert f"moot: serving at {server_process.url}" in said and "moot: stopped" in said
    assert FIXED not in said


def test_a_port_in_use_is_reported_with_a_fix(moot: MootProcess) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        ended = moot.run("serve", "--port", str(port))
    assert ended.returncode == 2
    assert f"Port {port} on 127.0.0.1 is already in use" in ended.stderr.decode() and "--port 0" in ended.stderr.decode()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_listening_on_other_interfaces_requires_a_flag(moot: MootProcess, host: str) -> None:
    ended = moot.run("serve", "--host", host, "--port", "0")
    assert ended.returncode == 2 and "--allow-remote" in ended.stderr.decode()


@pytest.mark.parametrize("host", ["nohost.invalid", "a..b"])
def test_a_host_that_does_not_resolve_is_reported(moot: MootProcess, host: str) -> None:
    ended = moot.run("serve", "--host", host, "--port", "0")
    assert ended.returncode == 2 and f"The host '{host}' cannot be resolved." in ended.stderr.decode()
    assert "other machines" not in ended.stderr.decode()


def test_listening_on_other_interfaces_requires_a_token(moot: MootProcess) -> None:
    ended = moot.run("serve", "--host", "0.0.0.0", "--port", "0", "--allow-remote")
    assert ended.returncode == 2 and "moot tokens create" in ended.stderr.decode()
    moot.more["MOOT_TOKEN"] = "short"
    ended = moot.run("serve", "--host", "0.0.0.0", "--port", "0", "--allow-remote")
    assert ended.returncode == 2 and "must have at least 24 characters" in ended.stderr.decode()


def test_a_home_has_one_server_and_a_dead_one_does_not_count(server_process: ServedHome) -> None:
    again = server_process.moot.run("serve", "--port", "0")
    assert again.returncode == 7 and server_process.url in again.stderr.decode()
    server_process.stop(signal.SIGKILL)
    server_process.start()  # the file of the killed server still exists
    assert ask(f"{server_process.url}/readyz", token="")[0] == 200


def test_the_servers_files_are_readable_by_the_owner_only(server_process: ServedHome) -> None:
    server_process.stop()
    previous = os.umask(0)
    try:
        server_process.start()
    finally:
        os.umask(previous)
    file = server_process.moot.home / "state" / "server.lock"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not holds(server_process.moot.home, FIXED)


def test_a_token_created_in_the_terminal_works_on_a_running_server_until_it_is_revoked(server_process: ServedHome) -> None:
    moot, url = server_process.moot, f"{server_process.url}/api/session"
    made = json.loads(moot.run("tokens", "create", "laptop", "--scopes", "read", "--user", "mara", "--json").stdout)
    assert ask(url, token=made["secret"])[1] == {
        "token_id": made["id"],
        "owner": made["owner"],
        "scopes": ["read"],
        "transcribes": False,
        "searches_web": False,
        "keys": {},
    }
    assert made["user"] == "mara" and made["owner"] != "local"
    listed = json.loads(moot.run("tokens", "list", "--json").stdout)["data"]
    assert [token["name"] for token in listed] == ["laptop"] and "secret" not in listed[0]
    assert moot.run("tokens", "revoke", "laptop").returncode == 0
    assert eventually(lambda: ask(url, token=made["secret"])[0] == 401)
    assert json.loads(moot.run("tokens", "list", "--json").stdout)["data"] == []
    assert json.loads(moot.run("tokens", "list", "--all", "--json").stdout)["data"][0]["revoked_at"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("create", "x", "--scopes", "all"), "Unknown scope 'all'"),
        (("create", "x", "--expires", "soon"), "Invalid value 'soon' for '--expires'"),
        (("revoke", "nobody"), "No token matches 'nobody'"),
    ],
)
def test_invalid_token_arguments_are_explained(moot: MootProcess, arguments: tuple[str, ...], said: str) -> None:
    ended = moot.run("tokens", *arguments)
    assert ended.returncode == 2 and said in ended.stderr.decode()


def test_the_page_is_opened_with_a_login_code_that_works_once(server_process: ServedHome) -> None:
    ended = server_process.moot.run("web", "--no-open")
    (line,) = ended.stdout.decode().splitlines()
    url, _, code = line.partition("/#code=")
    assert url == server_process.url and len(code) >= 32
    assert ask(f"{url}/api/login", token="", data={"code": code})[0] == 200
    assert ask(f"{url}/api/login", token="", data={"code": code})[0] == 401
    assert not holds(server_process.moot.home, code)


def test_the_browser_is_opened_with_the_url(server_process: ServedHome, tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf "%s" "$1" > {tmp_path}/opened\n')
    browser.chmod(0o755)
    server_process.moot.more["BROWSER"] = str(browser)
    ended = server_process.moot.run("web")
    assert ended.returncode == 0 and ended.stdout == b""
    assert (tmp_path / "opened").read_text().startswith(f"{server_process.url}/#code=")
    assert "#code" not in ended.stderr.decode()


def test_the_page_starts_a_server_if_none_is_running(moot: MootProcess) -> None:
    process = moot.start("web", "--port", "0", "--json")
    assert process.stdout is not None
    told = json.loads(process.stdout.readline())
    url, _, code = str(told["url"]).partition("/#code=")
    assert told["pid"] == process.pid
    assert ask(f"{url}/api/login", token="", data={"code": code})[0] == 200
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0


def test_a_changed_configuration_is_applied_without_a_restart(serve_home: Callable[..., ServedHome]) -> None:
    served = serve_home().start()
    file = served.moot.home / "config.yaml"
    file.write_text(file.read_text() + "limits: {steps: 7}\n")
    log = served.moot.home / "state" / "logs" / "moot.jsonl"
    assert eventually(lambda: log.exists() and "configuration reloaded" in log.read_text())
    file.write_text("limits: {steps: -7}\n")
    assert eventually(lambda: "keeping the previous one" in log.read_text())
    assert ask(f"{served.url}/readyz", token="")[0] == 200
