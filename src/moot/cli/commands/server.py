"""The commands `moot serve` and `moot web`."""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

import anyio
from anyio import to_thread

from moot.cli.arguments.signatures import AsJson, Parameter
from moot.cli.console.lines import write_notes
from moot.cli.console.output import Output
from moot.cli.context.configuration import here
from moot.cli.context.output import Out
from moot.config.home import WORKER
from moot.config.loader import Loader
from moot.engine.locks import ServerInfo, find_server
from moot.errors import UsageError
from moot.guard.tokens import CODE_SECONDS, digest, new_code
from moot.plugins import FACES
from moot.store import SqliteStore, open_store
from moot.types.canonical import Json
from moot.types.ids import SystemClock
from moot.types.token import LOCAL_USER


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Options for the server's address."""

    host: Annotated[
        str | None, Parameter(metavar="ADDRESS", help="Address to listen on. Defaults to the configured address, or 127.0.0.1.")
    ] = None
    port: Annotated[
        int | None, Parameter(minimum=0, maximum=65535, help="Port to listen on; 0 selects a free port. Defaults to the configured port.")
    ] = None
    allow_remote: Annotated[bool, Parameter(help="Allow listening on an address that other machines can reach. See docs/server.md.")] = (
        False
    )


_ANYWHERE = Where()

Workers = Annotated[
    int | None,
    Parameter(
        minimum=1, maximum=64, metavar="NUMBER", help="Number of processes that share the work. Defaults to the configured number, or 1."
    ),
]

NoOpen = Annotated[bool, Parameter(name="--no-open", help="Print the address without opening a browser.")]


async def serve(*, where: Where = _ANYWHERE, workers: Workers = None, json: AsJson = False, output: Out) -> None:
    """Serve the web page and the HTTP API until stopped."""
    await _run(_loaded(where, output, workers), where, output, partial(_say, output, json))


async def web(*, where: Where = _ANYWHERE, no_open: NoOpen = False, json: AsJson = False, output: Out) -> None:
    """Open the web page of the running server. Start a server if none is running."""
    loader = _loaded(where, output)
    settings = loader.current.settings
    # a text browser would take over the terminal
    has_browser = sys.platform != "linux" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
    opens = not no_open and not json and has_browser
    if _is_worker() or (running := find_server(settings.home)) is None:
        await _run(loader, where, output, partial(_show, output, json, opens))
        return
    if where != _ANYWHERE:
        output.say(f"moot: a server is already running at {running.url}", "yellow")
    async with await open_store(settings) as store:
        await _show(output, json, opens, replace(running, code=partial(_code, store)))


def _loaded(where: Where, output: Output, workers: int | None = None) -> Loader:
    options: dict[str, Json] = {"server.host": where.host, "server.port": where.port, "server.workers": workers}
    flags = {key: value for key, value in options.items() if value is not None}
    loader = Loader(environ=os.environ, flags=flags, directory=here())
    output.hide(_with_token(loader.current.secrets))
    if not _is_worker():
        write_notes(output, loader.current.notes)
    return loader


def _is_worker() -> bool:
    """Return True if this process was started by a server with several workers, which reports to the user."""
    return WORKER in os.environ


def _with_token(secrets: Sequence[str]) -> list[str]:
    return [*secrets, *filter(None, [os.environ.get("MOOT_TOKEN")])]


async def _run(loader: Loader, where: Where, output: Output, ready: Callable[[ServerInfo], Awaitable[None]]) -> None:
    host = loader.current.settings.server.host
    try:
        await anyio.getaddrinfo(host, None)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"The host {host!r} cannot be resolved.", fix="Use an IP address or a host name of this machine.") from error

    def hide(secrets: Sequence[str]) -> None:
        output.hide(_with_token(secrets))

    is_worker = _is_worker()
    left: int = await FACES.load("server")(
        loader,
        fixed=os.environ.get("MOOT_TOKEN", ""),
        remote=where.allow_remote,
        ready=ready,
        hide=hide,
        command=(sys.executable, "-P", "-m", "moot", *sys.argv[1:]),  # -P: don't import from the current directory
    )
    if is_worker:
        return
    runs = f"; {left} {'run continues' if left == 1 else 'runs continue'} when the server starts again" if left else ""
    output.say(f"moot: stopped{runs}", "dim")


async def _say(output: Output, as_json: bool, place: ServerInfo) -> None:
    if as_json:
        output.json({"url": place.url, "pid": place.pid})
    output.say(f"moot: serving at {place.url}; open it with 'moot web', stop it with Ctrl+C")
    if place.follows:
        output.say("moot: importing from the agents on this machine (setting imports.watch)", "dim")
    _say_missing(output, place)


async def _show(output: Output, as_json: bool, opens: bool, place: ServerInfo) -> None:
    """Open the page or print its address. The code in the address can be used only once, to sign in one browser."""
    assert place.code is not None
    url = f"{place.url}/#code={await place.code()}"
    mine = place.pid == os.getpid()
    if as_json:
        output.json({"url": url, "pid": place.pid})
    elif opens and await to_thread.run_sync(webbrowser.open, url):
        output.say(f"moot: opened {place.url} in your browser{'; stop the server with Ctrl+C' if mine else ''}")
    else:
        output.say(f"moot: open this link in a browser on this machine within {CODE_SECONDS} seconds; it works once", "dim")
        output.line(url)
        if mine:
            output.say("moot: run 'moot web' again for a new link; stop the server with Ctrl+C", "dim")
    _say_missing(output, place)


def _say_missing(output: Output, place: ServerInfo) -> None:
    if not place.built:
        output.say("moot: the web page has not been built; run 'make web' in the checkout", "yellow")


async def _code(store: SqliteStore) -> str:
    code = new_code()
    until = (SystemClock().now() // 1000) + CODE_SECONDS * 1000
    await store.tokens.put_code(digest(code), owner=LOCAL_USER, expires_at=until)
    return code
