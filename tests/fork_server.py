"""Start `moot` as a real process by forking a process that has already imported it.

A test that drives the command line spends most of its time on imports. The fork server imports everything once per test worker. Each
process it forks is a process like any other: its own id, streams, working directory, environment, signals and exit code. What it can't show
is what a command imports and how long it takes to start; tests of that start a new interpreter (`EXECUTED` below).
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import pexpect
import ptyprocess

EXECUTED = ("PYTHON", "LANG", "LC_", "LD_")
"""Beginnings of the variables that an interpreter reads only at its start: a process that gets one is executed, not forked."""
_HEADER = struct.Struct("!I")


class ForkedProcess:
    """The part of `subprocess.Popen` that the tests use, for a forked process."""

    def __init__(self, connection: socket.socket, pid: int, pipes: tuple[IO[bytes] | None, IO[bytes] | None, IO[bytes] | None]) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdin, self.stdout, self.stderr = pipes
        self._connection = connection

    def poll(self) -> int | None:
        """Return the exit code, minus the signal if one ended the process, or None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            ready, _, _ = select.select([self._connection], [], [], timeout)
            if not ready:
                raise subprocess.TimeoutExpired("moot", timeout or 0)
            self.returncode = json.loads(_receive(self._connection)[0])["code"]
            self._connection.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def communicate(self, input: bytes | None = None, timeout: float | None = None) -> tuple[bytes, bytes]:
        """Write input, read both streams to their ends and wait. Raise subprocess.TimeoutExpired like `Popen.communicate`."""
        # Popen's own implementation needs only the attributes that a forked process has as well
        process: Any = subprocess.Popen.__new__(subprocess.Popen)
        process.__dict__.update(
            args="moot",
            pid=self.pid,
            returncode=self.returncode,
            stdin=self.stdin,
            stdout=self.stdout,
            stderr=self.stderr,
            universal_newlines=None,
            text_mode=None,
            encoding=None,
            errors=None,
            _communication_started=False,
            _input=None,
            _waitpid_lock=None,
        )
        process._child_created = False  # its finalizer has nothing to wait for
        process.wait = lambda timeout=None: self.wait(timeout)
        process.poll = self.poll
        output, errors = process.communicate(input, timeout)
        return output or b"", errors or b""


class ForkServer:
    """The process that forks, started on first use."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="moot-fork-")
        self.address = str(Path(self._folder.name, "socket"))
        self._process = subprocess.Popen([sys.executable, __file__, self.address], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        if self._process.stdout.readline() != b"ready\n":
            raise RuntimeError("the fork server did not start; see stderr")

    def start(
        self, arguments: Sequence[str], descriptors: Sequence[int], *, cwd: Path, env: Mapping[str, str], terminal: bool = False
    ) -> tuple[socket.socket, int]:
        """Fork a process with these three descriptors. Return the connection that reports its end, and its id."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(self.address)
        request = json.dumps({"arguments": list(arguments), "cwd": str(cwd), "env": dict(env), "terminal": terminal}).encode()
        socket.send_fds(connection, [_HEADER.pack(len(request))], list(descriptors))
        connection.sendall(request)
        return connection, json.loads(_receive(connection)[0])["pid"]

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._folder.cleanup()


@functools.cache
def _server() -> ForkServer:
    return ForkServer()


def stop() -> None:
    """Stop the fork server if it was started."""
    if _server.cache_info().currsize:
        _server().stop()
        _server.cache_clear()


def can_fork(env: Mapping[str, str]) -> bool:
    """Return True if nothing in the environment has to be read by a new interpreter."""
    return not any(
        name.startswith(EXECUTED) and os.environ.get(name) != value for name, value in env.items() if name != "PYTHONDONTWRITEBYTECODE"
    )


def start(
    arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdin: int | IO[bytes], stdout: int = subprocess.PIPE
) -> ForkedProcess:
    """Fork `moot ARGUMENTS`. stderr is a pipe; stdin and stdout are a pipe, DEVNULL or an open file."""
    theirs: list[int] = []
    ours: list[IO[bytes] | None] = []
    for number, wanted in enumerate((stdin, stdout, subprocess.PIPE)):
        if wanted == subprocess.PIPE:
            read, write = os.pipe()
            theirs.append(read if number == 0 else write)
            ours.append(os.fdopen(write, "wb") if number == 0 else os.fdopen(read, "rb"))
        elif wanted == subprocess.DEVNULL:
            theirs.append(os.open(os.devnull, os.O_RDWR))
            ours.append(None)
        else:
            theirs.append(os.dup(wanted if isinstance(wanted, int) else wanted.fileno()))
            ours.append(None)
    try:
        connection, pid = _server().start(arguments, theirs, cwd=cwd, env=env)
    finally:
        for descriptor in theirs:
            os.close(descriptor)
    return ForkedProcess(connection, pid, (ours[0], ours[1], ours[2]))


