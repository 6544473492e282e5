"""The kernel's process: Jupyter's protocol on one side, an engine on the other."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from pathlib import Path
from typing import Any, cast

import anyio
from ipykernel.kernelapp import IPKernelApp
from ipykernel.kernelbase import Kernel
from zmq.asyncio import Socket

from moot import __version__
from moot.errors import Cancelled, MootError
from moot.guard.terminal import clean
from moot.kernel.completion import Completer
from moot.kernel.notebook import Notebook
from moot.library.names import open as open_moot
from moot.types.canonical import JsonObject

_SETTLING = 5.0
"""Maximum number of seconds to wait for a run that is being stopped when the kernel ends."""

log = logging.getLogger("moot.kernel")


class MootKernel(Kernel):
    """A kernel in which each cell is a prompt. It opens moot when the first cell is run or completed."""

    implementation = "moot"
    implementation_version = __version__
    banner = f"moot {__version__}: a cell is a prompt. %help lists the commands."
    language_info = {  # noqa: RUF012  an attribute of ipykernel's base class
        "name": "moot",
        "mimetype": "text/markdown",
        "file_extension": ".md",
        "pygments_lexer": "markdown",
        "codemirror_mode": "markdown",
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._completer: Completer | None = None
        self._service: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[Notebook] | None = None
        self._closing = anyio.Event()
        self._cell: anyio.CancelScope | None = None
        self._main: asyncio.AbstractEventLoop | None = None
        self._idle = anyio.Event()
        self._idle.set()
        self._input: Socket | None = None
        """The socket of the stdin channel, for the event loop."""
        self._can_ask = False
        """True if the frontend of the current cell has an input field."""
        self._suggested: list[str] = []

    @property
    def _untyped(self) -> Any:
        """Return this object for calls of methods that have no types."""
        return self

    def start(self) -> None:
        """Start, and handle the signal of frontends that interrupt the process."""
        super().start()
        self._main = asyncio.get_event_loop()
        self._main.add_signal_handler(signal.SIGINT, self._interrupt)

    def pre_handler_hook(self) -> None:
        """Do nothing. The base class would let an interrupt raise an exception at any point of the event loop."""

    def post_handler_hook(self) -> None:
        """Do nothing, like `pre_handler_hook`."""

    # ── cells ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def do_execute(
        self,
        code: str,
        silent: bool,
        store_history: bool = True,
        user_expressions: Any = None,
        allow_stdin: bool = False,
        *,
        cell_meta: Any = None,
        cell_id: str | None = None,
    ) -> dict[str, Any]:
        """Run a cell. An error is shown as moot's own text, without a traceback."""
        self._can_ask = allow_stdin
        failure: MootError | None = None
        if code.strip() and not silent:
            self._idle = anyio.Event()
            with anyio.CancelScope() as self._cell:
                try:
                    await (await self._opened()).run(code, cell_id or "")
                except MootError as error:
                    failure = error
                except Exception:
                    log.exception("a cell failed")
                    failure = MootError("Something went wrong inside moot. The kernel's log has the details.")
            if self._cell.cancelled_caught:
                failure = Cancelled("Stopped. The output so far is kept.")
            self._cell = None
            self._idle.set()
        if failure is None:
            return {"status": "ok", "execution_count": self.execution_count, "payload": self._payloads(), "user_expressions": {}}
        return {**self._failed(failure), "execution_count": self.execution_count}

    def _payloads(self) -> list[dict[str, Any]]:
        texts, self._suggested = self._suggested, []
        return [{"source": "set_next_input", "text": text, "replace": False} for text in texts]

    def _failed(self, error: MootError) -> dict[str, Any]:
        self._suggested.clear()
        words = clean(error.advice())
        content = {"ename": type(error).__name__, "evalue": words, "traceback": [words]}
        self._untyped.send_response(self.iopub_socket, "error", content)
        return {"status": "error", **content}

    def _interrupt(self) -> None:
        """Stop the cell that is being run."""
        if self._cell is not None:
            self._cell.cancel()

    async def interrupt_request(self, stream: Any, ident: Any, parent: Any) -> None:
        """Stop the cell that is being run. Called in the thread of the control channel."""
        if self._main is not None:
            self._main.call_soon_threadsafe(self._interrupt)
        self._untyped.session.send(stream, "interrupt_reply", {"status": "ok"}, parent, ident=ident)

    # ── moot ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _opened(self) -> Notebook:
        """Return the notebook. Open moot first if necessary. Raise MootError if it can't be opened."""
        if self._service is None or (self._service.done() and not self._closing.is_set()):
            self._ready = asyncio.get_running_loop().create_future()
            self._service = asyncio.create_task(self._serve(self._ready))
        assert self._ready is not None
        return await asyncio.shield(self._ready)

    async def _serve(self, ready: asyncio.Future[Notebook]) -> None:
        """Keep moot open until the kernel is shut down."""
        try:
            async with open_moot() as moot, anyio.create_task_group() as group:
                notebook = Notebook(moot.engine, group, self, notebook_path())
                self._completer = Completer(notebook)
                ready.set_result(notebook)
                await self._closing.wait()
                group.cancel_scope.cancel()
        except MootError as error:
            if not ready.done():
                ready.set_exception(error)
            else:
                log.error("moot was closed: %s", error.advice())

    async def do_shutdown(self, restart: bool) -> dict[str, Any]:
        """Stop the cell that is being run, and close moot. Called in the thread of the control channel."""
        if self._main is not None and self._main is not asyncio.get_running_loop():
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._close(), self._main))
        else:
            await self._close()
        return {"status": "ok", "restart": restart}

    async def _close(self) -> None:
        self._interrupt()
        with anyio.move_on_after(_SETTLING):
            await self._idle.wait()
        self._closing.set()
        if self._service is not None:
            await asyncio.wait([self._service], timeout=_SETTLING)

    # ── the frontend ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def show(self, bundle: JsonObject, id: str = "", *, update: bool = False) -> None:
        """Add an output below the cell, or replace the output with this id."""
        content = {"data": bundle, "metadata": {}, "transient": {"display_id": id} if id else {}}
        self._untyped.send_response(self.iopub_socket, "update_display_data" if update else "display_data", content)

    def suggest(self, text: str) -> None:
        """Add a cell with this text below the current one, when the current one has ended."""
        self._suggested.append(text)

    async def ask(self, prompt: str) -> str | None:
        """Let the person type a line. Return None if the frontend has no input field."""
        if not self._can_ask:
            return None
        if self._input is None:
            self._input = cast("Any", Socket).shadow(self.stdin_socket.underlying)
        socket: Any = self._input
        while await socket.poll(0):  # an answer to a question that was interrupted
            await socket.recv_multipart()
        kernel, content = self._untyped, {"prompt": prompt, "password": False}
        kernel.session.send(kernel.stdin_socket, "input_request", content, kernel.get_parent("shell"), ident=kernel._parent_ident["shell"])
        while True:
            _, frames = kernel.session.feed_identities(await socket.recv_multipart())
            try:
                return str(kernel.session.deserialize(frames)["content"]["value"])
            except (KeyError, TypeError, ValueError):  # not an answer
                log.warning("the frontend sent an invalid answer")

    # ── completion ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def do_complete(self, code: str, cursor_pos: int) -> dict[str, Any]:
        """Complete commands, their arguments, and files after `@`."""
        matches, start = await self._completions(code[:cursor_pos])
        return {
            "status": "ok",
            "matches": [text for text, _ in matches],
            "cursor_start": cursor_pos - start,
            "cursor_end": cursor_pos,
            "metadata": {
                "_jupyter_types_experimental": [
                    {"text": text, "type": about, "start": cursor_pos - start, "end": cursor_pos} for text, about in matches
                ]
            },
        }

    async def _completions(self, text: str) -> tuple[list[tuple[str, str]], int]:
        try:
            await (await self._opened()).open()
            return await self._completer.complete(text) if self._completer is not None else ([], 0)
        except MootError as error:
            log.warning("could not complete: %s", error.advice())
            return [], 0

    async def do_inspect(self, code: str, cursor_pos: int, detail_level: int = 0, omit_sections: Any = ()) -> dict[str, Any]:
        """Describe the command at the cursor."""
        words = ""
        try:
            await (await self._opened()).open()
            words = await self._completer.describe(code, cursor_pos) if self._completer is not None else ""
        except MootError as error:
            log.warning("could not describe a command: %s", error.advice())
        return {"status": "ok", "found": bool(words), "data": {"text/plain": words} if words else {}, "metadata": {}}

    async def do_is_complete(self, code: str) -> dict[str, Any]:
        """Return `incomplete` for a prompt that ends with a backslash, so that a console lets the person continue on the next line."""
        return {"status": "incomplete", "indent": ""} if code.endswith("\\") else {"status": "complete"}


def notebook_path() -> Path | None:
    """Return the path of the notebook, which Jupyter's server passes to its kernels. None = unknown."""
    name = os.environ.get("JPY_SESSION_NAME", "")
    return Path(name).absolute() if name.endswith((".ipynb", ".md")) else None


class MootKernelApp(IPKernelApp):
    """The application of the kernel, which starts faster than that of a Python kernel."""

    kernel_class = MootKernel  # pyright: ignore[reportAssignmentType]  a trait of ipykernel

    def init_pdb(self) -> None:
        """Do nothing, because the kernel runs no Python code."""


def main() -> None:
    """Run the kernel until Jupyter shuts it down. The command line contains the connection file."""
    logging.basicConfig(stream=sys.__stderr__, level=logging.WARNING, format="moot: %(message)s")
    MootKernelApp.launch_instance()
