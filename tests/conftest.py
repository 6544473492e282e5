"""Shared by all tests: an empty home, a closed network, no keys, one event loop."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import re
import signal
import socket
import sys
import time
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import fork_server
from moot.guard.sandbox.mechanisms import find
from moot.types.sandbox import MECHANISMS

ROOT = Path(__file__).resolve().parents[1]
SHOTS = ROOT / "build" / "screenshots"
_BEGUN = time.time()

# a shell that starts the tests in the background ignores these signals, and every tested program would inherit that
for number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

# else every process that the tests start would compile moot again
sys.dont_write_bytecode = False

# numpy reads it at import: on two cores its threads only wait for each other
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

settings.register_profile("default", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("default"), derandomize=True, print_blob=True)
settings.register_profile("thorough", settings.get_profile("default"), max_examples=3000)
settings.load_profile("ci" if os.environ.get("CI") else "default")


def _plainly(record: logging.LogRecord) -> bool:
    """Print an error of asyncio without the carets of its traceback, for which Python 3.11 parses source lines.

    asyncio reports an abandoned task during garbage collection, which may happen inside another parse; before 3.11.8 that parse
    fails with `SystemError: AST constructor recursion depth mismatch` (github.com/python/cpython/issues/106905).
    """
    if record.exc_info and (error := record.exc_info[1]) is not None:
        trace, places = error.__traceback__, ""
        while trace is not None:
            places += f"\n  {trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
            trace = trace.tb_next
        record.exc_text = f"{error!r}{places}"
    return True


logging.getLogger("asyncio").addFilter(_plainly)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--live", action="store_true", help="run the tests that need keys and the network")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--live"):
        return
    for item in items:
        if item.get_closest_marker("live"):
            item.add_marker(pytest.mark.skip(reason="needs keys and --live"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if taken := [shot for shot in SHOTS.glob("*.png") if shot.stat().st_mtime >= _BEGUN]:
        terminalreporter.write_line(f"{len(taken)} pictures of the page, to be looked at: {SHOTS}")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def _fork_server() -> Iterator[None]:
    yield
    fork_server.stop()


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return ROOT


# ── home, keys, keyring ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

_SECRET = re.compile(
    r"(?i)(_|^)(api_?key|token|secret|password|credentials?)$|^(aws|azure|google|hf|anthropic|openai|ollama|moot)_|_(proxy|base_url)$|color"
)
_KEPT = re.compile(r"^(PIP_|UV_|NPM_|NODE_)|^MOOT_SANDBOX__ENABLED$")
_FOLDERS = {
    "HOME": "",
    "MOOT_HOME": "moot",
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
    "XDG_CACHE_HOME": ".cache",
    "XDG_RUNTIME_DIR": ".run",
}


def _close_home(home: Path, patch: pytest.MonkeyPatch) -> None:
    home.mkdir()
    for name in [name for name in os.environ if _SECRET.search(name) and not _KEPT.match(name)]:
        patch.delenv(name)
    for name, below in _FOLDERS.items():
        patch.setenv(name, str(home / below))
    patch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")


@pytest.fixture(scope="session", autouse=True)
def _closed_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Iterator[Path]]:
    """For fixtures with a wider scope than one test; yield the homes of the tests, one after the other."""
    base = tmp_path_factory.mktemp("homes")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MOOT_SANDBOX__ENABLED", raising=False)  # the caller's
        if not asyncio.run(find(MECHANISMS)).is_complete:  # commands would ask in mode auto
            patch.setenv("MOOT_SANDBOX__ENABLED", "false")
        _close_home(base / "session", patch)
        yield (base / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def _closed_home(_closed_session: Iterator[Path]) -> Iterator[Path]:
    """An empty home for each test: HOME, MOOT_HOME and XDG_* point into it; keys and tokens are removed from the environment."""
    with pytest.MonkeyPatch.context() as patch:
        home = next(_closed_session)
        _close_home(home, patch)
        yield home


# ── network ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

_open_to_all = False
_attempts: list[str] = []


def _is_loopback(host: object) -> bool:
    name = host.decode() if isinstance(host, bytes) else str(host or "localhost")
    if name == "localhost" or name.endswith(".localhost") or name == socket.gethostname():
        return True
    try:
        address = ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or getattr(address, "ipv4_mapped", None) == ip_address("127.0.0.1")


def _is_number(host: object) -> bool:
    try:
        ip_address(str(host))
    except ValueError:
        return False
    return True


def _target(event: str, arguments: tuple[object, ...]) -> str | None:
    """Return the outside address that an audited call wants to reach, or None if it stays on this machine."""
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        sock, address = arguments
        if isinstance(sock, socket.socket) and sock.family in (socket.AF_INET, socket.AF_INET6) and isinstance(address, tuple):
            return None if _is_loopback(address[0]) else f"{address[0]}:{address[1]}"
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        host = arguments[0]
        return None if _is_loopback(host) or _is_number(host) else f"the name {host!r}"
    return None


def _guard(event: str, arguments: tuple[object, ...]) -> None:
    if _open_to_all or not event.startswith("socket."):
        return
    target = _target(event, arguments)
    if target is not None:
        _attempts.append(target)
        raise ConnectionRefusedError(f"the network is closed in tests: {target}")


sys.addaudithook(_guard)


@pytest.fixture(autouse=True)
def _closed_network(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that tried to reach another machine, even if the code under test caught the refusal."""
    global _open_to_all
    _open_to_all = request.node.get_closest_marker("live") is not None
    _attempts.clear()
    yield
    _open_to_all = False
    if _attempts:
        pytest.fail(f"reached for the network: {', '.join(_attempts)}")
