"""The running calls of one connection: their time limits, and the questions that the server asks a person during them."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

import anyio
from mcp.shared.exceptions import MCPError
from mcp_types import REQUEST_TIMEOUT

from moot.errors import MootError
from moot.types.mcp import AskPerson, McpQuestion, McpReply

QUESTIONS = 10
"""Maximum number of questions during one call. Further ones are declined."""
_ENDING = 5.0
"""Seconds that the end of a call waits for its questions to be withdrawn."""
_DECLINED = McpReply("decline")
_current: ContextVar[Call | None] = ContextVar("mcp_call", default=None)
"""The call in whose task the SDK handles a question. Questions of older protocol versions arrive in a task of the connection."""


class Call:
    """A running call. Its time limit counts the time since the last sign of progress, but not the time that a person takes to answer."""

    def __init__(self, scope: anyio.CancelScope, seconds: float, ask: AskPerson | None) -> None:
        self.ask = ask
        self.error: MootError | None = None
        """Error that occurred when asking the person, such as a full disk. It ends the call."""
        self._scope, self._seconds = scope, seconds
        self._questions: dict[anyio.CancelScope, anyio.Event] = {}
        self._asked = 0
        self._closed = False
        self.progressed()

    def progressed(self) -> None:
        """Restart the time limit."""
        self._scope.deadline = float("inf") if self._questions else anyio.current_time() + self._seconds

    async def reply_to(self, question: McpQuestion) -> McpReply:
        """Ask the person, and return the reply. The question is withdrawn when the call ends, and declined if it has already ended."""
        self._asked += 1
        if self.ask is None or self._closed or self._asked > QUESTIONS:
            return _DECLINED
        with anyio.CancelScope() as scope:
            self._questions[scope] = ended = anyio.Event()
            self.progressed()
            try:
                return await self.ask(question)
            except MootError as error:
                self.error = error
                self._scope.cancel()
            finally:
                del self._questions[scope]
                self.progressed()
                ended.set()
        return McpReply("cancel")

    async def close(self) -> None:
        """Withdraw the questions that are still open, and decline further ones."""
        self._closed = True
        open_questions = dict(self._questions)
        for scope in open_questions:
            scope.cancel()
        with anyio.CancelScope(shield=True), anyio.move_on_after(_ENDING):
            for ended in open_questions.values():
                await ended.wait()


class Calls:
    """The running calls of a connection."""

    def __init__(self) -> None:
        self._running: list[Call] = []
        self._any_abandoned = False
        """True if a call has ended without an answer of the server, which may still work on it."""

    @contextmanager
    def running(self, call: Call) -> Generator[None]:
        """Assign the server's questions to this call during the block."""
        self._running.append(call)
        token = _current.set(call)
        try:
            yield
        except BaseException as error:
            is_answer = isinstance(error, MCPError) and error.code != REQUEST_TIMEOUT
            self._any_abandoned = self._any_abandoned or not is_answer
            raise
        finally:
            _current.reset(token)
            self._running.remove(call)

    async def reply_to(self, question: McpQuestion) -> McpReply:
        """Ask the person of the call to which a question belongs. It is declined if that is not certain, or if the call has ended."""
        call = _current.get()
        if call is None and len(self._running) == 1 and not self._any_abandoned:
            (call,) = self._running
        return await call.reply_to(question) if call is not None and call in self._running else _DECLINED
