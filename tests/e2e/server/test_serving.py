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

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def moot(tmp_path: Path, cache: Path) -> Iterator[MootProcess]:
    process = make(tmp_path, cache)
    yield process
    process.close()


def ask(url: str, *, token: str = FIXED, data: dict[str, Any] | None = None, headers: dict[str, str] | None = None) -> tuple[int, Any]:
    """Status and JSON of an answer."""
    given = {**({"authorization": f"Bearer {token}"} if token else {}), "content-type": "application/json", **(headers or {})}
    request = urllib.request.Request(url, None if data is None else json.dumps(data).encode(), given)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"null")


def holds(home: Path, secret: str) -> bool:
    """Whether any file but the person's own configuration has it."""
    return any(secret.encode() in path.read_bytes() for path in home.rglob("*") if path.is_file())


def eventually(claim: Callable[[], bool]) -> bool:
    """Whether it comes true within a time that even a busy machine keeps."""
    until = time.monotonic() + 30
    while not (came := claim()) and time.monotonic() < until:
        time.sleep(0.1)
    return came


def test_it_says_where_on_stdout_and_stops_at_a_signal(server_process: ServedHome) -> None:
    assert ask(f"{server_process.url}/healthz", token="") == (200, {"status": "ok"})
    assert ask(f"{server_process.url}/api/session")[1]["token_id"] == "environment"
    said = server_process.stop(signal.SIGINT)
    assert server_process.process is not None and server_process.process.returncode == 0
    assert f"moot: serving at {server_process.url}" in said and "moot: stopped" in said
    assert FIXED not in said


def test_a_port_that_is_taken_is_named_with_the_way_out(moot: MootProcess) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        ended = moot.run("serve", "--port", str(port))
    assert ended.returncode == 2
    assert f"the port {port} of 127.0.0.1 is taken" in ended.stderr.decode() and "--port 0" in ended.stderr.decode()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_other_machines_are_kept_out_unless_that_is_wanted(moot: MootProcess, host: str) -> None:
    ended = moot.run("serve", "--host", host, "--port", "0")
    assert ended.returncode == 2 and "--allow-remote" in ended.stderr.decode()


def test_other_machines_are_kept_out_where_nobody_could_show_a_token(moot: MootProcess) -> None:
    ended = moot.run("serve", "--host", "0.0.0.0", "--port", "0", "--allow-remote")
    assert ended.returncode == 2 and "moot tokens create" in ended.stderr.decode()
    moot.more["MOOT_TOKEN"] = "short"
    ended = moot.run("serve", "--host", "0.0.0.0", "--port", "0", "--allow-remote")
    assert ended.returncode == 2 and "too short" in ended.stderr.decode()


def test_a_home_is_served_once_and_a_dead_server_does_not_count(server_process: ServedHome) -> None:
    again = server_process.moot.run("serve", "--port", "0")
    assert again.returncode == 7 and server_process.url in again.stderr.decode()
    server_process.stop(signal.SIGKILL)
    server_process.start()  # the file of the killed one lies there still
    assert ask(f"{server_process.url}/readyz", token="")[0] == 200


def test_what_a_server_leaves_in_the_home_is_for_its_owner_alone(server_process: ServedHome) -> None:
    server_process.stop()
    previous = os.umask(0)
    try:
        server_process.start()
    finally:
        os.umask(previous)
    file = server_process.moot.home / "state" / "server.lock"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not holds(server_process.moot.home, FIXED)


def test_a_token_of_the_command_line_opens_a_running_server_until_it_is_revoked(server_process: ServedHome) -> None:
    moot, url = server_process.moot, f"{server_process.url}/api/session"
    made = json.loads(moot.run("tokens", "create", "laptop", "--scopes", "read", "--user", "mara", "--json").stdout)
    assert ask(url, token=made["secret"])[1] == {"token_id": made["id"], "owner": made["owner"], "scopes": ["read"]}
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
        (("create", "x", "--expires", "soon"), "'soon' is no time"),
        (("revoke", "nobody"), "No token matches 'nobody'"),
    ],
)
def test_a_mistake_with_tokens_is_explained(moot: MootProcess, arguments: tuple[str, ...], said: str) -> None:
    ended = moot.run("tokens", *arguments)
    assert ended.returncode == 2 and said in ended.stderr.decode()


def test_the_page_is_opened_with_a_code_that_signs_in_once(server_process: ServedHome) -> None:
    ended = server_process.moot.run("web", "--no-open")
    (line,) = ended.stdout.decode().splitlines()
    url, _, code = line.partition("/#code=")
    assert url == server_process.url and len(code) >= 32
    assert ask(f"{url}/api/login", token="", data={"code": code})[0] == 200
    assert ask(f"{url}/api/login", token="", data={"code": code})[0] == 401
    assert not holds(server_process.moot.home, code)


def test_the_browser_gets_the_address(server_process: ServedHome, tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf "%s" "$1" > {tmp_path}/opened\n')
    browser.chmod(0o755)
    server_process.moot.more["BROWSER"] = str(browser)
    ended = server_process.moot.run("web")
    assert ended.returncode == 0 and ended.stdout == b""
    assert (tmp_path / "opened").read_text().startswith(f"{server_process.url}/#code=")
    assert "#code" not in ended.stderr.decode()


def test_the_page_brings_its_own_server_where_none_runs(moot: MootProcess) -> None:
    process = moot.start("web", "--port", "0", "--json")
    assert process.stdout is not None
    told = json.loads(process.stdout.readline())
    url, _, code = str(told["url"]).partition("/#code=")
    assert told["pid"] == process.pid
    assert ask(f"{url}/api/login", token="", data={"code": code})[0] == 200
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0


def test_a_changed_configuration_holds_without_a_restart(serve_home: Callable[..., ServedHome]) -> None:
    served = serve_home().start()
    file = served.moot.home / "config.yaml"
    file.write_text(file.read_text() + "limits: {steps: 7}\n")
    log = served.moot.home / "state" / "logs" / "moot.jsonl"
    assert eventually(lambda: log.exists() and "was read again" in log.read_text())
    file.write_text("limits: {steps: -7}\n")
    assert eventually(lambda: "the configuration from before stays in force" in log.read_text())
    assert ask(f"{served.url}/readyz", token="")[0] == 200