class ForkedTerminal(pexpect.spawn):  # type: ignore[type-arg]
    """`pexpect.spawn` for a forked process: `ForkedTerminal(program, ["-m", "moot", …], …)`."""

    def _spawnpty(self, args: list[str], *, env: Mapping[str, str], cwd: str, dimensions: tuple[int, int], **_: object) -> Any:
        master, slave = os.openpty()
        try:
            mode = termios.tcgetattr(slave)
            mode[3] &= ~termios.ECHO
            termios.tcsetattr(slave, termios.TCSANOW, mode)
            fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", *dimensions, 0, 0))
            connection, pid = _server().start(args[3:], [slave] * 3, cwd=Path(cwd), env=env, terminal=True)
        finally:
            os.close(slave)
        return _ForkedPty(ForkedProcess(connection, pid, (None, None, None)), master)


class _ForkedPty(ptyprocess.PtyProcess):
    """A pseudo-terminal whose process is a child of the fork server."""

    def __init__(self, process: ForkedProcess, master: int) -> None:
        super().__init__(process.pid, master)
        self._process = process

    def isalive(self) -> bool:
        if not self.terminated and self._process.poll() is not None:
            self._ended()
        return not self.terminated

    def wait(self) -> int | None:
        self._process.wait()
        self._ended()
        return self.exitstatus

    def terminate(self, force: bool = False) -> bool:
        ended = super().terminate(force)
        if force and not ended:  # it was killed, but a busy machine takes a while to end it
            self.wait()
        return ended or force

    def _ended(self) -> None:
        code = self._process.wait()
        self.terminated = True
        self.status = code
        self.exitstatus, self.signalstatus = (code, None) if code >= 0 else (None, -code)


def _receive(connection: socket.socket, descriptors: int = 0) -> tuple[bytes, list[int]]:
    head, found, _, _ = socket.recv_fds(connection, _HEADER.size, descriptors)
    while len(head) < _HEADER.size:
        piece = connection.recv(_HEADER.size - len(head))
        if not piece:
            raise EOFError("the fork server has ended")
        head += piece
    (size,) = _HEADER.unpack(head)
    body = b""
    while len(body) < size:
        piece = connection.recv(size - len(body))
        if not piece:
            raise EOFError("the fork server has ended")
        body += piece
    return body, found


# ── in the fork server's process ────────────────────────────────────────────────────────────────────────────────────────────────────


def _send(connection: socket.socket, value: dict[str, int]) -> None:
    body = json.dumps(value).encode()
    with contextlib.suppress(OSError):  # the test has ended and closed its side
        connection.sendall(_HEADER.pack(len(body)) + body)


def _preload() -> None:
    import importlib
    import pkgutil

    import moot

    sys.dont_write_bytecode = False  # for the processes that are executed; those that are forked write none
    for module in pkgutil.walk_packages(moot.__path__, "moot."):
        if not module.name.endswith("__main__") and "_child" not in module.name and not module.name.startswith("moot.testing"):
            with contextlib.suppress(ImportError):  # a module of an extra that is not installed
                importlib.import_module(module.name)
    sys.dont_write_bytecode = True


def _become(request: dict[str, Any], descriptors: list[int]) -> None:
    """Be `python -m moot ARGUMENTS` from here on. Never returns."""
    import importlib
    import io

    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
    os.closerange(3, 256)
    if request["terminal"]:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL if number != signal.SIGPIPE else signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.set_wakeup_fd(-1)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    sys.argv = [str(Path(importlib.import_module("moot").__file__ or "").with_name("__main__.py")), *request["arguments"]]
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), encoding="utf-8", errors="surrogateescape")
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "wb", closefd=False)), encoding="utf-8", errors="surrogateescape")
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(io.FileIO(2, "wb", closefd=False)), encoding="utf-8", errors="backslashreplace", line_buffering=True
    )
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    importlib.reload(importlib.import_module("moot.types.crash"))  # it reads the environment once
    sys.path[0] = request["cwd"]  # as `python -m` does
    sys.exit(importlib.import_module("moot.__main__").main())


def _serve(address: str) -> None:
    import atexit
    import gc

    _preload()
    gc.freeze()
    running: dict[int, socket.socket] = {}
    read, write = socket.socketpair()
    read.setblocking(False)
    write.setblocking(False)
    signal.set_wakeup_fd(write.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(address)
    listener.listen(64)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    parent = os.getppid()
    while os.getppid() == parent:
        ready, _, _ = select.select([listener, read], [], [], 1.0)
        if read in ready:
            with contextlib.suppress(BlockingIOError):
                read.recv(4096)
        while running:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            if connection := running.pop(pid, None):
                _send(connection, {"code": os.waitstatus_to_exitcode(status)})
                connection.close()
        if listener not in ready:
            continue
        connection, _ = listener.accept()
        body, descriptors = _receive(connection, 3)
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                _become(json.loads(body), descriptors)
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
            except BaseException:  # noqa: BLE001  as the interpreter itself does
                traceback.print_exc()
            with contextlib.suppress(BaseException):
                import threading

                threading._shutdown()  # type: ignore[attr-defined]
                atexit._run_exitfuncs()
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(BaseException):
                    stream.flush()
            os._exit(code)
        for descriptor in descriptors:
            os.close(descriptor)
        running[pid] = connection
        _send(connection, {"pid": pid})


if __name__ == "__main__":
    _serve(sys.argv[1])
