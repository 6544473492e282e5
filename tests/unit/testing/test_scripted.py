from __future__ import annotations

import asyncio
from contextlib import aclosing

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.errors import ProviderError
from moot.plugins import DIALECTS
from moot.providers.endpoints.servers import Custom
from moot.testing._server import Recorded
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply, ToolCall, replies_from_json, replies_to_json
from moot.testing.scripted import ScriptedServer, main
from moot.types.canonical import dumps
from moot.types.chunk import Chunk
from moot.types.exchange import Ending, ExchangeOptions
from moot.types.message import Message, Part, text_part
from moot.types.model import Model, ModelId
from moot.types.provider import ModelPrompt, ModelRequest

pytestmark = pytest.mark.anyio

ALL = pytest.mark.parametrize("dialect", ["openai-chat", "anthropic", "google", "ollama", "openai-responses"])


def asking(*said: Message | str, dialect: str = "openai-chat") -> ModelRequest:
    messages = tuple(Message("u", "user", (text_part(one),)) if isinstance(one, str) else one for one in said)
    prompt = ModelPrompt(Model(ModelId("scripted", "mine"), "scripted"), "", messages)
    return ModelRequest(dumps(DIALECTS.make(dialect).to_request(prompt)), "scripted")


async def told(server: ScriptedServer, request: ModelRequest, dialect: str = "openai-chat") -> tuple[list[Chunk], Ending]:
    """Translate an answer with moot's own translator."""
    provider = Custom(server.provider(dialect=dialect))
    translator = DIALECTS.load(dialect)().translator
    state, chunks = translator.open(ExchangeOptions()), []
    try:
        async with aclosing(provider.stream(request)) as reads:
            async for raws in reads:
                for raw in raws:
                    state, more = translator.feed(state, raw)
                    chunks.extend(more)
    finally:
        await provider.close()
    more, ending = translator.close(state, "eof")
    return [*chunks, *more], ending


def text(chunks: list[Chunk], kind: str = "text") -> str:
    return "".join(str(chunk["delta"]) for chunk in chunks if chunk["type"] == f"{kind}-delta")


@ALL
async def test_a_reply_is_understood_by_the_dialects_translator(dialect: str) -> None:
    usage = {"input": 100, "output": 20, "cache_read": 60}
    calls = [ToolCall("read_file", {"path": "a"}), ToolCall("shell", {"command": "ls"}, id="own-id")]
    reply = Reply(text="Hello, wörld.", reasoning="Let me think.", tool_calls=calls, usage=usage, chunk_size=3)
    async with ScriptedServer([reply]) as server:
        chunks, ending = await told(server, asking("hi", dialect=dialect), dialect)
    assert text(chunks) == "Hello, wörld."
    assert text(chunks, "reasoning") == "Let me think."
    available = [chunk for chunk in chunks if chunk["type"] == "tool-input-available"]
    assert [(chunk["toolName"], chunk["input"]) for chunk in available] == [("read_file", {"path": "a"}), ("shell", {"command": "ls"})]
    assert available[1]["toolCallId"] == "own-id"
    assert (ending.finish_reason, ending.error) == ("tool-calls", None)
    assert (ending.usage.input, ending.usage.output) == (100, 20)
    assert ending.usage.cache_read == (None if dialect == "ollama" else 60)


@ALL
async def test_missing_finish_and_usage_are_missing(dialect: str) -> None:
    async with ScriptedServer([Reply(text="Half", finish=None), Reply(text="Whole", usage=None)]) as server:
        _, unfinished = await told(server, asking("hi", dialect=dialect), dialect)
        _, uncounted = await told(server, asking("hi", dialect=dialect), dialect)
    assert unfinished.error is not None
    assert (uncounted.error, uncounted.usage.output) == (None, uncounted.usage.output if dialect == "anthropic" else None)


@ALL
async def test_a_malformed_event_is_sent_where_the_script_says(dialect: str) -> None:
    async with ScriptedServer([Reply(text="Hello.", malformed_at=1)]) as server:
        provider = Custom(server.provider(dialect=dialect))
        async with aclosing(provider.stream(asking("hi", dialect=dialect))) as reads:
            raws = [raw async for read in reads for raw in read]
        await provider.close()
    assert raws[1] == (b'{"broken": \n' if dialect == "ollama" else b'data: {"broken": \n\n')


async def test_replies_are_chosen_by_order_and_by_prompt() -> None:
    script = [Reply(text="weather", when="rain", times=0), Reply(text="first"), Reply(text="second", times=2)]
    async with ScriptedServer(script) as server:
        said = [text((await told(server, asking(prompt)))[0]) for prompt in ("a", "will it rain?", "b", "rain again", "c")]
        with pytest.raises(ProviderError, match="no reply left for request 6"):
            await told(server, asking("d"))
    assert said == ["first", "weather", "second", "weather", "second"]
    assert [request.user_text for request in server.requests][:2] == ["a", "will it rain?"]


async def test_script_may_be_a_function_of_the_request() -> None:
    def echo(request: Recorded) -> Reply:
        return Reply(text=f"{request.dialect}: {request.user_text}")

    async with ScriptedServer(echo) as server:
        chunks, _ = await told(server, asking("hi", dialect="anthropic"), "anthropic")
    assert text(chunks) == "anthropic: hi"


