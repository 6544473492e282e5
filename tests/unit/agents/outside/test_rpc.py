"""JSON-RPC on lines, with the other side in memory."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from moot.agents.outside.rpc import METHOD_NOT_FOUND, Incoming, Rpc, RpcRefused
from moot.errors import ProviderError
from moot.types.canonical import loads_object

pytestmark = pytest.mark.anyio


class Wire:
    """The sent messages."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    async def send(self, line: bytes) -> None:
        assert line.endswith(b"\n") and line.count(b"\n") == 1
        self.lines.append(loads_object(line))


async def test_requests_get_their_own_answers_in_any_order() -> None:
    wire = Wire()
    rpc = Rpc(wire.send)
    found: dict[str, Any] = {}

    async def ask(method: str) -> None:
        found[method] = await rpc.request(method, {"a": 1})

    async with anyio.create_task_group() as group:
        group.start_soon(ask, "first")
        group.start_soon(ask, "second")
        while len(wire.lines) < 2:
            await anyio.sleep(0)
        assert wire.lines[0] == {"jsonrpc": "2.0", "id": 1, "method": wire.lines[0]["method"], "params": {"a": 1}}
        assert rpc.take(b'{"id":2,"result":"two"}\n') is None
        assert rpc.take(b'{"id":1,"result":"one"}\n') is None
    assert found == {wire.lines[0]["method"]: "one", wire.lines[1]["method"]: "two"}


async def test_codex_gets_no_envelope() -> None:
    wire = Wire()
    await Rpc(wire.send, envelope={}).notify("initialized")
    assert wire.lines == [{"method": "initialized"}]


async def test_requests_and_notifications_are_distinguished_and_answered() -> None:
    wire = Wire()
    rpc = Rpc(wire.send)
    request = rpc.take(b'{"id":0,"method":"ask","params":{"x":1}}\n')
    assert request == Incoming("ask", {"x": 1}, 0, True)
    assert rpc.take(b'{"method":"tell"}\n') == Incoming("tell", {})
    await rpc.reply(request, {"ok": True})
    await rpc.refuse(request, METHOD_NOT_FOUND, "no")
    assert [line.get("result", line.get("error")) for line in wire.lines] == [{"ok": True}, {"code": -32601, "message": "no"}]


@pytest.mark.parametrize("noise", [b"\n", b"Loading...\n", b"[1,2]\n", b'"x"\n', b"\xff\xfe\n", b'{"id":7,"result":1}\n', b'{"id":"x"}\n'])
async def test_noise_is_ignored(noise: bytes) -> None:
    assert Rpc(Wire().send).take(noise) is None


async def test_errors_timeouts_and_exits_are_distinguished() -> None:
    wire = Wire()
    rpc = Rpc(wire.send)
    with pytest.raises(ProviderError, match=r"No response to slow within 0\.01 s"):
        await rpc.request("slow", seconds=0.01)
    async with anyio.create_task_group() as group:

        async def refused() -> None:
            with pytest.raises(RpcRefused, match="start was refused: bad model") as caught:
                await rpc.request("start")
            assert caught.value.rpc_code == -1

        async def cut() -> None:
            with pytest.raises(ProviderError, match="gone"):
                await rpc.request("wait")

        group.start_soon(refused)
        await anyio.wait_all_tasks_blocked()
        rpc.take(b'{"id":2,"error":{"code":-1,"message":"bad model"}}\n')
        group.start_soon(cut)
        await anyio.wait_all_tasks_blocked()
        rpc.fail(ProviderError("gone"))
    with pytest.raises(ProviderError, match="gone"):
        await rpc.request("late")
