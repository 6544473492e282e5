"""A server on loopback that forwards requests to another one and records their bodies unchanged."""

from __future__ import annotations

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType
from urllib.error import HTTPError
from urllib.request import Request, urlopen


class Relay:
    """Use it with `with`; `url` is its address, `change` may modify each response."""

    def __init__(self, target: str, change: Callable[[bytes], bytes] = lambda answer: answer) -> None:
        bodies: list[bytes] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                bodies.append(body)
                kept = {
                    name: value for name, value in self.headers.items() if name.lower() not in ("host", "accept-encoding", "connection")
                }
                try:
                    with urlopen(Request(target + self.path, body, kept)) as answer:
                        status, headers, data = answer.status, answer.headers, answer.read()
                except HTTPError as error:
                    status, headers, data = error.code, error.headers, error.read()
                data = change(data)
                self.send_response(status)
                self.send_header("content-type", headers.get("content-type", "text/plain"))
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.bodies = bodies
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Relay:
        self._thread = Thread(target=self._server.serve_forever)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
