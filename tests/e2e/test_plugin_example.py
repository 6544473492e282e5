"""The example plugin package, installed like any other: the real process uses its plugins, and every suite covers them."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import plugin_site
from e2e import cli_process

pytestmark = pytest.mark.slow

CONFIG = """
providers: {rules: {rules: {"(?i)hello": "Good morning."}}}
agents:
  shouter: {agent_type: pipe, options: {command: [tr, a-z, A-Z]}}
  lost: {agent_type: telepathy}
  plain: {model: rules@rules}
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return plugin_site.install(tmp_path / "site")


@pytest.fixture
def moot(tmp_path: Path, site: Path) -> Iterator[cli_process.MootProcess]:
    process = cli_process.make(tmp_path, CONFIG)
    process.more["PYTHONPATH"] = str(site)
    yield process
    process.close()


def test_plugins_are_listed_with_their_package_and_used(moot: cli_process.MootProcess) -> None:
    listed = {tool["name"]: tool["package"] for tool in json.loads(moot.run("tools", "list", "--json").stdout)["data"]}
    assert listed["convert_units"] == "moot-example 1.0.0" and listed["read_file"] == ""
    assert moot.run("run", "-m", "rules@rules", "hello").stdout == b"Good morning.\n"
    assert moot.run("run", "-a", "shouter", "hello").stdout == b"HELLO\n"
    lost = moot.run("run", "-a", "lost", "hello")
    assert lost.returncode == 2 and b"'telepathy'. Known types: " in lost.stderr and b"moot, pipe" in lost.stderr
    doctor = json.loads(moot.run("doctor", "--json").stdout)["data"]
    [found] = [item for item in doctor if item["name"] == "plugins"]
    assert found["state"] == "ok" and "moot.agents: pipe (moot-example 1.0.0)" in found["detail"]


def test_a_plugin_channel_is_served_until_it_is_stopped(moot: cli_process.MootProcess, tmp_path: Path) -> None:
    place = tmp_path / "lines.sock"
    with (moot.home / "config.yaml").open("a") as file:
        file.write(f"channels: {{lines: {{path: {json.dumps(str(place))}, agent: plain}}}}\n")
    serving = moot.start("channels", "serve", "lines")
    end = time.monotonic() + 60
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(20)
        while line.connect_ex(str(place)) != 0:
            assert time.monotonic() < end and serving.poll() is None
            time.sleep(0.05)
        line.sendall(b"ann\nhello\n")
        heard = b""
        while not heard.endswith(b"\n.\n"):
            heard += line.recv(4096)
    assert b"Good morning.\n" in heard
    serving.send_signal(signal.SIGINT)
    _, said = serving.communicate(timeout=60)
    assert serving.returncode == 0 and b"serving lines" in said and not place.exists()
    (kept,) = json.loads(moot.run("chat", "list", "--json").stdout)["data"]
    assert kept["message_count"] == 2
    lost = moot.run("channels", "serve", "nowhere")
    assert lost.returncode == 2 and b"nowhere" in lost.stderr


BAD = {
    "moot.tools": {
        "absent": "nowhere_at_all:Thing",
        "crooked": "bad_plugin:Crooked",
        "bare": "bad_plugin:Bare",
        "shell": "bad_plugin:Bare",
    },
    "moot.providers": {"bursting": "bad_plugin:Bursting"},
    "moot.agents": {"silent": "bad_plugin:Bare"},
}
BAD_CODE = """
class Bare: ...
class Crooked:
    name = "straight"
    description = arguments = concurrent = idempotent = effects = hidden = beta = badge = examples = run = doing = done = None
class Bursting:
    def __init__(self, settings): raise RuntimeError("boom")
"""


def test_broken_plugins_are_reported_with_their_package_and_do_not_stop_others(moot: cli_process.MootProcess, site: Path) -> None:
    metadata = site / "bad_plugin-0.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: bad-plugin\nVersion: 0.1\n")
    groups = [f"[{group}]\n" + "".join(f"{name} = {path}\n" for name, path in names.items()) for group, names in BAD.items()]
    (metadata / "entry_points.txt").write_text("\n".join(groups))
    (site / "bad_plugin.py").write_text(BAD_CODE)
    listed = {tool["name"]: tool for tool in json.loads(moot.run("tools", "list", "--json").stdout)["data"]}
    assert [name for name, tool in listed.items() if tool.get("error")] == ["absent", "bare", "crooked"]
    assert all(listed[name]["package"] == "bad-plugin 0.1" for name in ("absent", "bare", "crooked"))
    assert "has the wrong name 'straight'" in listed["crooked"]["error"] and listed["shell"]["package"] == ""
    answered = moot.run("run", "-m", "demo@demo", "hello")
    assert answered.returncode == 0 and b"You said: hello" in answered.stdout
    for arguments, words in (
        (("run", "-m", "x@bursting", "hello"), b"from the package bad-plugin 0.1 could not be created: RuntimeError('boom')"),
        (("run", "-m", "demo@demo", "--tools", "bare", "hello"), b"from the package bad-plugin 0.1 lacks required attributes"),
    ):
        said = moot.run(*arguments)
        assert said.returncode == 2 and words in said.stderr and b"Traceback" not in said.stderr, (arguments, said.stderr)
    assert moot.run("providers", "list").returncode == 0
    doctor = moot.run("doctor", "--json")
    [found] = [item for item in json.loads(doctor.stdout)["data"] if item["name"] == "plugins"]
    assert doctor.returncode == 1 and found["state"] == "broken"
    assert all(
        word in found["detail"] for word in ("absent", "bare", "crooked", "bursting", "silent", "'shell' of bad-plugin 0.1 is ignored")
    )


SUITES = ("test_agents.py", "test_channels.py", "test_formats.py", "test_providers.py", "test_tools.py")


@pytest.mark.slow
def test_every_conformance_suite_and_the_packages_own_tests_pass(site: Path, repository: Path) -> None:
    names = "pipe or lines or role-jsonl or rules or convert_units or test_plugin"
    places = [*(str(repository / "tests" / "conformance" / name) for name in SUITES), str(plugin_site.EXAMPLE / "tests")]
    command = [sys.executable, "-m", "pytest", "-rA", "--rootdir", str(repository), "-k", names, *places]
    said = subprocess.run(command, cwd=repository, env=plugin_site.environ(site), capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stdout[-4000:]
    passed = [line.partition("[")[2] for line in said.stdout.splitlines() if line.startswith("PASSED ")]
    assert len(passed) >= 45, said.stdout[-2000:]
    assert all(any(name in line for line in passed) for name in ("pipe", "lines", "role-jsonl", "rules", "convert_units"))


@pytest.mark.slow
def test_a_strict_type_checker_accepts_the_package(tmp_path: Path) -> None:
    (tmp_path / "moot_example").symlink_to(plugin_site.EXAMPLE / "src" / "moot_example")
    (tmp_path / "pyrightconfig.json").write_text('{"strict": ["."], "pythonVersion": "3.11"}')
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "-p", str(tmp_path)]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stdout
