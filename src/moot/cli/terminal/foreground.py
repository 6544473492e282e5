"""The process that the shell waits for while a conversation is open in a terminal.

It only passes on signals and the exit status, so that it can exit early: then the shell takes the terminal back, and moot continues in the
background.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from contextlib import suppress

_DETACH = signal.SIGUSR1
_PASSED_ON = frozenset({signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT})
_FROM_KERNEL = 0
"""Codes above this one mark signals that the terminal sends to all its foreground processes, moot included."""
_STOP_SECONDS = 0.02
"""Time after which a process that a signal has stopped counts as stopped, not as just being resumed."""


class Foreground:
    """The link of moot to the process that the shell waits for."""

    def __init__(self, process: int, pipe: int) -> None:
        self._process = process
        self.pipe = pipe
        """Descriptor that becomes readable when that process ends."""
        self.detached = False
        """True if the shell has the terminal back."""

    def detach(self) -> None:
        """Give the terminal back to the shell. Nothing can be read from it or written to it from now on."""
        self.detached = True
        sys.stdout.flush()
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nowhere, descriptor)
        os.close(nowhere)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        os.setsid()
        os.kill(self._process, _DETACH)


_links: list[Foreground] = []


def foreground() -> Foreground | None:
    """Return the link to the process that the shell waits for; None if that is moot itself."""
    return _links[-1] if _links else None


def split() -> None:
    """Continue in a child process, while this process waits for it. Do nothing on systems other than Linux.

    Call this as early as possible: threads and an event loop must not exist yet, and a small process is copied faster.
    """
    if sys.platform != "linux" or _links:
        return
    sys.stdout.flush()
    gc.freeze()
    parent, (reader, writer) = os.getpid(), os.pipe()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*_PASSED_ON, signal.SIGCHLD, _DETACH})
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if its parent ignores it, the kernel reports no end of a child
    child = os.fork()
    if child:
        os.close(reader)
        _wait(child)
    os.close(writer)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    _links.append(Foreground(parent, reader))


def _wait(child: int) -> None:
    """Wait for the child and exit like it. Exit with 0 as soon as it detaches."""
    while True:
        found = signal.sigwaitinfo({*_PASSED_ON, signal.SIGCHLD, _DETACH})
        if found.si_signo == _DETACH:
            os._exit(0)
        if found.si_signo != signal.SIGCHLD:
            if found.si_code <= _FROM_KERNEL or found.si_signo == signal.SIGHUP:  # a closed terminal sends it to one process only
                with suppress(ProcessLookupError):
                    os.kill(child, found.si_signo)
            continue
        ended, status = os.waitpid(child, os.WNOHANG | os.WUNTRACED)
        if not ended:
            continue
        if os.WIFSTOPPED(status):
            _stop(child)
        elif os.WIFSIGNALED(status):
            _die(os.WTERMSIG(status))
        else:
            os._exit(os.WEXITSTATUS(status))


def _stop(child: int) -> None:
    """Stop like the child, so that the shell notices. When the shell resumes this process, resume the child."""
    time.sleep(_STOP_SECONDS)
    with open(f"/proc/{child}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123  no further import before the first prompt
        state = file.read().rpartition(")")[2].split()[0]
    if state == "T":
        os.kill(os.getpid(), signal.SIGSTOP)
        os.kill(child, signal.SIGCONT)


def _die(number: int) -> None:
    signal.signal(number, signal.SIG_DFL) if number not in (signal.SIGKILL, signal.SIGSTOP) else None
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    os._exit(128 + number)
