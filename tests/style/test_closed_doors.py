"""tests/conftest.py gives tests an empty home, a closed network and a sandbox only if one works, shown in a separate session."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PLANTED = """
import os
import socket
from pathlib import Path

import pytest

from moot.guard.sandbox import mechanisms
from moot.types.sandbox import MECHANISMS

mechanisms._problems.update(dict.fromkeys(MECHANISMS, "forbidden"))


def test_home_is_empty():
    assert Path.home().joinpath("..").resolve().name.startswith("homes")
    assert not list(Path.home().iterdir())
    Path.home().joinpath("left-behind").write_text("x")


def test_home_is_empty_again():
    assert not list(Path.home().iterdir())
    assert Path(os.environ["MOOT_HOME"]).is_relative_to(Path.home())
    assert Path(os.environ["XDG_CONFIG_HOME"]).is_relative_to(Path.home())


def test_no_key_is_left():
    assert "ANTHROPIC_API_KEY" not in os.environ
    assert "OPENAI_BASE_URL" not in os.environ


def test_commands_run_without_a_sandbox_where_none_works():
    assert os.environ["MOOT_SANDBOX__ENABLED"] == "false"


def test_loopback_is_open():
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(("localhost", server.getsockname()[1])):
            pass


@pytest.mark.parametrize("reach", [
    lambda: socket.create_connection(("192.0.2.1", 9), timeout=1),
    lambda: socket.create_connection(("2001:db8::1", 9), timeout=1),
    lambda: socket.getaddrinfo("moot.invalid", 80),
    lambda: socket.gethostbyname("moot.invalid"),
    lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 9)),
])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
def test_swallows_the_refusal(reach):
    with pytest.raises(OSError):
        reach()


@pytest.mark.live
def test_needs_keys():
    raise AssertionError("ran without --live")
"""


@pytest.fixture(scope="module")
def report(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    tests = tmp_path_factory.mktemp("planted") / "tests"
    tests.mkdir()
    for file in ("conftest.py", "fork_server.py"):
        shutil.copy(repository / "tests" / file, tests)
    shutil.copy(repository / "pyproject.toml", tests.parent)
    (tests / "test_planted.py").write_text(PLANTED)
    environment = {**os.environ, "ANTHROPIC_API_KEY": "sk-not-real", "OPENAI_BASE_URL": "http://192.0.2.1", "MOOT_SANDBOX__ENABLED": "true"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "tests",
        "-p",
        "no:xdist",
        "-p",
        "no:inline_snapshot",
        "--basetemp",
        str(tests.parent / "base"),
    ]
    ran = subprocess.run(command, cwd=tests.parent, env=environment, capture_output=True, text=True, check=False)
    return ran.stdout


def test_homes_are_fresh_and_keys_are_gone(report: str) -> None:
    assert "10 passed, " in report, report


def test_every_outside_connection_fails_its_test_even_if_the_error_is_caught(report: str) -> None:
    assert report.count("ERROR tests/test_planted.py::test_swallows_the_refusal") == 5, report
    assert "reached for the network: 192.0.2.1:9" in report


def test_live_tests_run_only_on_request(report: str) -> None:
    assert " 1 skipped" in report, report
