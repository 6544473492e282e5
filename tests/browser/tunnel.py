"""A connection between browser and server that can be cut: open requests break, and no new ones get through until it is restored."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self


class Tunnel:
    """A context manager; `url` is the browser's address after `to` is set."""

    def __init__(self) -> None:
        self.to = 0
        """The server's port."""
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._open: set[socket.socket] = set()
        self._cut = False
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.cut()

    def cut(self) -> None:
        with self._lock:
            self._cut = True
            for one in self._open:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
            self._open.clear()

    def mend(self) -> None:
        with self._lock:
            self._cut = False

    def _accept(self) -> None:
        while True:
            try:
                caller, _ = self._listening.accept()
            except OSError:
                return
            with self._lock:
                if self._cut:
                    caller.close()
                    continue
                try:
                    server = socket.create_connection(("127.0.0.1", self.to))
                except OSError:
                    caller.close()
                    continue
                self._open |= {caller, server}
            for pair in ((caller, server), (server, caller)):
                threading.Thread(target=self._pump, args=pair, daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(65536):
                sink.sendall(piece)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)
        source.close()
        with self._lock:
            self._open.discard(source)
