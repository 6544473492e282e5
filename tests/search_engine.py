"""A search engine on a socket with scripted responses, which records its requests."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class SearchEngine:
    """A search engine with the same response to every request."""

    def __init__(self) -> None:
        self.answer: Any = {}
        self.status = 200
        self.raw: bytes | None = None
        """The body of the response, instead of `answer` as JSON."""
        self.asked: list[tuple[str, dict[str, str], str]] = []
        """Path, headers and body of each request."""
        self.url = ""

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("Content-Length", "0"))).decode()
        self.asked.append((request.path, dict(request.headers.items()), body))
        data = json.dumps(self.answer).encode() if self.raw is None else self.raw
        request.send_response(self.status)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)


@contextmanager
def search_engine() -> Iterator[SearchEngine]:
    """Run a search engine in a thread."""
    engine = SearchEngine()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            engine.handle(self)

        do_POST = do_GET

        def log_message(self, format: str, *args: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        engine.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield engine
        finally:
            server.shutdown()
            thread.join()