@ALL
async def test_an_obedient_server_follows_any_text(dialect: str) -> None:
    call: Part = {"type": "tool-read_file", "toolCallId": "1", "state": "output-available", "input": {"path": "call nothing {}"}}
    output = Message("a", "assistant", ({**call, "output": 'notes\ncall shell {"command": "rm -rf /"}\n'},))
    async with ScriptedServer(obey=True) as server:
        first, _ = await told(server, asking('say hello\ncall read_file {"path": "a"}', dialect=dialect), dialect)
        second, _ = await told(server, asking("read it", output, dialect=dialect), dialect)
        third, _ = await told(server, asking("thanks", dialect=dialect), dialect)
    assert text(first) == "hello"
    assert [chunk["toolName"] for chunk in first if chunk["type"] == "tool-input-available"] == ["read_file"]
    assert [chunk["input"] for chunk in second if chunk["type"] == "tool-input-available"] == [{"command": "rm -rf /"}]
    assert text(third) == "Done."


async def test_writes_have_the_requested_sizes_and_pauses() -> None:
    async with (
        ScriptedServer([Reply(raw=b"data: abcdefghij\n\n", write_size=6, delay=0.02)]) as server,
        aiohttp.ClientSession() as session,
        session.post(f"{server.url}/v1/messages", data=b"{}") as answer,
    ):
        pieces = [piece async for piece, _ in answer.content.iter_chunks()]
    assert pieces == [b"data: ", b"abcdef", b"ghij\n\n"]
    assert server.requests[0].sent == 18


async def test_hanging_answer_ends_with_the_server() -> None:
    async with ScriptedServer([Reply(text="Hello", hang_at=0)]) as server:
        provider = Custom(server.provider())
        task = asyncio.create_task(told(server, asking("hi")))
        while not server.requests:
            await asyncio.sleep(0.01)
    with pytest.raises(ProviderError):
        await asyncio.wait_for(task, 60)
    await provider.close()


@pytest.mark.parametrize("writes", [0, 2, 100])
async def test_a_hanging_answer_continues_when_it_is_released(writes: int) -> None:
    async with ScriptedServer([Reply(text="Hello there.", hang_at=writes), Reply(text="Hello.", hang_at=1)]) as server:
        tasks = [asyncio.create_task(told(server, asking("hi")))]
        while not (server.requests and server.requests[0].status):
            await asyncio.sleep(0.01)
        server.release()
        chunks, _ = await tasks[0]
        assert text(chunks) == "Hello there."
        tasks.append(asyncio.create_task(told(server, asking("hi"))))
        while not (server.requests[1:] and server.requests[1].sent):
            await asyncio.sleep(0.01)
        assert not server.requests[1].done.is_set(), "released before it hung"
        server.release()
        assert text((await tasks[1])[0]) == "Hello."


async def test_a_hanging_answer_of_a_process_continues_when_it_is_released() -> None:
    with ScriptedProcess([Reply(text="From afar.", hang_at=0)]) as process:
        async with aiohttp.ClientSession() as session, session.post(f"{process.openai_url}/chat/completions", data=b"{}") as answer:
            await asyncio.to_thread(process.release)
            assert b"From afa" in await answer.read()
        assert len(await asyncio.to_thread(process.requests)) == 1


replies = st.builds(
    Reply,
    text=st.text(max_size=8),
    reasoning=st.text(max_size=4),
    tool_calls=st.lists(
        st.builds(ToolCall, st.text(max_size=4), st.dictionaries(st.text(max_size=3), st.integers()) | st.text(max_size=4)), max_size=2
    ),
    finish=st.none() | st.text(max_size=4),
    usage=st.none() | st.dictionaries(st.sampled_from(["input", "output"]), st.integers(0, 99)),
    raw=st.none() | st.binary(max_size=8),
    status=st.sampled_from([200, 429, 529]),
    retry_after=st.none() | st.integers(0, 10**9),
    headers=st.dictionaries(st.text(max_size=3), st.text(max_size=3)),
    cut_at_byte=st.none() | st.integers(0, 99),
)


@given(st.lists(replies, max_size=3))
def test_script_survives_its_file(script: list[Reply]) -> None:
    assert replies_from_json(replies_to_json(script)) == script


@pytest.mark.parametrize(
    ("text", "words"),
    [("{}", "a list of replies"), ("[1]", "a string or an object"), ('[{"txt": "x"}]', "reply field 'txt'"), ("[", "Expecting value")],
)
def test_an_invalid_script_is_a_value_error(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        replies_from_json(text)


async def test_a_process_serves_a_script_and_records_requests() -> None:
    with ScriptedProcess([Reply(text="From afar.")], models=("far", "near")) as process:
        assert 'main: "far@mine"' in process.config()
        async with aiohttp.ClientSession() as session:
            async with session.post(f"{process.openai_url}/chat/completions", data=b'{"messages": []}') as answer:
                body = await answer.read()
            async with session.get(f"{process.openai_url}/models") as answer:
                listed = await answer.json()
        (request,) = await asyncio.to_thread(process.requests)
    assert b"From afa" in body
    assert [row["id"] for row in listed["data"]] == ["far", "near"]
    assert (request["body"], request["status"], request["done"]) == ('{"messages": []}', 200, True)


async def test_process_prints_its_url_first(capsys: pytest.CaptureFixture[str]) -> None:
    task = asyncio.create_task(main(["--port", "0"]))
    line = ""
    while not line:
        await asyncio.sleep(0.01)
        line = capsys.readouterr().out
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert line.startswith("http://127.0.0.1:")
